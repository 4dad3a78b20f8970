"""nacre exec: a command in a fresh box, as root and as an ordinary user."""

import base64
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest

from conftest import BUILD, NOBODY, environment, open_way
from leftovers import our_groups

PROGRAMS = ("nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-init", "nacre-files", "nacre-sudo", *(path.name for path in BUILD.glob("nacre-exec")))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Copies that an ordinary user may execute, wherever the build tree is."""
    directory = tmp_path_factory.mktemp("programs")
    open_way(directory)
    for name in PROGRAMS:
        shutil.copy(BUILD / name, directory / name)
    return directory


@pytest.fixture(params=["root", "user"])
def box(request, programs, tmp_path):
    """Runs `nacre exec` with the given arguments, as root or as nobody."""
    prefix = []
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    if request.param == "user":
        if os.geteuid() == 0:
            prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        if subprocess.run([*prefix, "unshare", "--user", "true"], capture_output=True).returncode != 0:
            pytest.skip("no user namespaces for ordinary users here")

    def run(*args, **options):
        options.setdefault("timeout", 60)
        options.setdefault("text", True)
        options.setdefault("capture_output", True)
        options.setdefault("env", environment(tmp_path))
        if options.get("input") is None:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*prefix, programs / "nacre", "exec", *args], **options)

    def start(*args, **options):
        return subprocess.Popen([*prefix, programs / "nacre", "exec", *args], env=environment(tmp_path), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    run.start = start
    run.user = request.param
    return run


def unique_nap():
    """A long sleep that pgrep cannot confuse with anybody else's."""
    return f"sleep {random.randint(10 ** 6, 10 ** 9)}"


def python(box, code, *options, **more):
    return box(*options, "--", "python3", "-c", code, **more)


