"""A worker that was taken over (attacker F): whatever it says, the spawner gives it nothing and survives.

The spawner starts as its worker whatever program it is handed as descriptor 3; here that is Python with a hostile script.
"""

import os
import subprocess
import sys

import pytest
from harness import MODES, OUTER

PRELUDE = """
import array, os, random, socket, struct, sys
spawner = socket.socket(fileno=3)
def message(kind, body): return struct.pack("<HHI", 0x634e, kind, len(body)) + body
def text(word): return struct.pack("<I", len(word)) + word
def words(*all): return struct.pack("<I", len(all)) + text(b"".join(word + bytes(1) for word in all))
LIMITS = dict(memory=256 << 20, cpu=1000, cpu_time=0, wall=3000, pids=16, disk=1 << 20, inodes=300, files=64)
def order(number, *argv, dir=b"/workspace", env=(), **limits):
    return struct.pack("<Q8Q", number, *{**LIMITS, **limits}.values()) + text(dir) + words(*argv) + words(*env)
def send(data, fds=()):
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    spawner.sendmsg([data], control)
def receive():
    data = spawner.recv(65536)
    return (struct.unpack("<H", data[2:4])[0], data[8:]) if data else (0, b"")
def hello(): send(message(1, struct.pack("<I", VERSION))); assert receive()[0] == 101
def pipes():
    output, theirs = os.pipe()
    return output, [os.open("/dev/null", os.O_RDONLY), theirs, theirs]
def run(number, *argv, **more):
    output, fds = pipes()
    send(message(2, order(number, *argv, **more)), fds)
    os.close(fds[1])
    kind, body = receive()
    if kind != 102: return kind, body
    data = b""
    while part := os.read(output, 65536): data += part
    return receive()[0], data
"""

# what breaks the rules of the table: the worker is ended for it, with SIGKILL
FORBIDDEN = {
    "unknown_message": "hello(); send(message(77, b''))",
    "answer_as_request": "hello(); send(message(102, bytes(16)))",
    "run_before_hello": "_, fds = pipes(); send(message(2, order(1, b'true')), fds)",
    "hello_twice": "hello(); send(message(1, struct.pack('<I', VERSION)))",
    "wrong_version": "send(message(1, struct.pack('<I', 999)))",
    "no_message": "hello(); send(b'hello')",
    "wrong_size": "hello(); send(message(3, bytes(9))[:-1])",
    "trailing_bytes": "hello(); send(message(3, struct.pack('<QB', 1, 5) + b'x'))",
    "kill_with_foreign_cause": "hello(); send(message(3, struct.pack('<QB', 1, 1)))",
    "no_descriptors": "hello(); send(message(2, order(1, b'true')))",
    "too_many_descriptors": "hello(); send(message(2, order(1, b'true')), [0] * 60)",
    "descriptors_with_hello": "send(message(1, struct.pack('<I', VERSION)), [0, 0, 0])",
    "no_command": "hello(); _, fds = pipes(); send(message(2, order(1)), fds)",
    "relative_directory": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', dir=b'workspace')), fds)",
    "long_directory": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', dir=b'/' * 300)), fds)",
    "directory_with_nul": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', dir=b'/x' + bytes(1) + b'y')), fds)",
    "no_pids": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', pids=0)), fds)",
    "too_many_pids": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', pids=1 << 40)), fds)",
    "no_memory": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', memory=0)), fds)",
    "no_time": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', wall=0)), fds)",
    "endless_time": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', wall=2**64 - 1)), fds)",
    "endless_disk": "hello(); _, fds = pipes(); send(message(2, order(1, b'true', disk=2**63)), fds)",
    "same_id_twice": "hello(); [send(message(2, order(1, b'sleep', b'9')), pipes()[1]) for _ in range(2)]",
}

