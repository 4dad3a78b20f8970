"""One spawner, many boxes: 2,000 in a row and 200 at once, without a leak."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD
from serving import Daemon
from test_spawner import GREETING, an_order, start_spawner
from wire import ENDED, FAILED, STARTED

# a worker that makes boxes on command from its standard input: "row N" one after another, "crowd N" at once
WORKER = rf"""
import os, socket, sys
spawner = socket.socket(fileno=3)
null = os.open("/dev/null", os.O_RDWR)
greeting, order = (bytes.fromhex(word) for word in sys.argv[1:3])
spawner.send(greeting)
spawner.recv(70000)
next_id = 1

def start(argv_order):
    global next_id
    body = bytearray(argv_order)
    body[12:20] = next_id.to_bytes(8, "little")
    next_id += 1
    socket.send_fds(spawner, [bytes(body)], [null] * 3)

def read(kind):
    answer = spawner.recv(70000)
    got = int.from_bytes(answer[2:4], "little")
    if got == {FAILED}:
        print("failed:", answer[24:], flush=True)
        sys.exit(1)
    return got == kind

for line in sys.stdin:
    how, count = line.split()
    count = int(count)
    if how == "row":
        for _ in range(count):
            start(order)
            while not read({ENDED}):
                pass
    else:
        for _ in range(count):
            start(bytes.fromhex(sys.argv[3]))
        started = ended = 0
        while ended < count:
            answer = spawner.recv(70000)
            if int.from_bytes(answer[2:4], "little") == {FAILED}:
                print("failed:", answer[24:], flush=True)
                sys.exit(1)
            answer = int.from_bytes(answer[2:4], "little")
            started += answer == {STARTED}
            ended += answer == {ENDED}
            if started == count and ended == 0:
                print("all", flush=True)
    print("done", flush=True)
"""


class Spawner:
    """A spawner with that worker."""

    def __init__(self, as_user):
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if as_user else []
        words = [GREETING[1].hex(), an_order(wall=60000).hex(), an_order(wall=60000, argv=(b"sleep", b"8")).hex()]
        self.process = start_spawner("-c", WORKER, *words, prefix=prefix, stdin=subprocess.PIPE)

    def say(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def state(self):
        base = pathlib.Path(f"/proc/{self.process.pid}")
        memory = int(re.search(r"VmRSS:\s+(\d+)", (base / "status").read_text())[1])
        return len(list((base / "fd").iterdir())), memory

    def settle(self):
        """Ends are told before the boxes are gone; here nothing is left but the worker."""
        deadline = time.monotonic() + 10
        while self.children() != "1" and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.children() == "1"

    def children(self):
        return subprocess.run(["pgrep", "-c", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.strip()


def host_counts():
    groups = subprocess.run(["find", "/sys/fs/cgroup", "-type", "d", "-name", "bx_*"], capture_output=True, text=True)
    return len(groups.stdout.split()), len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


@pytest.fixture
def spawner(as_root):
    running = Spawner(as_user=False)
    yield running
    running.process.stdin.close()
    assert running.process.wait(timeout=60) == 0, running.process.stderr.read()
    running.process.stdout.close()
    running.process.stderr.close()


def test_two_thousand_in_a_row(spawner):
    assert spawner.say("row 1") == "done"  # what others left is swept with the first box
    spawner.settle()
    host = host_counts()
    assert spawner.say("row 100") == "done"
    spawner.settle()
    before = spawner.state()
    assert spawner.say("row 1900") == "done"
    spawner.settle()
    after = spawner.state()
    assert after[0] == before[0], "descriptors leak"
    # AddressSanitizer keeps freed memory for a while; LeakSanitizer looks at the end
    slack = 16384 if "libasan" in subprocess.run(["ldd", BUILD / "nacre-spawner"], capture_output=True, text=True).stdout else 256
    assert after[1] <= before[1] + slack, "memory leaks"
    assert host_counts() == host


def test_two_hundred_at_once(spawner):
    assert spawner.say("row 10") == "done"
    spawner.settle()
    host = host_counts()
    before = spawner.state()
    assert spawner.say("crowd 200") == "all"  # all of them run before the first has ended
    assert spawner.process.stdout.readline() == "done\n"
    spawner.settle()
    assert spawner.state()[0] == before[0], "descriptors leak"
    assert host_counts() == host


def processes_one():
    """Process ids of all boxes' first processes on this machine."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"nacre-init\0"):
                found.add(path.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def test_nobody_survives_a_spawner_that_dies_while_boxes_are_made(tmp_path):
    """Each of some boxes at once is held up before it has told the kernel to die with its spawner."""
    before = processes_one()
    slowly = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pivot_root", "-e", "inject=pivot_root:delay_enter=400000"]
    daemon = Daemon(tmp_path, prefix=slowly)
    try:
        spawner = subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-f", "^nacre-spawner"], capture_output=True, text=True).stdout.split()[0]
        time.sleep(0.1)
        os.kill(int(spawner), signal.SIGKILL)
        until = time.monotonic() + 20
        time.sleep(1)
        while processes_one() - before and time.monotonic() < until:
            time.sleep(0.1)
        assert processes_one() <= before
    finally:
        daemon.process.kill()
        daemon.process.wait()
