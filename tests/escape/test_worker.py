"""A worker that was taken over (attacker F): whatever it says, the spawner gives it nothing and survives.

With WORKER 0 the spawner starts whatever program it is handed as descriptor 4; here that is Python with a hostile script.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
from harness import MODES, OUTER, func

WIRE = (func.ROOT / "tests/func/wire.py").read_text()
PRELUDE = WIRE + """
import random, sys
worker = Worker()
send, receive = worker.send, worker.receive
def hello(): return worker.hello()
def pipes():
    output, theirs = os.pipe()
    return output, [os.open("/dev/null", os.O_RDONLY), theirs, theirs]
def run(number, *argv, **more):
    kind, body, data = worker.finish(number, argv=argv, **more)
    return (kind, data) if kind == ENDED else (kind, body)
def give(fds=3, **fields):
    # an order that is right but for what is named
    send(order(1, **fields), [os.open("/dev/null", os.O_RDWR)] * fds)
"""

# what breaks the rules of the table: the worker is ended for it, with SIGKILL
FORBIDDEN = {
    "unknown_message": "hello(); send(message(77, b''))",
    "answer_as_request": "hello(); send(message(102, bytes(16)))",
    "run_before_hello": "_, fds = pipes(); send(order(1), fds)",
    "hello_twice": "hello(); send(message(1, struct.pack('<I', VERSION)))",
    "older_version": "send(message(HELLO, struct.pack('<I', VERSION - 1)))",
    "no_message": "hello(); send(b'hello')",
    "wrong_size": "hello(); send(message(3, bytes(9))[:-1])",
    "trailing_bytes": "hello(); send(message(3, struct.pack('<QB', 1, 5) + b'x'))",
    "kill_with_foreign_cause": "hello(); send(message(3, struct.pack('<QB', 1, 1)))",
    "no_descriptors": "hello(); send(order(1))",
    "too_many_descriptors": "hello(); send(order(1), [0] * 60)",
    "descriptors_with_hello": "send(message(1, struct.pack('<I', VERSION)), [0, 0, 0])",
    "no_command": "hello(); _, fds = pipes(); send(order(1, argv=()), fds)",
    "relative_directory": "hello(); _, fds = pipes(); send(order(1, directory=b'workspace'), fds)",
    "long_directory": "hello(); _, fds = pipes(); send(order(1, directory=b'/' * 300), fds)",
    "directory_with_nul": "hello(); _, fds = pipes(); send(order(1, directory=b'/x' + bytes(1) + b'y'), fds)",
    "no_pids": "hello(); _, fds = pipes(); send(order(1, pids=0), fds)",
    "too_many_pids": "hello(); _, fds = pipes(); send(order(1, pids=1 << 40), fds)",
    "no_memory": "hello(); _, fds = pipes(); send(order(1, memory=0), fds)",
    "no_time": "hello(); _, fds = pipes(); send(order(1, wall=0), fds)",
    "endless_time": "hello(); _, fds = pipes(); send(order(1, wall=2**64 - 1), fds)",
    "endless_disk": "hello(); _, fds = pipes(); send(order(1, disk=2**63), fds)",
    "unknown_flag": "hello(); give(flags=1 << 31)",
    "all_flags": "hello(); give(6, flags=0xffffffff)",
    "tier_2": "hello(); give(tier=2)",
    "rows_beyond": "hello(); give(0, flags=TTY, rows=65536)",
    "columns_beyond": "hello(); give(0, flags=TTY, columns=1 << 31)",
    "binds_17": "hello(); give(binds=[(0, 0, b'/mnt')] * 17)",
    "binds_without_bytes": "hello(); give(n_binds=16)",
    "bind_that_nobody_allowed": "hello(); give(binds=[(0, 1, b'/mnt')])",
    "bind_of_a_descriptor_of_the_spawner": "hello(); give(binds=[(2**32 - 5, 1, b'/mnt')])",
    "image_that_is_a_file": "hello(); send(order(1, flags=IMAGE), [*pipes()[1], os.open('/usr/bin/env', os.O_RDONLY)])",
    "image_in_a_process_box": "hello(); send(order(1, flags=IMAGE, tier=PROCESS), [*pipes()[1], os.open('/usr', os.O_RDONLY)])",
    "layer_that_is_a_file": "hello(); send(order(1, layers=[0]), [*pipes()[1], os.open('/usr/bin/env', os.O_RDONLY)])",
    "layer_in_a_process_box": "hello(); send(order(1, layers=[0], tier=PROCESS), [*pipes()[1], os.open('/usr', os.O_RDONLY)])",
    "layer_that_is_a_mere_path": "hello(); send(order(1, layers=[0]), [*pipes()[1], os.open('/root', os.O_PATH)])",
    "layer_of_another_to_write": "hello(); send(order(1, layers=[1]), [*pipes()[1], os.open('/tmp', os.O_RDONLY)])",
    "layers_3": "hello(); send(order(1, layers=[0, 0, 0]), [*pipes()[1], *[os.open('/usr', os.O_RDONLY)] * 3])",
    "layers_without_bytes": "hello(); give(5, n_fds=10)",
    "layer_for_a_next_command": "hello(); worker.finish(1, flags=STAY); send(message(NEXT, order_body(1, layers=[0])), [*pipes()[1], os.open('/usr', os.O_RDONLY)])",
    "too_few_to_keep": "hello(); give(3, flags=KEEP)",
    "keep_a_directory": "hello(); send(order(1, flags=KEEP), [*pipes()[1], os.open('/', os.O_RDONLY), 0])",
    "pipes_with_a_terminal": "hello(); give(3, flags=TTY)",
    "too_many_ready": "hello(); send(ready(257))",
    "forget_running": "hello(); worker.run(1, keep=True, argv=(b'sleep', b'9')); receive(); send(forget(1))",
    "adopt_as_request": "hello(); send(message(ADOPT, bytes(8)), [0, 0])",
    "process_box_with_binds": "hello(); give(tier=PROCESS, binds=[(0, 0, b'/mnt')])",
    "same_id_twice": "hello(); [send(order(1, argv=(b'sleep', b'9')), pipes()[1]) for _ in range(2)]",
}

# what is within the rules and must give nothing; prints ESCAPED or held
WITHIN = {
    "chdir_to_descriptors_of_the_spawner": """