# what is within the rules and must give nothing; prints ESCAPED or held
WITHIN = {
    "chdir_to_descriptors_of_the_spawner": """
hello()
for number in range(3, 40):
    kind, data = run(number, b"/bin/pwd", dir=b"/proc/self/fd/%d" % number)
    if kind == 103 and data != b"/workspace\\n": print("ESCAPED: in", data)  # its own workspace is its own
""",
    "enter_another_box": """
hello()
output, fds = pipes()
send(message(2, order(1, b"sh", b"-c", b"cp /usr/bin/id /workspace/id; echo up; sleep 2")), fds)
receive()
os.read(output, 16)
for number in range(3, 40):
    kind, data = run(number + 100, b"/proc/self/fd/%d/id" % number)
    if kind == 103 and b"uid" in data: print("ESCAPED: ran a program of another box:", data)
""",
    "fuzz_the_spawner": """
hello()
random.seed(1)
good = message(2, order(7, b"true", env=(b"A=b",)))
send(message(3, struct.pack("<QB", 999, 5)))
print("held: a box that does not exist", flush=True)
data = bytearray(good)
for _ in range(8): data[random.randrange(8, len(data))] = random.randrange(256)
send(bytes(data), pipes()[1])
receive()
""",
    "hand_over_a_directory": """
hello()
output, theirs = os.pipe()
argv = (b"sh", b"-c", b"cd /proc/self/fd/0 && echo entered; ls /proc/self/fd/0/; cat /proc/self/fd/0/etc/hostname")
send(message(2, order(1, *argv)), [os.open("/", os.O_RDONLY), theirs, theirs])
os.close(theirs)
if receive()[0] == 102: print("ESCAPED: a directory of the host is descriptor 0 of a box:", os.read(output, 65536))
""",
    "hand_over_a_socket": """
hello()
ours, theirs = socket.socketpair()
send(message(2, order(1, b"true")), [theirs.fileno()] * 3)
if receive()[0] == 102: print("ESCAPED: a socket, which can carry descriptors, is 0 to 2 of a box")
""",
    "be_somebody": """
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
ids = [line.split() for line in open("/proc/self/uid_map")]
if os.getuid() == 0 and ids[0][:2] == ["0", "0"]: print("ESCAPED: the worker is root")
if status["NoNewPrivs"] != "1": print("ESCAPED: the worker may gain privilege")
""",
}


def version():
    from harness import func

    header = (func.ROOT / "src" / "kernel" / "boxwire.h").read_text()
    return header.split("NC_BOXWIRE_VERSION ")[1].split("U")[0]


def hostile(runner, mode, script):
    """Runs the spawner with Python as its worker, in a pid namespace of its own."""
    python = os.path.realpath("/usr/bin/python3")
    text = f"VERSION = {version()}\n{PRELUDE}\n{script}"
    start = 'exec 3<"$1"; shift; exec "$@"'
    words = [*OUTER, *MODES[mode], "sh", "-c", start, "sh", python, str(runner.binaries / "nacre-spawner"), "python3", "-c", text]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, cwd="/")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FORBIDDEN)
def test_worker_that_breaks_the_rules_is_ended(runner, mode, name):
    done = hostile(runner, mode, FORBIDDEN[name] + "\nwhile receive()[0]: pass\nimport time; time.sleep(20)")
    assert done.returncode == 125, done
    assert "ending the worker" in done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WITHIN)
def test_worker_within_the_rules_gets_nothing(runner, mode, name):
    done = hostile(runner, mode, WITHIN[name])
    assert "ESCAPED" not in done.stdout, done.stdout
    assert done.returncode in (0, 125), done


@pytest.mark.parametrize("mode", MODES)
def test_honest_worker_is_served(runner, mode):
    """A control: these messages are right, so that what is refused above is refused for its fault."""
    done = hostile(runner, mode, "hello(); print(run(1, b'echo', b'hello'))")
    assert done.stdout == "(103, b'hello\\n')\n", (done, sys.version)
