"""Whether an execution costs more with a long history, with many live boxes, or late in a daemon's life.

Usage: bench/growth.py BUILD [--quick] [--write]. Two daemons take turns, one fresh and one with the burden, so that both meet the
same machine: the time of a Python hello over HTTP, and the CPU time that all processes of the daemon, boxes included, took for it.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import tempfile
import time

from results import options, put

given = options(__doc__)

from recordwire import FINISH, OPEN, Recorder, entry, make_history  # noqa: E402
from serving import Daemon  # noqa: E402

RECORDS, BOXES, EXECUTIONS = (20_000, 100, 2_000) if given.quick else (1_000_000, 1_000, 100_000)
TURNS, EACH = (6, 20) if given.quick else (16, 40)
BODY = {"status": "success", "language": "python", "tier": "container", "exit_code": 0, "wall_seconds": 0.0123, "cpu_seconds": 0.0101,
        "memory_peak_bytes": 9437184, "disk_bytes": 0, "code_sha256": "0" * 64, "stdout_sha256": "0" * 64, "stderr_sha256": "0" * 64}


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


class Subject:
    def __init__(self, name):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix=f"nacre-bench-{name}-", dir="/var/tmp"))
        self.times, self.cpu = [], []

    def start(self):
        self.daemon = Daemon(self.home)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=300)
        time.sleep(2)
        return self

    def stop(self):
        self.connection.close()
        self.daemon.__exit__()
        shutil.rmtree(self.home, ignore_errors=True)

    def ask(self, path, body, connection=None):
        connection = connection or self.connection
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        reply = json.loads(answer.read())
        assert answer.status < 300, reply
        return reply

    def execute(self, connection=None):
        reply = self.ask("/v1/execute", {"code": "print('hi')", "language": "python"}, connection)
        assert reply["output"] == "hi\n", reply

    def cpu_ms(self):
        """Of the spawner and of its children, those that have ended included."""
        pid = self.daemon.process.pid
        living = [pid, *children(pid)]
        living += [aide for child in living[1:] for aide in children(child)]  # the keeper's
        ended = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total = sum(map(int, ended[13:15])) * 1000 / os.sysconf("SC_CLK_TCK")
        for member in living:
            try:
                total += int(pathlib.Path(f"/proc/{member}/schedstat").read_text().split()[0]) / 1e6
            except (FileNotFoundError, ProcessLookupError):
                pass
        return total

    def turn(self):
        self.execute()  # whoever slept is awake
        before = self.cpu_ms()
        for _ in range(EACH):
            begin = time.perf_counter()
            self.execute()
            self.times.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.005)
        time.sleep(0.1)
        self.cpu.append((self.cpu_ms() - before) / EACH)


def median(values):
    return sorted(values)[len(values) // 2]


def compare(what, burdened, fresh):
    for subject in (burdened, fresh):
        subject.times, subject.cpu = [], []
        subject.connection.close()  # the daemon has, if it took long to make the burden; the next request opens it again
    for i in range(TURNS):
        for subject in ((burdened, fresh), (fresh, burdened))[i % 2]:
            subject.turn()
    cells = [(median(getattr(burdened, key)), median(getattr(fresh, key))) for key in ("times", "cpu")]
    row = f"| {what} | " + " | ".join(f"{mine:.2f} | {theirs:.2f} | {mine / theirs:.2f}" for mine, theirs in cells) + " |"
    print(row, flush=True)
    return row


def write_history(subject):
    recorder = Recorder(make_history(subject.home / "state"), patience=600)
    for i in range(RECORDS // 32):
        for k in range(32):
            recorder.socket.send(entry(OPEN, f"ex_{i:08x}{k:02x}", b"{}"))
            recorder.socket.send(entry(FINISH, f"ex_{i:08x}{k:02x}", BODY))
        for k in range(32):
            recorder.socket.recv(1000)
    recorder.end()
    (subject.home / "state").chmod(0o755)  # as the daemon makes it


def fill_boxes(subject):
    ids = [subject.ask("/v1/sandboxes", {"timeout": 3600})["id"] for _ in range(BOXES)]
    answered = sum(name in json.dumps(subject.ask(f"/v1/sandboxes/{name}/commands", {"command": f"echo {name}"})) for name in ids)
    assert answered == BOXES, answered


def age(subject):
    def some(n):
        connection = http.client.HTTPConnection("127.0.0.1", subject.daemon.port, timeout=300)
        for _ in range(n):
            subject.execute(connection)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(some, [EXECUTIONS // 4] * 4))


def main():
    rows = []
    fresh, old = Subject("fresh").start(), Subject("old")
    write_history(old)
    old.start()
    rows.append(compare(f"{RECORDS:,} records in the history", old, fresh))
    old.stop()
    old = Subject("many").start()
    fill_boxes(old)
    rows.append(compare(f"{BOXES:,} live boxes, each has answered", old, fresh))
    old.stop()
    old = Subject("aged").start()
    age(old)
    rows.append(compare(f"after {EXECUTIONS:,} executions", old, fresh))
    old.stop()
    fresh.stop()
    return rows


if __name__ == "__main__":
    HEAD = ("| burden | p50 ms | fresh | ratio | CPU ms each | fresh | ratio |\n|---|---|---|---|---|---|---|")
    print(HEAD)
    table = "\n".join([HEAD, *main()])
    if given.write:
        put("growth", f"## What an execution costs as things grow (bench/growth.py)\n\n{table}\n\nGoal: ratios of at most 1.10.")