hello()
for number in range(3, 40):
    kind, data = run(number, b"/bin/pwd", directory=b"/proc/self/fd/%d" % number)
    if kind == 103 and data != b"/workspace\\n": print("ESCAPED: in", data)  # its own workspace is its own
""",
    "enter_another_box": """
hello()
output, fds = pipes()
send(order(1, argv=(b"sh", b"-c", b"cp /usr/bin/id /workspace/id; echo up; sleep 2")), fds)
receive()
os.read(output, 16)
for number in range(3, 40):
    kind, data = run(number + 100, b"/proc/self/fd/%d/id" % number)
    if kind == 103 and b"uid" in data: print("ESCAPED: ran a program of another box:", data)
""",
    "fuzz_the_spawner": """
hello()
random.seed(1)
good = order(7, argv=(b"true",), env=(b"A=b",))
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
send(order(1, argv=argv), [os.open("/", os.O_RDONLY), theirs, theirs])
os.close(theirs)
if receive()[0] == 102: print("ESCAPED: a directory of the host is descriptor 0 of a box:", os.read(output, 65536))
""",
    "hand_over_a_socket": """
hello()
ours, theirs = socket.socketpair()
send(order(1), [theirs.fileno()] * 3)
if receive()[0] == 102: print("ESCAPED: a socket, which can carry descriptors, is 0 to 2 of a box")
""",
    "walk_out_by_the_directory_of_a_process_box": """
