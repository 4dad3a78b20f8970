"""Each limit, hit exactly: what nacre says of it, and when. As root, since control groups hold most of them."""

import json
import subprocess
import time

import pytest

from conftest import NACRE, environment

BUSY = "while :; do :; done"


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    done = subprocess.run([NACRE, "doctor", "--json"], env=environment(tmp_path_factory.mktemp("home")), capture_output=True, text=True)
    return {name: entry["grade"] for name, entry in json.loads(done.stdout)["strength"].items()}


@pytest.fixture
def box(as_root, grades, tmp_path):
    if any(grades[name] != "full" for name in ("memory", "cpu", "pids")):
        pytest.skip("no control groups here")

    def run(*args, timeout=30):
        done = subprocess.run([NACRE, "exec", "--json", *map(str, args)], env=environment(tmp_path), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    run.python = lambda code, *options, **more: run(*options, "--", "python3", "-c", code, **more)
    return run


def cpu_seconds(answer):
    return answer["usage"]["cpu_user_seconds"] + answer["usage"]["cpu_system_seconds"]


MEMORY = {
    "one": "x = b'x' * (200 << 20)",
    "child": "import os\nif os.fork() == 0: x = b'x' * (200 << 20)\nos.wait()\nimport time; time.sleep(5)",
    "children_together": "import os\nfor _ in range(8):\n  if os.fork() == 0: x = b'x' * (12 << 20); os.read(os.pipe()[0], 1)\nimport time; time.sleep(5)",
    "workspace": "open('/workspace/x', 'wb').write(bytes(90 << 20))",
}


@pytest.mark.parametrize("how", MEMORY)
def test_memory(box, how):
    started = time.monotonic()
    answer = box.python(MEMORY[how], "--memory", "64MB", "--disk", "200MB")
    assert (answer["status"], answer["signal"]) == ("memory_limit", 9), answer
    assert 48 << 20 < answer["usage"]["memory_peak_bytes"] <= 64 << 20
    assert answer["limits"]["hit"] == [] and time.monotonic() - started < 4


def test_memory_below_the_limit(box):
    answer = box.python("x = b'x' * (40 << 20)", "--memory", "64MB")
    assert (answer["status"], answer["limits"]["hit"]) == ("success", [])


def test_memory_without_swap(box):
    """Nothing of the box goes to swap to evade the limit."""
    answer = box.python("x = [bytearray(1 << 20) for _ in range(200)]", "--memory", "32MB")
    assert answer["status"] == "memory_limit" and answer["usage"]["memory_peak_bytes"] <= 32 << 20


@pytest.mark.parametrize("script", [
    BUSY, f"for n in 1 2 3 4; do ({BUSY}) & done; wait", f"trap '' XCPU; {BUSY}",
    f"for n in 1 2 3 4; do (trap '' XCPU TERM; {BUSY}) & done; wait", "while :; do /bin/true; done"],
    ids=["one", "four", "one_that_ignores", "four_that_ignore", "many_short"])
def test_cpu_time(box, script):
    answer = box("--cpu-time", "1s", "--cpus", "2", "--", "sh", "-c", script)
    assert answer["status"] == "cpu_limit" and answer["exit_code"] is None, answer
    assert 0.9 <= cpu_seconds(answer) <= 1.3, cpu_seconds(answer)
    # what starts programs all the time waits for its turn beside others of this host; the bill above is exact all the same
    assert answer["usage"]["wall_seconds"] <= 2 or "true" in script, answer["usage"]


def test_cpu_time_in_parts_of_a_second(box):
    answer = box("--cpu-time", "300ms", "--", "sh", "-c", BUSY)
    assert answer["status"] == "cpu_limit" and 0.25 <= cpu_seconds(answer) <= 0.5, answer


def test_cpu_time_is_not_wall_time(box):
    answer = box("--cpu-time", "500ms", "--", "sleep", "1")
    assert answer["status"] == "success" and answer["usage"]["wall_seconds"] >= 1


@pytest.mark.parametrize("cpus", ["1", "0.2"])
def test_wall_under_load(box, cpus):
    """Four busy loops beside it, and four inside."""
    load = [subprocess.Popen(["sh", "-c", BUSY]) for _ in range(4)]
    try:
        answers = [box("--timeout", "700ms", "--cpus", cpus, "--", "sh", "-c", f"for n in 1 2 3 4; do ({BUSY}) & done; wait") for _ in range(3)]
    finally:
        for process in load:
            process.kill()
            process.wait()
    assert all((answer["status"], answer["signal"]) == ("timeout", 9) for answer in answers), answers
    walls = [answer["usage"]["wall_seconds"] for answer in answers]
    assert all(0.7 <= wall <= 0.75 for wall in walls), walls


@pytest.mark.parametrize("wall", ["1ms", "10ms", "100ms"])
def test_short_walls(box, wall):
    answer = box("--timeout", wall, "--", "sleep", "9")
    assert answer["status"] == "timeout" and answer["usage"]["wall_seconds"] <= float(wall[:-2]) / 1000 + 0.05, answer["usage"]


def test_pids(box):
    answer = box.python("""
import os, threading
made = 0
try:
    while made < 100:
        if os.fork() == 0: os.read(os.pipe()[0], 1)
        made += 1
except BlockingIOError: print(made + 1)
""", "--pids", "12")
    assert (answer["status"], answer["stdout"], answer["limits"]["hit"]) == ("success", "12\n", ["pids"]), answer
    assert answer["usage"]["pids_peak"] in (None, 12)


def test_pids_count_threads(box):
    answer = box.python("""
import threading
stop, made = threading.Event(), 1
try:
    while made < 100: threading.Thread(target=stop.wait, daemon=True).start(); made += 1
except RuntimeError: print(made)
stop.set()
""", "--pids", "12")
    assert (answer["stdout"], answer["limits"]["hit"]) == ("12\n", ["pids"]), answer


def test_one_process_alone(box):
    answer = box.python("import os\ntry: os.fork(); print('forked')\nexcept OSError: print('refused')", "--pids", "1")
    assert (answer["stdout"], answer["limits"]["hit"]) == ("refused\n", ["pids"]), answer


FILL = """
import os
written = 0
with open({path!r}, "wb", buffering=0) as file:
    try:
        while True: written += file.write(bytes(4096))
    except OSError as error: print(error.errno, written)
"""


@pytest.mark.parametrize("path", ["/workspace/x", "/tmp/x", "/dev/shm/x", "/var/tmp/x"])
def test_disk(box, path):
    answer = box.python(FILL.format(path=path), "--disk", "2MB")
    number, written = map(int, answer["stdout"].split())
    assert (answer["status"], number, answer["limits"]["hit"]) == ("success", 28, ["disk"]), answer
    assert (2 << 20) - 65536 <= written <= 2 << 20 and answer["usage"]["disk_bytes"] == 2 << 20


def test_disk_that_was_full_for_a_moment(box):
    """It is full, the program sleeps a little and makes room: the limit was hit all the same."""
    answer = box.python(FILL.format(path="/tmp/x") + "import time; time.sleep(0.4); os.unlink('/tmp/x')", "--disk", "2MB")
    assert answer["limits"]["hit"] == ["disk"] and answer["usage"]["disk_bytes"] <= 2 << 20, answer


def test_disk_below_the_limit(box):
    answer = box.python("open('/tmp/x', 'wb').write(bytes(1 << 20))", "--disk", "2MB")
    assert (answer["status"], answer["limits"]["hit"]) == ("success", []) and answer["usage"]["disk_bytes"] >= 1 << 20


def test_disk_by_memory_mapped_files(box):
    answer = box.python("""
import mmap, os
fd = os.open("/tmp/x", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 8 << 20)
area = mmap.mmap(fd, 8 << 20)
for at in range(0, 8 << 20, 4096): area[at] = 1
""", "--disk", "2MB")
    assert (answer["status"], answer["signal"], answer["exit_code"]) == ("disk_limit", 7, None), answer


def test_a_bus_error_of_its_own_is_no_disk_limit(box):
    answer = box("--", "sh", "-c", "kill -BUS $$")
    assert (answer["status"], answer["signal"]) == ("killed", 7), answer


def test_inodes(box):
    answer = box.python("made = 0\ntry:\n  while made < 5000: open(f'/tmp/{made}', 'w').close(); made += 1\nexcept OSError as e: print(e.errno, made)", "--inodes", "100")
    number, made = map(int, answer["stdout"].split())
    assert (answer["status"], number, answer["limits"]["hit"]) == ("success", 28, ["inodes"]) and 80 <= made <= 100, answer


def test_inodes_follow_the_disk(box):
    answer = box.python("made = 0\ntry:\n  while made < 5000: open(f'/tmp/{made}', 'w').close(); made += 1\nexcept OSError as e: print(made)", "--disk", "1MB")
    assert int(answer["stdout"]) < (1 << 20) // 4096 + 64 and answer["limits"]["hit"] == ["inodes"], answer


@pytest.mark.parametrize("limit", [16, 100, 1024])
def test_open_files(box, limit):
    answer = box.python("import os, time\nn = 3\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(e.errno, n)\ntime.sleep(0.3)", "--files", limit)
    assert (answer["status"], answer["stdout"], answer["limits"]["hit"]) == ("success", f"24 {limit}\n", ["files"]), answer


def test_open_files_of_a_child(box):
    answer = box.python("import os, time\nif os.fork() == 0:\n  try:\n    while True: os.dup(0)\n  except OSError: time.sleep(0.3); os._exit(0)\nos.wait()", "--files", "50")
    assert answer["limits"]["hit"] == ["files"], answer


def test_open_files_below_the_limit(box):
    answer = box.python("import os, time\nfor _ in range(40): os.dup(0)\ntime.sleep(0.3)", "--files", "50")
    assert answer["limits"]["hit"] == [], answer


@pytest.mark.parametrize("script, size", [("yes", 1000), ("yes >&2", 1000), ("yes & yes >&2", 4096), ("head -c 1001 /dev/zero; sleep 9", 1000), ("yes", 1)])
def test_output(box, script, size):
    started = time.monotonic()
    answer = box("--output", size, "--", "sh", "-c", script)
    assert (answer["status"], answer["truncated"], len(answer["stdout"]) + len(answer["stderr"])) == ("output_limit", True, size), answer
    assert time.monotonic() - started < 5


def test_output_of_exactly_the_limit(box):
    answer = box("--output", "1000", "--", "sh", "-c", "head -c 600 /dev/zero; head -c 400 /dev/zero >&2")
    assert (answer["status"], answer["truncated"], answer["usage"]["output_bytes"]) == ("success", False, 1000)


def test_several_limits_at_once(box):
    code = FILL.format(path="/tmp/x") + """
made = 0
try:
    while made < 99:
        if os.fork() == 0: os.read(os.pipe()[0], 1)
        made += 1
except OSError: pass
try:
    while True: os.dup(0)
except OSError: pass
import time; time.sleep(0.3)
"""
    answer = box.python(code, "--disk", "2MB", "--pids", "10", "--files", "40")
    assert answer["status"] == "success" and set(answer["limits"]["hit"]) == {"disk", "pids", "files"}, answer


@pytest.mark.parametrize("option, values", {
    "--memory": ["0", "7MB", "2TB", "-1", "x", "1.5.5", ""], "--cpus": ["0", "0.001", "1025", "x", "-1"], "--cpu-time": ["0", "8d", "x", "-1s"],
    "--timeout": ["0", "8d", "x", "-1s", "0.0001ms"], "--pids": ["0", "32769", "1.5", "x", "-1"], "--disk": ["0", "1KB", "2TB", "x"],
    "--inodes": ["0", "15", "99999999999", "x"], "--files": ["0", "7", "1048577", "x"], "--output": ["0", "2TB", "x"]}.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_bad_values(nacre, option, values):
    for value in values:
        done = nacre("exec", option, value, "--", "echo", "ran")
        assert done.returncode == 125 and f"Option '{option}'" in done.stderr and done.stdout == "", (value, done)


@pytest.mark.parametrize("tier", ["container", "process"])
def test_every_limit_can_be_read(box, tier):
    """Shells, sudo, gdb and test suites read them all; only setting that of core files is refused."""
    read = "import resource as r; print([r.getrlimit(i)[1] for i in range(16)][r.RLIMIT_CORE])"
    answer = box.python(read, "--tier", tier)
    assert (answer["status"], answer["stdout"], answer["denials"]) == ("success", "1\n", []), answer
    answer = box("--tier", tier, "--", "bash", "-c", "ulimit -a; ulimit -S -n 100")
    assert (answer["status"], answer["denials"]) == ("success", []), answer
    answer = box("--tier", tier, "--", "bash", "-c", "ulimit -c 0")
    assert answer["exit_code"] == 1 and [entry["object"] for entry in answer["denials"]] == ["prlimit64"], answer
