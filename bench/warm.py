"""What is kept ready, beside programs that are just started. Usage: bench/warm.py BUILD [--quick] [--write]

Every comparison is interleaved in one run: a request to `nacre serve` over HTTP on loopback (sent to reply read, one connection),
then the bare interpreter, and so on. --write puts the tables into bench/RESULTS.md and draws bench/warm.svg.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from measuring import Client, percentile, rate, timed
from results import options, put

HERE = pathlib.Path(__file__).resolve().parent
given = options(__doc__)

from exec import Helper, bwrap, hide_unified, oci  # noqa: E402
from serving import Daemon  # noqa: E402

PYTHON, NODE = "/usr/bin/python3", "/usr/bin/node"
HELLO = "print('hi')"
FRAME = "import numpy, pandas\nframe = pandas.DataFrame({'a': numpy.arange(100), 'b': 1})\nprint(frame.groupby('b').a.sum()[1])"
# The least that a fresh box for each program can take: a fork of an interpreter that has loaded what ours has, namespaces, the program, the end.
FLOOR = f"""
import ctypes, gc, os, time
import abc, argparse, ast, base64, bisect, collections, contextlib, copy, csv, dataclasses, datetime, decimal, enum, fractions, functools, hashlib
import heapq, inspect, io, itertools, json, logging, math, operator, pathlib, random, re, shutil, statistics, string, struct, subprocess, sys, tempfile
import textwrap, threading, traceback, types, typing, unittest, uuid, warnings
ALL = 0x7e020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
libc, null, n, end = ctypes.CDLL(None), os.open("/dev/null", os.O_WRONLY), 0, time.monotonic() + float(sys.argv[1])
gc.collect()
gc.freeze()
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        if libc.unshare(ALL) != 0 or os.dup2(null, 1) != 1:
            os._exit(1)
        exec(compile({HELLO!r}, "hello.py", "exec"))
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    n += 1
print(n)
"""


def bare(*words):
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)


def row(name, ours, theirs, goal=""):
    ratio = percentile(ours, 0.5) / percentile(theirs, 0.5)
    return (f"| {name} | {percentile(ours, 0.5):.2f} | {percentile(ours, 0.99):.2f} | {min(ours):.2f} | {percentile(theirs, 0.5):.2f} | "
            f"{ratio:.3f} (1/{1 / ratio:.1f}) | {percentile(ours, 0.99) / percentile(theirs, 0.5):.2f} | {goal} |")


def interleave(client, rounds, code, language, *words):
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(timed(client.execute, code, language))
        theirs.append(timed(bare, *words))
    return ours, theirs


def has_data():
    return subprocess.run([PYTHON, "-c", "import numpy, pandas"], capture_output=True).returncode == 0


def latency(client, rounds):
    cases = [("Python hello", HELLO, "python", [PYTHON, "-c", HELLO], "1/6; p99 1/2", rounds),
             ("shell hello", "echo hi", "shell", ["/bin/bash", "-c", "echo hi"], "", rounds)]
    if has_data():
        cases.append(("numpy, pandas", FRAME, "python", [PYTHON, "-c", FRAME], "1/40", rounds // 5))
    if pathlib.Path(NODE).exists():
        cases.append(("Node hello", "console.log('hi')", "javascript", [NODE, "-e", "console.log('hi')"], "1/4", rounds // 2))
    lines = ["| program | p50 ms | p99 ms | best ms | bare p50 ms | p50 to bare | p99 to bare p50 | goal |", "|---|---|---|---|---|---|---|---|"]
    bars = []
    for name, code, language, words, goal, n in cases:
        for _ in range(5):
            client.execute(code, language)
            time.sleep(0.5)
        ours, theirs = interleave(client, n, code, language, *words)
        lines.append(row(name, ours, theirs, goal))
        bars.append((name, percentile(ours, 0.5), percentile(theirs, 0.5)))
    return lines, bars


def floor(seconds, workers=8):
    running = [subprocess.Popen([PYTHON, "-c", FLOOR, str(seconds)], stdout=subprocess.PIPE) for _ in range(workers)]
    return sum(int(process.communicate()[0]) for process in running) / seconds


def throughput(daemon, seconds):
    def ours():
        client = Client(daemon)
        return lambda: client.execute(HELLO)

    rates = {"nacre serve": rate(ours, seconds), "bare python3": rate(lambda: lambda: bare(PYTHON, "-c", HELLO), seconds)}
    if shutil.which("bwrap"):
        rates["bubblewrap + python3"] = rate(lambda: lambda: bare(*bwrap([PYTHON, "-c", HELLO])), seconds)
    rates["fork, seven namespaces and nothing else"] = floor(seconds)
    lines = ["| 8 clients, Python hello | per second | nacre serve to it | goal |", "|---|---|---|---|"]
    goals = {"bare python3": "5", "bubblewrap + python3": "8"}
    lines += [f"| {name} | {value:.0f} | {rates['nacre serve'] / value:.2f} | {goals.get(name, '')} |" for name, value in rates.items()]
    least = rates["fork, seven namespaces and nothing else"] / rates["bare python3"]
    return lines + ["", f"The last row is no box: no root, groups, filters, HTTP or bill. It is {least:.1f} times bare python3: what a fresh box for each program can reach "
                    "at most on this machine."]


def waiting_memory(daemon):
    """KiB of the control groups of boxes in which a child of a zygote waits."""
    sizes = []
    for pid in subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-x", "python3"], capture_output=True, text=True).stdout.split():
        if os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid"):
            continue  # a zygote
        group = re.search(r":memory:(.*)", pathlib.Path(f"/proc/{pid}/cgroup").read_text())
        unified = re.search(r"^0::(.*)", pathlib.Path(f"/proc/{pid}/cgroup").read_text(), re.M)
        for place in ([f"/sys/fs/cgroup/memory{group[1]}/memory.usage_in_bytes"] if group else []) + [f"/sys/fs/cgroup{unified[1]}/memory.current"]:
            if os.path.exists(place):
                sizes.append(int(open(place).read()) // 1024)
                break
    return sizes


def burst(home, n):
    """So many requests at once to a daemon that has just begun."""
    with Daemon(home) as daemon:
        def ask(_):
            return timed(Client(daemon).execute, HELLO)

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            start = time.perf_counter()
            times = list(pool.map(ask, range(n)))
            total = time.perf_counter() - start
        return f"{n} requests by 64 clients to a cold daemon: all answered in {total:.1f} s ({n / total:.0f} per second), p50 {percentile(times, 0.5):.0f} ms, " \
               f"p99 {percentile(times, 0.99):.0f} ms."


def chart(bars):
    """Bars of milliseconds on a scale of logarithms, ours above theirs."""
    import math
    width, left, step = 640, 130, 44

    def x(value):
        return left + max(1, (width - left - 60) * (math.log10(value) + 0.5) / 3.5)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{len(bars) * step + 30}" font-family="sans-serif" font-size="12">']
    for i, (name, ours, theirs) in enumerate(bars):
        for k, (value, colour, who) in enumerate(((ours, "#2a7f62", "nacre serve"), (theirs, "#b0b0b0", "bare"))):
            y = 10 + i * step + k * 17
            out.append(f'<rect x="{left}" y="{y}" width="{x(value) - left:.0f}" height="15" fill="{colour}"/>'
                       f'<text x="{x(value) + 4:.0f}" y="{y + 12}">{value:.1f} ms {who}</text>')
        out.append(f'<text x="4" y="{26 + i * step}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


def peers(client, rounds):
    """Python hello in a fresh box of others, in turn with ours; with an engine and NACRE_BENCH_IMAGE, Docker's too."""
    with tempfile.TemporaryDirectory(prefix="nacre-bench-") as name:
        pathlib.Path(name).chmod(0o755)
        helper, shy = Helper(0), Helper(0, hide_unified)
        words, image = [PYTHON, "-c", HELLO], os.environ.get("NACRE_BENCH_IMAGE")
        rows = {"bare": (helper, lambda: words)}
        if shutil.which("bwrap"):
            rows["bubblewrap"] = helper, lambda: bwrap(words)
        for runtime, who in (("crun", shy), ("runc", helper)):
            if shutil.which(runtime):
                rows[runtime] = who, oci(runtime, pathlib.Path(name), words)
        if image and shutil.which("docker"):
            rows["docker"] = helper, lambda: [shutil.which("docker"), "run", "--rm", "--network", "none", image, *words]
        times, ours = {row: [] for row in rows}, []
        for _ in range(rounds):
            ours.append(timed(client.execute, HELLO))
            for row, (who, make) in rows.items():
                ms, status = who.time(make())
                assert status == 0, row
                times[row].append(ms)
        helper.close()
        shy.close()
    lines = ["| Python hello, one at a time | p50 ms | p99 ms | nacre serve's p50 to it |", "|---|---|---|---|"]
    return lines + [f"| {row} | {percentile(found, 0.5):.2f} | {percentile(found, 0.99):.2f} | 1/{percentile(found, 0.5) / percentile(ours, 0.5):.1f} |"
                    for row, found in {"nacre serve": ours, **times}.items()]


def main():
    rounds, seconds = (40, 4) if given.quick else (200, 15)
    home = pathlib.Path(tempfile.mkdtemp(prefix="nacre-bench-"))
    lines = ["## What is kept ready (bench/warm.py)", "",
             f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f} at the start. Over HTTP on loopback, "
             "interleaved with the bare interpreter.", ""]
    (home / "a").mkdir()
    (home / "b").mkdir()
    with Daemon(home / "a") as daemon:
        time.sleep(2)
        table, bars = latency(Client(daemon), rounds)
        lines += table + [""]
        if os.getuid() == 0:
            lines += peers(Client(daemon), rounds // 4) + [""]
        lines += throughput(daemon, seconds) + [""]
        time.sleep(3)
        sizes = waiting_memory(daemon)
        if sizes:
            lines += [f"Memory of a waiting Python box (its control group, {len(sizes)} boxes): p50 {percentile(sizes, 0.5)} KiB, most {max(sizes)} KiB (goal 1024).", ""]
    lines.append(burst(home / "b", 100 if given.quick else 500))
    print("\n".join(lines))
    if given.write:
        put("warm", "\n".join(lines))
        (HERE / "warm.svg").write_text(chart(bars))
    shutil.rmtree(home, ignore_errors=True)


main()