scratch = worker.scratch(hello())
for number, place in enumerate((b"/", b"/etc", b"/root", b"/proc/self/fd/3", b"/proc/1/cwd", scratch.encode() + b"/.."), 1):
    kind, data = run(number, b"sh", b"-c", b"ls -a . | head -3; cat etc/passwd passwd shadow", directory=place, tier=PROCESS)
    if kind == ENDED and (b"root" in data or b"etc" in data.split()): print("ESCAPED: from", place, data)
""",
    "use_another_process_box_s_directory": """
scratch = worker.scratch(hello()).encode()
output = worker.run(1, argv=(b"sh", b"-c", b"echo secret-of-the-first >secret; chmod 777 . secret; echo up; sleep 3"), directory=scratch + b"/1/workspace", tier=PROCESS)
receive()
os.read(output, 16)
kind, data = run(2, b"sh", b"-c", b"cat secret; echo x >planted; ls", directory=scratch + b"/1/workspace", tier=PROCESS)
if b"secret-of" in data or os.path.exists(scratch + b"/1/workspace/planted"): print("ESCAPED: in the neighbour's directory:", data)
""",
    "take_a_directory_for_an_image_that_it_cannot_read": """
hello()
os.environ.clear()
for place in ("/root", "/", "/etc", "/var", "/proc/1/root"):
    try: image = os.open(place, os.O_PATH)
    except OSError: continue
    output, fds = pipes()
    send(order(1, argv=(b"sh", b"-c", b"cat /etc/shadow /shadow /etc/machine-id /machine-id; ls /root"), flags=IMAGE), [*fds, image])
    os.close(fds[1])
    kind, body, _ = receive()
    if kind == STARTED:
        data = b""
        while part := os.read(output, 65536): data += part
        receive()
        if b"root:" in data: print("ESCAPED: read", place, data)
""",
    "read_by_a_layer_what_others_may_not": """
hello()
for number, place in enumerate(("/etc", "/var/lib", "/proc", "/run", "/"), 1):
    try: layer = os.open(place, os.O_RDONLY)
    except OSError: continue
    command = b"cd /opt/nacre/layer0; cat shadow etc/shadow gshadow 1/environ proc/1/environ; ls root 1/fd 1/root; echo x >>1/oom_score_adj && echo ESCAPED"
    kind, data = run(number, b"sh", b"-c", command, layers=[0], layer_fds=[layer])
    if kind == ENDED and (b"root:" in data or b"PATH=" in data or b"ESCAPED" in data or b"canary" in data): print("ESCAPED:", place, data)
""",
    "make_a_program_of_its_own_in_a_layer": """
import tempfile
hello()
above = tempfile.mkdtemp(dir="/var/tmp")
os.mkdir(above + "/layer")
layer = os.open(above + "/layer", os.O_RDONLY)
command = b"cd /opt/nacre/layer0; cp /bin/true .; chmod 6755 true; chmod u+s .; install -m 4755 /bin/true set; mknod null c 1 3; setcap cap_setuid+ep true; cp true ../x; echo y >../../y; echo z >/proc/self/cwd/../z; true"
kind, data = run(1, b"sh", b"-c", command, layers=[1], layer_fds=[layer])
found = [os.path.join(root, name) for root, dirs, files in os.walk(above) for name in dirs + files]
if kind != ENDED or above + "/layer/true" not in found: print("broken: nothing could be written", kind, data)
for path in found:
    if os.lstat(path).st_mode & 0o6000 or os.path.dirname(path) == above and path != above + "/layer" or "security.capability" in os.listxattr(path):
        print("ESCAPED:", path, oct(os.lstat(path).st_mode))
import shutil
shutil.rmtree(above)
""",
    "move_a_layer_while_a_box_stands_in_it": """
