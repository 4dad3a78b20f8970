"""A flame graph of warm executions. Usage: bench/flame.py BUILD OUT.svg

Needs root and perf. Samples all that happens on the machine while one client asks `nacre serve` for Python programs; what is not the
daemon's, its spawner's, its recorder's or a box's is left out. Width is CPU time; the lowest row is the process.
"""

import collections
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import zlib

build, target = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
os.environ["NACRE_BUILD"] = str(build)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/func"))

from serving import Daemon  # noqa: E402

PROGRAMS, WIDTH, ROW, LEAST = 300, 1200, 15, 0.002


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def follow(spawner, ours, ends):
    """Collects the process ids of the spawner's children: the worker, boxes and what runs in them."""
    while not ends.wait(0.003):
        ours.update(children(spawner))


def sample(data):
    """Process ids that count."""
    with Daemon(pathlib.Path(tempfile.mkdtemp(prefix="nacre-bench-"))) as daemon:
        ours, ends = {str(daemon.process.pid)}, threading.Event()
        time.sleep(2)
        for child in children(daemon.process.pid):
            ours.update(children(child))  # the keeper's: the recorder and its like
        perf = subprocess.Popen(["perf", "record", "-q", "-a", "-g", "-F", "4999", "-o", data], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        follower = threading.Thread(target=follow, args=(daemon.process.pid, ours, ends))
        follower.start()
        for _ in range(PROGRAMS):
            assert daemon.execute("print('hi')").json()["status"] == "success"
        perf.send_signal(2)
        perf.wait()
        ends.set()
        follower.join()
    return ours


def stacks(data, ours):
    """Tuples of names, the process first, and how often each was seen."""
    counts = collections.Counter()
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,ip,sym"], capture_output=True, text=True).stdout
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        process, _, pid = lines[0].strip().rpartition(" ")
        process = process.strip()
        if pid not in ours:
            continue
        names = [re.sub(r"\+0x.*", "", line.split(None, 1)[1]) if len(line.split(None, 1)) > 1 else "?" for line in lines[1:]]
        counts[(process, *reversed([name if name != "[unknown]" else "?" for name in names]))] += 1
    return counts


def draw(counts):
    total, rows, depth = sum(counts.values()), [], 0

    def place(level, members, x):
        nonlocal depth
        groups = collections.defaultdict(collections.Counter)
        for stack, n in members.items():
            if len(stack) > level:
                groups[stack[level]][stack] += n
        for name, inside in sorted(groups.items()):
            n = sum(inside.values())
            if n / total >= LEAST:
                depth = max(depth, level + 1)
                rows.append((level, x / total * WIDTH, n / total * WIDTH, name, n))
                place(level + 1, inside, x)
            x += n

    place(0, counts, 0)
    height = (depth + 1) * ROW
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" font-size="10">']
    for level, x, width, name, n in rows:
        y, hue = height - (level + 1) * ROW, zlib.crc32(name.encode()) % 40
        out.append(f'<g><title>{html.escape(name)}: {n / total:.1%}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" '
                   f'fill="hsl({hue + 10},80%,{65 + hue % 12}%)"/>'
                   + (f'<text x="{x + 2:.1f}" y="{y + 11}">{html.escape(name[:int(width / 6.2)])}</text>' if width > 25 else "") + "</g>")
    return "\n".join([*out, "</svg>", ""])


with tempfile.NamedTemporaryFile(prefix="nacre-perf-") as file:
    counts = stacks(file.name, sample(file.name))
target.write_text(draw(counts))
shares = collections.Counter()
for stack, n in counts.items():
    shares[stack[0]] += n
print(json.dumps({name: round(n / sum(counts.values()), 3) for name, n in shares.most_common()}))
