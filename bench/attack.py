"""One tenant attacks, another works: what does the second one notice? Usage: bench/attack.py BUILD [--quick] [--write]

Eight hostile clients of one tenant (large bodies, programs that are hard to read, slow readers, sparse files, floods) for 60 s, while another
tenant runs warm Python over HTTP. Its p99 beside the quiet one of the same run, errors, and the memory (PSS) of all processes of the daemon.
The attackers are a process of their own, with bodies made beforehand and a low priority: they stand for other machines, and what they cost
this one, or the interpreter that measures, is no fault of the daemon's.
"""

import base64
import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import socket
import tempfile
import threading
import time

from measuring import Client, percentile, timed
from results import options, put

given = options(__doc__)

from serving import Daemon  # noqa: E402

MIB = 1 << 20
SECONDS, QUIET = (15, 10) if given.quick else (60, 30)
GAP = 0.02  # seconds between requests of the one who works
ATTACKERS_NICE = 10
HARD = [("python", "["), ("python", "x=["), ("javascript", "(()=>"), ("shell", "$("), ("typescript", "<"), ("c", "{")]


def tree(pid):
    """All processes below one, itself too."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents.setdefault(int(pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry))
            except OSError:
                pass
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def pss(pid):
    """MiB of all of them, and of each name."""
    names = collections.Counter()
    for process in tree(pid):
        try:
            name = pathlib.Path(f"/proc/{process}/comm").read_text().strip()
            names[name] += int(next(line.split()[1] for line in open(f"/proc/{process}/smaps_rollup") if line.startswith("Pss:"))) / 1024
        except (OSError, StopIteration):
            pass
    return sum(names.values()), names


class Attack:
    """What one hostile client does, again and again until the time is over."""

    def __init__(self, daemon, key, sandbox, until, large):
        self.daemon, self.key, self.sandbox, self.until, self.large = daemon, key, sandbox, until, large
        self.ways = [self.bodies, self.analysis, self.workflows, self.slow_upload, self.slow_read, self.sparse, self.flood, self.outputs]

    def head(self, method, path, length, kind="application/json"):
        return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {length}\r\n\r\n").encode()

    def send(self, data, read=True):
        with socket.create_connection(("127.0.0.1", self.daemon.port), timeout=20) as client:
            client.sendall(data)
            return client.recv(65536) if read else None

    def post(self, path, value):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.send(self.head("POST", path, len(body)) + body)

    def bodies(self):
        self.post("/v1/execute", random.choice(self.large))

    def analysis(self):
        language, text = random.choice(HARD)
        self.post("/v1/policy/analyse", {"language": language, "code": (text * MIB)[:MIB - 64]})

    def workflows(self):
        self.post("/v1/execute", {"steps": [{"language": language, "code": (text * MIB)[:MIB - 64]} for language, text in HARD * 2]})

    def slow_upload(self):
        with socket.create_connection(("127.0.0.1", self.daemon.port), timeout=20) as client:
            client.sendall(self.head("POST", "/v1/execute", 90 * MIB) + b" " * 32 * MIB)
            while time.monotonic() < self.until:
                client.sendall(b" " * 1000)
                time.sleep(0.1)

    def slow_read(self):
        with socket.create_connection(("127.0.0.1", self.daemon.port), timeout=20) as client:
            client.sendall(self.head("POST", "/v1/execute", 90) + json.dumps({"language": "python", "code": "print('x' * 900000)"}).encode().ljust(90))
            while time.monotonic() < self.until and client.recv(1):
                time.sleep(0.2)

    def sparse(self):
        clients = []
        for _ in range(8):
            client = socket.create_connection(("127.0.0.1", self.daemon.port), timeout=20)
            client.sendall(self.head("GET", f"/v1/sandboxes/{self.sandbox}/files?path=/workspace/sparse", 0))
            clients.append(client)
        time.sleep(min(5, max(0, self.until - time.monotonic())))
        for client in clients:
            client.close()

    def flood(self):
        for _ in range(50):
            self.post(random.choice(["/v1/execute", "/v1/jobs", "/v1/sandboxes", "/nowhere"]), b"{}")

    def outputs(self):
        self.post("/v1/execute", {"language": "shell", "code": "head -c 60000000 /dev/zero; head -c 3000000 /dev/urandom >a", "capture": ["a"]})

    def run(self, first):
        """Each client begins with a way of its own."""
        ways = self.ways[first:] + self.ways[:first]
        while time.monotonic() < self.until:
            for way in ways:
                try:
                    way()
                except OSError:
                    pass  # it was cut off
                if time.monotonic() >= self.until:
                    break


def large_bodies():
    files = {"a": {"base64": base64.b64encode(b"q" * 60 * MIB).decode()}}
    return [b"[" * 90 * MIB, b'{"code": "' + b"x" * 90 * MIB + b'"}', b" " * 90 * MIB,
            json.dumps({"language": "python", "code": "1", "files": files}).encode()]


def attack(daemon, key, sandbox, begin, ready):
    """Eight hostile clients, once `begin` is set."""
    os.nice(ATTACKERS_NICE)
    os.setsid()  # the kernel shares processors out to sessions first: a low priority within ours would be none beside the daemon's
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/autogroup").write_text(str(ATTACKERS_NICE))
    large = large_bodies()
    ready.set()
    begin.wait()
    until = time.monotonic() + SECONDS
    clients = [threading.Thread(target=Attack(daemon, key, sandbox, until, large).run, args=(i,), daemon=True) for i in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(SECONDS + 30)


def work(client, seconds, errors):
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            times.append(timed(client.execute, "print('hi')", "python"))
        except (AssertionError, OSError) as error:
            errors.append(repr(error)[:200])
        time.sleep(GAP)
    return times


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o755)
        with Daemon(home, respawn=True) as daemon:
            good, bad = daemon.key("--tenant", "good", "--role", "execute"), daemon.key("--tenant", "bad", "--role", "execute")
            time.sleep(1.5)
            client = Client(daemon, good)
            errors, highest = [], (0, {})
            sandbox = daemon.ask("POST", "/v1/sandboxes", {"timeout": 3600}, key=bad).json()["id"]
            daemon.ask("POST", f"/v1/sandboxes/{sandbox}/commands", {"command": "truncate -s 1T sparse"}, key=bad)
            begin, ready = multiprocessing.Event(), multiprocessing.Event()
            attackers = multiprocessing.Process(target=attack, args=(daemon, bad, sandbox, begin, ready), daemon=True)
            attackers.start()
            ready.wait()
            work(client, 3, errors)
            quiet = work(client, QUIET, errors)
            before, usual = pss(daemon.process.pid)
            begin.set()
            busy, done = [], threading.Event()
            worker = threading.Thread(target=lambda: (busy.extend(work(client, SECONDS, errors)), done.set()))
            worker.start()
            while not done.is_set():
                highest = max(highest, pss(daemon.process.pid), key=lambda found: found[0])
                time.sleep(0.5)
            attackers.join(30)
            attackers.terminate()
            time.sleep(10)
            after = pss(daemon.process.pid)[0]
            died = len([record for record in daemon.log() if record["message"] == "Listening"]) - 1
    text = "\n".join(["| what | quiet | attacked | bar |", "|---|---|---|---|",
                      f"| p50 ms | {percentile(quiet, 0.5):.2f} | {percentile(busy, 0.5):.2f} | |",
                      f"| p99 ms | {percentile(quiet, 0.99):.2f} | {percentile(busy, 0.99):.2f} ({percentile(busy, 0.99) / percentile(quiet, 0.99):.2f} x) | 3 x |",
                      f"| requests | {len(quiet)} | {len(busy)} | |", f"| errors | | {len(errors)} | 0 |",
                      f"| PSS MiB | {before:.0f} | {highest[0]:.0f} (+{highest[0] - before:.0f}), 10 s later {after:.0f} (+{after - before:.0f}) | +128 |",
                      f"| deaths of the daemon | | {died} | 0 |"])
    print(text)
    print("most memory:", ", ".join(f"{name} {size:.0f} (+{size - usual[name]:.0f})" for name, size in highest[1].most_common(5)))
    for error in errors[:5]:
        print(error)
    if given.write:
        put("attack", text)


if __name__ == "__main__":
    main()