def test_output_input_and_status_are_passed_through(box):
    done = box("--", "sh", "-c", "cat; echo err >&2; exit 42", input="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (42, "in\n", "err\n")


def test_a_caller_who_is_nice_already(box):
    """What he has given up he cannot take back: his boxes run, as nice as he is; root's have a place of their own."""
    done = box("--", "nice", preexec_fn=lambda: os.nice(7))
    assert (done.stdout, done.returncode) == ("0\n" if box.user == "root" else "7\n", 0), done.stderr


def test_first_word_ends_the_options(box):
    done = box("echo", "--timeout", "x")
    assert (done.returncode, done.stdout) == (0, "--timeout x\n")


@pytest.mark.parametrize("command, code, words", [
    (["nosuch"], 127, "No such file or directory"),
    (["/nosuch/program"], 127, "No such file or directory"),
    (["/etc/passwd"], 126, "Permission denied"),
    (["/usr"], 126, "Permission denied"),
])
def test_what_cannot_be_started(box, command, code, words):
    done = box("--", *command)
    assert done.returncode == code and words in done.stderr and done.stdout == ""


def test_signals_become_128_plus_n(box):
    assert box("--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert box("--", "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL


THREADS_END = """
import ctypes, os, platform, threading, time
end = lambda code: ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, code)
if os.fork() == 0:
    time.sleep(0.01)
    end(9)
threading.Thread(target=lambda: (time.sleep(0.02), end(5))).start()
end(3)
"""


def test_status_is_the_programs_however_it_ends(box):
    """Process 1 is killed while the last ones are still on their way out: nothing of that is seen."""
    for i in range(20):
        assert box("--", "sh", "-c", f"exit {i}").returncode == i
        assert box("--", "sh", "-c", "(sleep 0.01; exit 7) & kill -USR1 $$").returncode == 128 + signal.SIGUSR1
    outside = subprocess.run(["python3", "-c", THREADS_END]).returncode  # kernels differ
    for _ in range(5):
        assert python(box, THREADS_END).returncode == outside
        done = box("--json", "--", "sh", "-c", "echo a; sh -c 'echo b' & exit 4")
        assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (4, 4), done.stdout


def test_timeout_ends_everything_and_exits_124(box):
    started = time.monotonic()
    nap = unique_nap()
    done = box("--timeout", "300ms", "--", "sh", "-c", f"trap '' TERM INT; (setsid {nap} &) ; {nap}")
    assert done.returncode == 124
    assert time.monotonic() - started < 20
    assert subprocess.run(["pgrep", "-xf", nap], capture_output=True).returncode == 1


def test_background_process_does_not_outlive_the_command(box):
    nap = unique_nap()
    done = box("--", "sh", "-c", f"{nap} & echo done")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert subprocess.run(["pgrep", "-xf", nap], capture_output=True).returncode == 1


def test_inside_it_is_an_ordinary_machine_of_its_own(box):
    code = """
import getpass, os, socket
assert os.getuid() == 1000 and getpass.getuser() == "sandbox" and os.getcwd() == "/workspace"
assert socket.gethostname() == "nacre"
assert sorted(os.listdir("/dev")) == sorted(
    "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split()), os.listdir("/dev")
assert sorted(os.listdir("/sys")) == ["cgroups", "devices", "fs"] and os.listdir("/sys/fs") == ["cgroup"]
for path in ("/home", "/run", "/boot", "/etc/shadow", "/var/log", "/opt", "/srv"):
    assert not os.path.exists(path), path
assert os.listdir("/root") == [] or not os.access("/root", os.R_OK)
for path in ("/", "/usr", "/etc", "/dev", "/proc"):
    try:
        open(path + "/canary", "w")
    except OSError:
        continue
    raise AssertionError(path + " can be written")
for path in ("/workspace", "/tmp", "/dev/shm", "/var/tmp"):
    open(path + "/file", "w").write("x")
assert set(os.environ) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "SHELL", "TMPDIR", "USER", "GOMAXPROCS", "JAVA_TOOL_OPTIONS", "PWD", "OLDPWD", "SHLVL", "_"}
assert sorted(map(int, os.listdir("/proc/self/fd")))[:3] == [0, 1, 2] and len(os.listdir("/proc/self/fd")) <= 4
assert {name for _, name in socket.if_nameindex()} == {"lo"}
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
assert status["NoNewPrivs"].strip() == "1"
print("good")
"""
    done = python(box, code)
    assert done.stdout == "good\n", done.stderr


def test_servers_on_loopback_work(box):
    code = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
print(socket.create_connection(server.getsockname()).recv(5).decode())
"""
    assert python(box, code, "--pids", "16").stdout == "hello\n"


def test_nothing_but_loopback_is_reachable(box):
    code = """
import socket
for family, address in ((socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_INET6, ("2001:db8::1", 80))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind).connect(address)
        except OSError as error:
            print(error.strerror)
"""
    done = python(box, code)
    assert done.stdout == "Network is unreachable\n" * 4, done.stdout + done.stderr


def test_environment_comes_from_the_options_alone(box, tmp_path):
    done = box("--env", "A=1", "--env=B=x=y", "--env", "HOME=/tmp", "--", "env",
               env={**environment(tmp_path), "SECRET_TOKEN": "hush"})
    lines = done.stdout.splitlines()
    assert "A=1" in lines and "B=x=y" in lines and "HOME=/tmp" in lines and "HOME=/workspace" not in lines
    assert "hush" not in done.stdout


def test_disk_limit_counts_bytes_and_files_of_all_places_together(box):
    code = """
import errno, os
written = 0
for path in ("/workspace/a", "/tmp/b", "/dev/shm/c"):
    with open(path, "wb", buffering=0) as file:
        try:
            for _ in range(2048):
                written += file.write(bytes(1024))
        except OSError as error:
            assert error.errno == errno.ENOSPC
print(written)
"""
    written = int(python(box, code, "--disk", "1MB").stdout)
    assert 900 * 1024 <= written <= 1024 * 1024
    done = box("--disk", "256KB", "--", "sh", "-c", "i=0; while true >/tmp/$i; do i=$((i + 1)); done 2>/dev/null; echo $i")
    assert 16 <= int(done.stdout) <= 256


def test_process_limit(box):
    code = """
import os
made = 0
try:
    for _ in range(100):
        if os.fork() == 0:
            os.read(os.pipe()[0], 1)
        made += 1
except BlockingIOError:
    print(made)
"""
    assert int(python(box, code, "--pids", "10").stdout) in (8, 9)
    if box.user == "root":
        answer = json.loads(python(box, code, "--pids", "10", "--json").stdout)
        assert (answer["status"], answer["limits"]) == ("success", {"hit": ["pids"]})


@pytest.mark.parametrize("command, words", [
    (["node", "-e", "require('fs').writeFileSync('/tmp/x', 'y'); console.log(6 * 7)"], "42\n"),
    (["python3", "-c", "import concurrent.futures as f; print(sum(f.ThreadPoolExecutor(8).map(int, '1234')))"], "10\n"),
    (["python3", "-c", "import multiprocessing as m; print(sum(m.Pool(2).map(abs, [-1, -2])))"], "3\n"),
    (["bash", "-c", "echo b a | tr ' ' '\\n' | sort | tr '\\n' ' '"], "a b "),
    (["sh", "-c", "echo 'int main(void){return 7;}' >a.c && cc a.c -o a && ./a; echo $?"], "7\n"),
    (["perl", "-e", "print 1 + 1"], "2"),
])
def test_honest_programs_work_with_the_built_in_limits(box, command, words):
    if not shutil.which(command[0], path="/usr/bin:/bin"):
        pytest.skip(f"no {command[0]} below /usr")
    done = box("--", *command)
    assert done.stdout == words, done.stderr


def test_output_limit(box):
    done = box("--output", "1000", "--", "sh", "-c", "yes; echo never")
    assert len(done.stdout) == 1000 and done.returncode == 128 + signal.SIGKILL
    assert [line.split(":")[1] for line in done.stderr.splitlines()] == [" Refused", " Ended"] and "[limit.output]" in done.stderr


def test_json(box):
    done = box("--json", "--", "sh", "-c", "printf 'a\\377b'; echo err >&2; head -c 5000 /dev/zero >/tmp/x; exit 3")
    answer = json.loads(done.stdout)
    assert done.returncode == 3
    assert (answer["status"], answer["exit_code"], answer["signal"]) == ("error", 3, None)
    assert (answer["stdout"], answer["stderr"], answer["truncated"]) == ("a\ufffdb", "err\n", False)
    assert base64.b64decode(answer["stdout_base64"]) == b"a\xffb" and "stderr_base64" not in answer
    assert answer["usage"]["disk_bytes"] >= 5000 and answer["usage"]["output_bytes"] == 7
    assert 0 < answer["usage"]["wall_seconds"] < 30 and answer["usage"]["memory_peak_bytes"] > 100000
    answer = json.loads(box("--json", "--timeout", "200ms", "--", "sleep", "9").stdout)
    assert (answer["status"], answer["exit_code"], answer["signal"]) == ("timeout", None, 9)
    assert [denial["id"] for denial in answer["denials"]] == ["limit.wall_time"]
    answer = json.loads(box("--json", "--output", "10", "--", "yes").stdout)
    assert (answer["status"], answer["truncated"], len(answer["stdout"])) == ("output_limit", True, 10)


def test_refused_system_calls_are_reported(box):
    code = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\nfor _ in range(40): assert libc.mount(0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == 1\nlibc.ptrace(0, 0, 0, 0); libc.unshare(0x10000000)"
    answer = json.loads(python(box, code, "--json").stdout)
    assert answer["status"] == "success", answer
    assert {denial["object"]: denial["count"] for denial in answer["denials"]} == {"mount": 40, "ptrace": 1, "unshare": 1}
    assert {denial["id"] for denial in answer["denials"]} == {"seccomp.mount", "seccomp.ptrace", "seccomp.unshare"}
    for denial in answer["denials"]:
        assert set(denial) == {"id", "layer", "rule", "object", "line", "count", "message", "allow_with", "instead"}
        assert denial["layer"] == "seccomp" and denial["message"] and denial["instead"] and denial["line"] is None
    done = python(box, code)
    assert "nacre exec: Refused: mount (40 times): " in done.stderr


def test_a_flood_of_refused_calls_harms_nobody(box):
    code = "import ctypes, time; libc = ctypes.CDLL(None)\nend = time.monotonic() + 60\nwhile time.monotonic() < end: libc.mount(0, 0, 0, 0, 0)"
    started = time.monotonic()
    answer = json.loads(python(box, code, "--json", "--timeout", "1s").stdout)
    assert answer["status"] == "timeout" and answer["denials"][0]["count"] > 100
    assert time.monotonic() - started < 20


def test_strength_goes_with_the_result(box):
    strength = json.loads(box("--json", "--", "true").stdout)["strength"]
    for name in ("filesystem", "processes", "network", "ipc", "syscalls", "disk", "kill"):
        assert strength[name] == "full", name
    assert (strength["io"], strength["hypervisor"]) == ("none", "none")
    if box.user == "user":
        assert (strength["identity"], strength["memory"], strength["cpu"], strength["pids"]) == (
            "reduced", "reduced", "none", "reduced")
    else:
        assert strength["identity"] == "full"


def test_named_limits_are_held_or_refused(box):
    for args in (["--memory", "64MB"], ["--cpus", "0.5"]):
        done = box(*args, "--", "true")
        if box.user == "user":
            assert done.returncode == 125 and f"Option '{args[0]}': no control group can hold this limit" in done.stderr
        else:
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("args, words", [
    ([], "Name a command"),
    (["--memory", "lots", "--", "true"], "Option '--memory': found 'lots', expected a size"),
    (["--memory", "1KB", "--", "true"], "Option '--memory': found '1KB'"),
    (["--timeout", "0", "--", "true"], "Option '--timeout': found '0', expected a time"),
    (["--timeout", "-1", "--", "true"], "Option '--timeout': found '-1'"),
    (["--cpus", "0", "--", "true"], "Option '--cpus': found '0'"),
    (["--pids", "0", "--", "true"], "Option '--pids': found '0'"),
    (["--disk", "1.5.5", "--", "true"], "Option '--disk': found '1.5.5'"),
    (["--output", "", "--", "true"], "Option '--output': found ''"),
    (["--env", "novalue", "--", "true"], "Option '--env': found 'novalue', expected NAME=VALUE"),
    (["--env", "=x", "--", "true"], "Option '--env': found '=x'"),
    (["--", "echo", *["x" * 100000] * 11], "longer than 1024 KiB"),
])
def test_wrong_calls_exit_125(box, args, words):
    done = box(*args)
    assert done.returncode == 125 and words in done.stderr and done.stdout == ""


def test_arguments_are_bytes(box):
    done = box("--", b"printf", b"%s|", b"a\xffb", b"", b"c d", b"new\nline", text=False)
    assert done.stdout == b"a\xffb||c d|new\nline|"


def test_closed_standard_output_ends_the_box(box):
    process = box.start("--", "yes")
    process.stdout.readline()
    process.stdout.close()
    process.wait(timeout=30)
    process.stderr.close()
    assert process.returncode != 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupting_it_leaves_nothing(box, how):
    nap = unique_nap()
    process = box.start("--", "sh", "-c", f"echo up; {nap}; true", start_new_session=True)
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, how)
    process.wait(timeout=30)
    process.communicate()
    for _ in range(100):
        if subprocess.run(["pgrep", "-xf", nap], capture_output=True).returncode == 1:
            return
        time.sleep(0.05)
    pytest.fail("the box outlived its parents")


def test_large_streams_come_through_whole(box):
    data = os.urandom(3 << 20)
    done = box("--", "cat", input=data, text=False)
    assert done.stdout == data


def leftovers():
    places = ("/run/nacre/spawners", f"/tmp/nacre-run-{NOBODY}/spawners")
    locks = {f"{place}/{name}" for place in places if os.path.isdir(place) for name in os.listdir(place)}
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    files = {name for name in os.listdir("/tmp") if name.startswith("nacre") or name in ("x", "a")}  # others work here too
    return our_groups(), locks, mounts, files


@pytest.mark.parametrize("words", [["yes"], ["sh", "-c", "yes >&2"]], ids=["output", "error"])
def test_a_reader_that_leaves_ends_it_as_any_filter(box, words):
    """Without a word, and with the status that says so."""
    process = box.start("--timeout", "20s", "--", *words)
    left, other = (process.stdout, process.stderr) if words == ["yes"] else (process.stderr, process.stdout)
    assert left.readline() == "y\n"
    left.close()
    assert (process.wait(10), other.read()) == (128 + signal.SIGPIPE, "")


def test_arguments_and_environment_of_any_length(box):
    """As long as the kernel takes a word, and 1 MiB in all."""
    words = ["y" * 131000] * 7
    done = box("--env", f"A={'z' * 100000}", "--", "sh", "-c", "echo ${#A} $#; printf %s \"$@\" | sha256sum", "x", *words)
    assert done.stdout.split()[:3] == ["100000", "7", hashlib.sha256("".join(words).encode()).hexdigest()], done.stderr
    assert box("--", "true", *["y" * 120000] * 9).returncode == 125


@pytest.mark.parametrize("tty", [[], ["--tty"]], ids=["pipe", "terminal"])
def test_a_reader_that_takes_its_time_gets_all(box, tty):
    """Longer than what is left in pipes is waited for once the program has ended."""
    process = box.start(*tty, "--", "sh", "-c", "head -c 120000 /dev/zero | tr '\\0' x; exit 5")
    time.sleep(3)
    seen = process.stdout.read(1000)
    time.sleep(3)
    seen += process.stdout.read()
    assert (len(seen), process.wait(10)) == (120000, 5)


@pytest.mark.alone
def test_nothing_is_left_on_the_host(box):
    box("--", "true")  # what others left is swept
    before = leftovers()
    for args in (["--", "true"], ["--", "nosuch"], ["--timeout", "100ms", "--", "sleep", "9"], ["--output", "9", "--", "yes"],
                 ["--json", "--", "sh", "-c", "mkdir -p /tmp/a/b; chmod 000 /tmp/a; sleep 100 & exit 3"]):
        box(*args)
    assert leftovers() == before


@pytest.mark.alone
def test_what_a_killed_spawner_left_is_swept_by_the_next(programs, tmp_path, as_root):
    env = environment(tmp_path)
    before = leftovers()[0]
    process = subprocess.Popen([programs / "nacre", "exec", "--", "sh", "-c", "echo up; sleep 100"], env=env,
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    process.kill()
    process.communicate()
    other = subprocess.Popen([programs / "nacre", "exec", "--", "sh", "-c", "echo up; read x; echo $x"], env=env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "up\n"
    living = leftovers()[0]
    assert subprocess.run([programs / "nacre", "exec", "--", "true"], env=env).returncode == 0
    assert leftovers()[0] == living, "a sweep touched the groups of a living spawner"
    assert other.communicate("still here\n")[0] == "still here\n"
    assert leftovers()[0] == before


@pytest.fixture
def groups(as_root, nacre):
    """For limits that only control groups hold."""
    strength = json.loads(nacre("doctor", "--json").stdout)["strength"]
    if any(strength[name]["grade"] != "full" for name in ("memory", "cpu", "pids")):
        pytest.skip("no control groups here")
    return lambda *args: json.loads(nacre("exec", "--json", *args, stdin=subprocess.DEVNULL).stdout)


HOGS = {
    "heap": "x = bytearray(300 << 20)",
    "children": "import os\nfor _ in range(6):\n  if not os.fork():\n    x = bytearray(50 << 20); os.read(os.pipe()[0], 1)\nfor _ in range(6): os.wait()",
    "memfd": "import os\nfd = os.memfd_create('x')\nfor _ in range(300): os.write(fd, bytes(1 << 20))",
    "shared": "import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, 300 << 20, 4096): m[i] = 1",
    "files": "f = open('/tmp/x', 'wb')\nfor _ in range(300): f.write(bytes(1 << 20))",
}


@pytest.mark.parametrize("hog", HOGS)
def test_memory_limit_holds_whatever_the_memory_is(groups, hog):
    answer = groups("--memory", "100MB", "--disk", "1GB", "--", "python3", "-c", HOGS[hog])
    assert answer["status"] == "memory_limit", answer
    assert answer["usage"]["memory_peak_bytes"] <= 100 << 20


def test_memory_within_the_limit_is_fine(groups):
    answer = groups("--memory", "100MB", "--", "python3", "-c", "x = bytearray(60 << 20)")
    assert answer["status"] == "success"
    assert 60 << 20 <= answer["usage"]["memory_peak_bytes"] <= 100 << 20


@pytest.mark.alone
def test_cpu_quota_and_bill(groups):
    spin = "import os, time\nos.fork()\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\nos.wait() if os.getpid() == 2 else 0"
    used = []
    for cpus in ("0.2", "2"):
        usage = groups("--cpus", cpus, "--", "python3", "-c", spin)["usage"]
        used.append(usage["cpu_user_seconds"] + usage["cpu_system_seconds"])
    assert used[0] < 0.45 and used[1] > 2 * used[0]


def test_bill_covers_children_that_nobody_waited_for(groups):
    code = ("import os, time\nhere, there = os.pipe()\nif os.fork() == 0:\n  while time.process_time() < 0.4: pass\n"
            "else:\n  os.close(there)\n  os.read(here, 1)")
    usage = groups("--", "python3", "-c", code)["usage"]
    assert usage["cpu_user_seconds"] + usage["cpu_system_seconds"] > 0.35


def test_worker_and_payload_have_no_privilege(programs, tmp_path, as_root):
    """While a box runs: the worker is nobody's user, and the payload's ids are in a range of its own."""
    process = subprocess.Popen([programs / "nacre", "exec", "--", "sh", "-c", "echo up; read x"], text=True,
                               env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "up\n"
    listed = subprocess.run(["ps", "-eo", "pid,ppid,uid,args"], capture_output=True, text=True).stdout
    children = {args: (int(pid), int(uid)) for pid, ppid, uid, args in
                (line.split(None, 3) for line in listed.splitlines()[1:]) if int(ppid) == process.pid}
    ids = sorted(uid for _, uid in children.values())
    assert len(children) == 3 and ids[0] == 0x70000000 - 1 and ids[1] >= 0x70000000
    worker = next(pid for pid, uid in children.values() if uid == ids[0])
    status = pathlib.Path(f"/proc/{worker}/status").read_text()
    assert "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    process.communicate("x\n")
    assert process.returncode == 0