import tempfile, time
hello()
above = tempfile.mkdtemp(dir="/var/tmp")
os.makedirs(above + "/layer/deep")
open(above + "/beside", "w").write("canary-of-the-host")
layer = os.open(above + "/layer", os.O_RDONLY)
output = worker.run(1, argv=(b"sh", b"-c", b"cd /opt/nacre/layer0/deep; echo in; read x; cat ../beside ../../beside; ls .. ../..; pwd -P"), layers=[1], layer_fds=[layer], stdin=(go := os.pipe())[0])
receive(); os.read(output, 3)
os.rename(above + "/layer/deep", above + "/deep")
os.write(go[1], b"go\n")
receive()
if b"canary" in os.read(output, 65536): print("ESCAPED: behind the layer")
import shutil
shutil.rmtree(above)
""",
    "read_by_an_image_what_landlock_keeps_from_it": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
attributes = ctypes.create_string_buffer(struct.pack("Q", (1 << 13) - 1), 8)
ruleset = libc.syscall(444, attributes, 8, 0)
assert libc.syscall(446, ruleset, 0) == 0
hello()
try: open(secret + "/canary"); print("broken: Landlock does not hold this worker")
except PermissionError: pass
# Landlock never refuses O_PATH, and the filter of the real worker allows openat()
null, theirs = os.pipe(), os.pipe()
for place in ("/", "/var", "/var/tmp", secret):
    output, writer = os.pipe()
    command = b"for f in /var/tmp/*/canary /tmp/*/canary /*/canary /canary; do cat $f; done 2>/dev/null; true"
    send(order(1, argv=(b"/bin/sh", b"-c", command), flags=IMAGE), [null[0], writer, writer, os.open(place, os.O_PATH)])
    os.close(writer)
    kind, body, _ = receive()
    if kind != STARTED: continue
    data = b""
    while part := os.read(output, 65536): data += part
    receive()
    if b"canary-of-the-host" in data: print("ESCAPED: read through the image", place)
""",
    "be_somebody": """
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
ids = [line.split() for line in open("/proc/self/uid_map")]
if os.getuid() == 0 and ids[0][:2] == ["0", "0"]: print("ESCAPED: the worker is root")
if status["NoNewPrivs"] != "1": print("ESCAPED: the worker may gain privilege")
""",
}


def hostile(runner, mode, script):
    """Runs the spawner with Python as its worker, in a pid namespace of its own."""
    python = os.path.realpath("/usr/bin/python3")
    start = 'exec 4<"$1"; shift; exec "$@"'
    spawner = [str(runner.binaries / "nacre-spawner"), "0", "0", "0"]
    words = [*OUTER, *MODES[mode], "sh", "-c", start, "sh", python, *spawner, "python3", "-c", f"{PRELUDE}\n{script}"]
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
    with tempfile.TemporaryDirectory(prefix="nacre-secret-", dir="/var/tmp") as secret:
        os.chmod(secret, 0o755)
        pathlib.Path(secret, "canary").write_text("canary-of-the-host")
        done = hostile(runner, mode, f"secret = {secret!r}\n{WITHIN[name]}")
    assert "ESCAPED" not in done.stdout and "broken" not in done.stdout, done.stdout
    assert done.returncode in (0, 125), done


@pytest.mark.parametrize("mode", MODES)
def test_honest_worker_is_served(runner, mode):
    """A control: these messages are right, so that what is refused above is refused for its fault."""
    done = hostile(runner, mode, "hello(); print(run(1, b'echo', b'hello'))")
    assert done.stdout == "(103, b'hello\\n')\n", (done, sys.version)


def test_messages_are_of_this_version():
    """wire.py and the header must not drift apart: else everything above is refused for its version alone."""
    header = (func.ROOT / "src" / "kernel" / "boxwire.h").read_text()
    assert f"NC_BOXWIRE_VERSION {wire_version()}U" in header


def wire_version():
    return WIRE.split("VERSION = ")[1].split()[0]
