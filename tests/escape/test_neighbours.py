"""Two boxes at the same time: neither sees, reaches or changes anything of the other."""

import subprocess

import pytest
from harness import MODES

# The first box leaves a trace of each kind and waits; the second looks for all of them.
LEAVE = """
import ctypes, fcntl, os, signal, socket, sys
libc = ctypes.CDLL(None)
for place in ("/tmp", "/dev/shm", "/workspace"):
    open(place + "/trace", "w").write("trace")
libc.shmget(4711, 4096, 0o1666)
server = socket.socket(socket.AF_UNIX); server.bind("\\0nacre-trace"); server.listen()
tcp = socket.socket(); tcp.bind(("127.0.0.1", 4711)); tcp.listen()
lock = open("/usr/bin/env"); fcntl.flock(lock, fcntl.LOCK_EX)
print(open("/proc/self/uid_map").read().split()[1], flush=True)
sys.stdin.read()
"""
LOOK = """
import ctypes, fcntl, os, socket
libc = ctypes.CDLL(None)
found = [place for place in ("/tmp", "/dev/shm", "/workspace") if os.listdir(place)]
if libc.shmget(4711, 0, 0) >= 0: found.append("shared memory")
for address in ("\\0nacre-trace", ("127.0.0.1", 4711)):
    try:
        socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET).connect(address)
        found.append(repr(address))
    except OSError: pass
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != str(os.getpid())]
if others: found.append(f"processes {others}")
for pid in range(2, 2000):
    if pid != os.getpid() and libc.kill(pid, 0) == 0: found.append(f"signalled {pid}")
try: fcntl.flock(open("/usr/bin/env"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: found.append("lock")
print(open("/proc/self/uid_map").read().split()[1], *found, sep="|")
"""


@pytest.fixture(params=MODES)
def pair(runner, request):
    """The mode, the first box's id, and what the second found."""
    words = runner.nacre(request.param, "--", "python3", "-c")
    first = subprocess.Popen([*words, LEAVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    first_id = first.stdout.readline().strip()
    second = subprocess.run([*words, LOOK], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, cwd="/")
    first.communicate(timeout=20)
    second_id, *found = second.stdout.strip().split("|")
    return request.param, first_id, second_id, found


def test_neighbours_do_not_meet(pair):
    assert [what for what in pair[3] if what != "lock"] == []


def test_neighbours_have_different_users(pair):
    mode, first_id, second_id, _ = pair
    if mode != "root":
        pytest.skip("without root there is one user id for all boxes")
    assert first_id != second_id and abs(int(first_id) - int(second_id)) >= 65536


@pytest.mark.xfail(reason="decision: inodes of /usr are the host's own, and flock on them is seen by all", strict=False)
def test_neighbours_do_not_signal_by_locks(pair):
    assert "lock" not in pair[3]
