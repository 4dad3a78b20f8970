"""nacre exec --tier process: the host's own tree behind Landlock and the filter; as root, as an ordinary user, and where
neither a user namespace nor a control group can be had ("alone")."""

import fcntl
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

import pytest

from conftest import BUILD, ROOT

USER = 1000
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
# the limit of user namespaces holds below where it is set: the one that is left is used up by what forgets that it was 0
ALONE = [*AS_USER, "unshare", "-Ur", "sh", "-c",
         f'echo 1 >/proc/sys/user/max_user_namespaces; exec unshare -U --map-user={USER} --map-group={USER} "$@"', "sh"]
MODES = {"root": [], "user": AS_USER, "alone": ALONE}

# the host's root in a user namespace that maps everything to itself, and in which no other can be made
NO_USER_NS = """
import ctypes, os, sys
reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(reader, 1)
    for name in ("uid_map", "gid_map"):
        open(f"/proc/{os.getppid()}/{name}", "w").write("0 0 4294967295")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(writer, b"x")
os.waitpid(pid, 0)
os.close(reader), os.close(writer)
open("/proc/sys/user/max_user_namespaces", "w").write("0")
os.execv(sys.argv[1], sys.argv[1:])
"""


class Place:
    """A mount namespace with a /tmp and a /var/lib of its own, in which the boxes are made: nobody else works there."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nacre-test-", dir="/var/tmp"))
        self.dir.chmod(0o755)
        for name in ("nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-init", "nacre-files", "nacre-sudo", *(path.name for path in BUILD.glob("nacre-exec"))):
            shutil.copy(BUILD / name, self.dir / name)
        self.home = self.dir / "home"
        self.home.mkdir(mode=0o755)
        (self.home / "secret").write_text("canary")
        os.chown(self.home, USER, USER)
        os.chown(self.home / "secret", USER, USER)
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             "mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir /tmp/lib && mount --bind /tmp/lib /var/lib && echo up && exec sleep 3600"], stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "up\n"
        self.tmp = pathlib.Path(f"/proc/{self.holder.pid}/root/tmp")
        self.public = self.tmp / "public"  # what another program of the same user left, open to all
        self.public.mkdir()
        (self.public / "file").write_text("canary")
        for path in (self.public, self.public / "file"):
            path.chmod(0o777)
            os.chown(path, USER, USER)

    def words(self, mode, *args, tier="process", command="exec"):
        return ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", *(MODES[mode] if isinstance(mode, str) else mode), str(self.dir / "nacre"), command,
                *(["--tier", tier] if tier else []), *map(str, args)]

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8"}

    def run(self, mode, *args, **options):
        options = {"timeout": 60, "text": True, "capture_output": True, "env": self.environment(), "cwd": "/", **options}
        if options.get("input") is None:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.words(mode, *args, tier=options.pop("tier", "process")), **options)

    def start(self, mode, *args, **options):
        options = {"text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "env": self.environment(), "cwd": "/", **options}
        return subprocess.Popen(self.words(mode, *args), **options)

    def left(self):
        """Directories of boxes, and of spawners."""
        return sorted(str(path.relative_to(self.tmp)) for pattern in ("nacre-[0-9]*/*", "lib/nacre-boxes/*")
                      for path in self.tmp.glob(pattern))

    def close(self):
        self.holder.kill()
        self.holder.communicate()
        shutil.rmtree(self.dir)


@pytest.fixture(scope="module")
def place():
    if os.geteuid() != 0:
        pytest.skip("needs root: the boxes get a /tmp of their own")
    made = Place()
    yield made
    made.close()


@pytest.fixture(params=MODES)
def box(request, place):
    if request.param != "root" and subprocess.run([*AS_USER, "unshare", "--user", "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces for ordinary users here")

    def run(*args, **options):
        return place.run(request.param, *args, **options)

    run.mode = request.param
    run.start = lambda *args, **options: place.start(request.param, *args, **options)
    run.python = lambda code, *options, **more: run(*options, "--", "python3", "-c", code, **more)
    run.json = lambda code, *options: json.loads(run("--json", *options, "--", "python3", "-c", code).stdout)
    yield run
    left = place.left()
    for path in left:  # one failure is enough, the next test begins with nothing
        shutil.rmtree(place.tmp / path, ignore_errors=True)
    assert left == [], "directories of boxes are left"


forking = pytest.mark.parametrize("box", ["root", "user"], indirect=True)
alone = pytest.mark.parametrize("box", ["alone"], indirect=True)


def unique_nap():
    return f"sleep {random.randint(10 ** 6, 10 ** 9)}"


def runs(nap):
    return subprocess.run(["pgrep", "-xf", nap], capture_output=True).returncode == 0


def is_gone(nap, seconds=3):
    end = time.monotonic() + seconds
    while runs(nap) and time.monotonic() < end:
        time.sleep(0.02)
    return not runs(nap)


def test_output_input_and_status(box):
    done = box.python("import sys; print(sys.stdin.read()); print('err', file=sys.stderr); sys.exit(42)", input="in")
    assert (done.returncode, done.stdout, done.stderr) == (42, "in\n", "err\n")


@pytest.mark.parametrize("command, code", [
    (["true"], 0), (["false"], 1), (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -KILL $$"], 137),
    (["nosuch"], 127), (["/nosuch"], 127), (["/usr"], 126), (["/etc/passwd"], 126)], ids=str)
def test_exit_codes(box, command, code):
    assert box("--", *command).returncode == code


def test_timeout(box):
    started = time.monotonic()
    done = box.python("import signal, time\nfor n in range(1, 65):\n try: signal.signal(n, signal.SIG_IGN)\n except (OSError, ValueError): pass\ntime.sleep(60)",
                      "--timeout", "300ms")
    assert done.returncode == 124 and time.monotonic() - started < 5


def test_inside(box):
    done = box.python("""
import ctypes, os
libc = ctypes.CDLL(None)
home, temporary = os.environ["HOME"], os.environ["TMPDIR"]
assert os.getcwd() == home and home.endswith("/1/workspace") and temporary == home.replace("workspace", "tmp"), home
assert set(os.environ) <= {"GOMAXPROCS", "HOME", "JAVA_TOOL_OPTIONS", "LANG", "LC_CTYPE", "NODE_OPTIONS", "PATH", "SHELL", "TMPDIR", "USER"}, os.environ
for place in (home, temporary):
    open(place + "/file", "w").write("x" * 5000)
    os.rename(place + "/file", place + "/other")
    os.mkdir(place + "/dir")
    assert sorted(os.listdir(place)) == ["dir", "other"]
assert libc.prctl(39, 0, 0, 0, 0) == 1  # no_new_privs
assert os.getuid() == os.geteuid() != 0 and os.getgid() == os.getegid() != 0
assert not set(os.getgroups()) - {os.getgid()}, os.getgroups()
for number in range(3, 256):
    try: os.fstat(number)
    except OSError: continue
    raise AssertionError(f"descriptor {number} is open")
print("good")
""")
    assert done.stdout == "good\n", done.stderr


def test_a_program_of_its_own_can_be_run(box):
    done = box("--", "sh", "-c", "cat /usr/bin/true >mine && chmod 755 mine && exec ./mine" if box.mode == "alone" else
               "cp /usr/bin/true mine && ./mine && echo ran")
    assert done.returncode in ((0,) if box.mode != "alone" else (0, 2)), done.stderr


@forking
def test_listing_says_nothing_on_stderr(box):
    """ls asks for extended attributes; that there are none is an answer, that the call does not exist is an error."""
    done = box("--", "sh", "-c", "echo x >file; ls -l; ls -la . >/dev/null; cp -a file other; exit 0")
    assert [line for line in done.stderr.splitlines() if "Refused: socket" not in line] == [], done.stderr


# chmod() of a path is refused, since Landlock does not cover it; fchmod() of what is open is not
CHMOD = """import os
def chmod(path, mode):
    descriptor = os.open(path, os.O_RDONLY)
    os.fchmod(descriptor, mode)
    os.close(descriptor)
"""
TREES = {
    "closed": "os.makedirs('a/b/c/d'); open('a/b/c/d/f', 'w').close()\nfor d in ('a/b/c/d', 'a/b/c', 'a/b', 'a', '.'): chmod(d, 0)",
    "closed_at_birth": "os.umask(0); os.mkdir('a', 0); os.mkdir('b', 0o100); os.mkdir('b2', 0o300); os.mkdir('b2/c', 0); os.close(os.open('b2/f', os.O_CREAT, 0))",
    "closed_places": "os.mkdir(os.environ['TMPDIR'] + '/x'); chmod(os.environ['TMPDIR'], 0); chmod('.', 0)",
    "many": "for n in range(10000): open(str(n), 'w').close()",
    "deep": "for n in range(3000): os.mkdir('d' * 100); os.chdir('d' * 100)",
    "deep_and_closed": "for n in range(500): os.mkdir('d'); chmod('.', 0o300); os.chdir('d')",
    "names": "for name in (b'a\\nb', b'\\xff\\xfe', b' ', b'-rf', b'*', b'..x', b'n' * 255, b'\\x1b[2J'): os.mkdir(name); open(name + b'/' + name, 'w').close()",
    "links": "os.symlink('/tmp/public', 'dir'); os.symlink('/tmp/public/file', 'file'); os.symlink('loop', 'loop'); os.symlink('..', 'up'); os.symlink('/', 'root')",
    "fifo": "os.mkfifo('fifo'); open('f', 'w').close(); os.link('f', 'g')",
    "read_only_files": "os.mkdir('d'); open('d/f', 'w').close(); chmod('d/f', 0); chmod('d', 0o500)",
}


@pytest.mark.parametrize("tree", TREES)
def test_everything_is_gone_afterwards(box, place, tree):
    started = time.monotonic()
    done = box.python(f"{CHMOD}{TREES[tree]}\nprint('made')", "--files", "4096")
    assert done.stdout == "made\n", done.stderr
    assert "left for the next sweep" not in done.stderr and place.left() == []
    assert (place.public / "file").read_text() == "canary" and time.monotonic() - started < 10


OPEN = """
import os, sys
got = []
for path in {paths}:
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY, os.O_RDWR, os.O_WRONLY):
        try: got.append((path, os.read(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY), 100)))
        except OSError as error: pass
    try: got.append((path, os.listdir(path)))
    except OSError: pass
print(got)
"""


def test_nothing_else_of_the_host_is_read(box, place):
    me = os.getpid()
    paths = ["/", "/etc", "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/machine-id", "/etc/resolv.conf",
             "/etc/ssh", "/root", "/home", "/var", "/var/log", "/var/lib", "/var/tmp", "/run", "/run/nacre", "/sys", "/sys/kernel", "/boot",
             "/opt", "/srv", "/mnt", "/media", "/proc", "/proc/self/status", "/proc/self/maps", "/proc/self/environ", "/proc/self/fd",
             "/proc/self/root", "/proc/self/root/etc/passwd", "/proc/self/cwd/../../../../etc/passwd", "/proc/1/cmdline", "/proc/1/root", f"/proc/{me}/cmdline",
             f"/proc/{me}/environ", "/proc/version", "/proc/meminfo", "/proc/mounts", "/proc/sys/kernel/hostname", "/proc/kallsyms", "/tmp",
             "/tmp/public", "/tmp/public/file", "/dev", "/dev/shm", "/dev/pts", "/dev/ptmx", "/dev/kvm", "/dev/mem", "/dev/kmsg", "/dev/fuse",
             "/dev/vda", "/dev/console", "/dev/net/tun", str(place.home), str(place.home / "secret"), str(place.dir), str(place.dir / "nacre"),
             "../../..", "..", "../..", "/work", str(ROOT), str(ROOT / "README.md"), "/workspace"]
    # its own directory above workspace and tmp holds nothing but these two
    assert box.python(OPEN.format(paths=paths)).stdout == "[]\n"


def test_nothing_of_the_host_is_changed(box, place):
    """/tmp/public belongs to the ordinary user, and everybody may write there; Landlock and the filter alone say no."""
    done = box.python("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
open("mine", "w").close()
public, file = "/tmp/public", "/tmp/public/file"
descriptor = os.open(public, os.O_PATH)
file_fd = os.open(file, os.O_PATH)
attempts = dict(
    write=lambda: os.open(file, os.O_WRONLY), create=lambda: os.open(public + "/new", os.O_CREAT | os.O_WRONLY), truncate=lambda: os.truncate(file, 0),
    open_truncate=lambda: os.open(file, os.O_TRUNC), unlink=lambda: os.unlink(file), rename=lambda: os.rename(file, public + "/moved"),
    rename_in=lambda: os.rename("mine", public + "/mine"), rename_out=lambda: os.rename(file, "taken"), link_in=lambda: os.link("mine", public + "/mine"),
    link_out=lambda: os.link(file, "linked"), symlink=lambda: os.symlink("x", public + "/link"), mkdir=lambda: os.mkdir(public + "/dir"),
    rmdir=lambda: os.rmdir(public), fifo=lambda: os.mkfifo(public + "/fifo"), chmod=lambda: os.chmod(file, 0o700), chmod_dir=lambda: os.chmod(public, 0o700),
    chmod_at=lambda: os.chmod("file", 0o700, dir_fd=descriptor), chown=lambda: os.chown(file, os.getuid(), os.getgid()), utime=lambda: os.utime(file, (1, 1)),
    utime_at=lambda: os.utime("file", (1, 1), dir_fd=descriptor), setxattr=lambda: os.setxattr(file, "user.x", b"y"),
    removexattr=lambda: os.removexattr(file, "user.y"), getxattr=lambda: os.listxattr(file), at=lambda: os.open("file", os.O_RDWR, dir_fd=descriptor),
    reopen=lambda: os.open(f"/proc/self/fd/{file_fd}", os.O_RDWR), tmpfile=lambda: os.open(public, os.O_TMPFILE | os.O_RDWR),
    socket=lambda: os.mknod(public + "/sock", 0o140777), chroot=lambda: os.chroot(public),
    watch=lambda: libc.inotify_init1(0) < 0 and os.open("/nonexistent", 0))
for name, attempt in attempts.items():
    try: attempt(); print("ESCAPED:", name)
    except OSError: pass
""")
    assert (done.stdout, done.stderr.replace("nacre exec: Refused", "")[:0]) == ("", ""), done.stdout
    status = (place.public / "file").stat()
    assert sorted(os.listdir(place.public)) == ["file"] and status.st_size == 6 and status.st_mode & 0o777 == 0o777 and status.st_mtime > 2


def test_no_sockets_but_pairs(box):
    done = box.python("""
import socket
for family in range(46):
    for kind in (1, 2, 3, 5):
        try: socket.socket(family, kind); print("ESCAPED:", family, kind)
        except OSError: pass
a, b = socket.socketpair()
a.send(b"x")
print(b.recv(1))
""")
    assert done.stdout == "b'x'\n", done.stdout + done.stderr


TOUCH = """
import ctypes, os, resource, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
victim = {victim}
def call(number, *words):
    if libc.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words)) < 0:
        raise OSError(ctypes.get_errno(), "")
local = struct.pack("QQ", ctypes.addressof(ctypes.create_string_buffer(64)), 64)
param = struct.pack("i", 0)
attempts = dict(
    signal=lambda: os.kill(victim, 9), probe=lambda: os.kill(victim, 0), stop=lambda: os.kill(victim, 19), group=lambda: os.killpg(victim, 9),
    everybody=lambda: libc.kill(-1, 15) == 0 and [][0:] or (_ for _ in ()).throw(OSError()), tgkill=lambda: call(234, victim, victim, 9), tkill=lambda: call(200, victim, 9),
    queue=lambda: call(129, victim, 9, bytes(128)), pidfd_signal=lambda: call(424, libc.syscall(ctypes.c_long(434), victim, 0), 9, 0, 0),
    seize=lambda: call(101, 0x4206, victim, 0, 0), attach=lambda: call(101, 16, victim, 0, 0), read=lambda: call(310, victim, local, 1, local, 1, 0),
    write=lambda: call(311, victim, local, 1, local, 1, 0), kcmp=lambda: call(312, victim, os.getpid(), 0, 0, 0),
    nice=lambda: os.setpriority(os.PRIO_PROCESS, victim, 19), nice_of_all=lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19),
    affinity=lambda: os.sched_setaffinity(victim, [0]), scheduler=lambda: call(144, victim, 5, param), scheduler_param=lambda: call(142, victim, param),
    attributes=lambda: call(314, victim, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0), limits=lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE, (5, 5)),
    limits_read=lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE), io=lambda: call(251, 1, victim, 3 << 13), io_of_all=lambda: call(251, 3, os.getuid(), 3 << 13),
    group_of=lambda: os.setpgid(victim, victim), migrate=lambda: call(256, victim, 64, bytes(8), bytes(8)), move=lambda: call(279, victim, 0, 0, 0, 0, 0),
    process_madvise=lambda: call(440, libc.syscall(ctypes.c_long(434), victim, 0), local, 1, 21, 0),
    getfd=lambda: call(438, libc.syscall(ctypes.c_long(434), victim, 0), 0, 0))
for name, attempt in attempts.items():
    try: attempt()
    except (OSError, ValueError): continue
    print("ESCAPED:", name, flush=True)
"""


def test_no_process_outside_is_touched(box):
    """The victim is the host's own process of the same user, named by the number that the host knows it by."""
    prefix = [] if box.mode == "root" else AS_USER
    victim = subprocess.Popen([*prefix, "sleep", "60"], start_new_session=True)
    time.sleep(0.1)
    try:
        before = (os.getpriority(os.PRIO_PROCESS, victim.pid), os.sched_getaffinity(victim.pid), os.sched_getscheduler(victim.pid))
        done = box.python(TOUCH.replace("{victim}", str(victim.pid)).replace("everybody=lambda: libc.kill(-1, 15) == 0 and [][0:] or (_ for _ in ()).throw(OSError()), ", ""))
        after = (os.getpriority(os.PRIO_PROCESS, victim.pid), os.sched_getaffinity(victim.pid), os.sched_getscheduler(victim.pid))
        assert done.stdout == "", done.stdout
        assert victim.poll() is None and before == after, (before, after)
    finally:
        victim.kill()
        victim.wait()


@forking
@pytest.mark.parametrize("script", [
    "(setsid {nap} >/dev/null 2>&1 &)", "trap '' TERM INT HUP; (trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; {nap}; :' &) &)",
    "{nap} & kill -STOP $!", "(setsid sh -c 'kill -STOP $$' &); {nap} &", "nohup {nap} >/dev/null 2>&1 &"],
    ids=["session", "double_fork", "stopped", "stopped_session", "nohup"])
def test_nothing_survives(box, script):
    nap = unique_nap()
    done = box("--pids", "32", "--", "sh", "-c", script.format(nap=nap) + "\nsleep 0.1; exit 7") if box.mode == "root" else box(
        "--", "sh", "-c", script.format(nap=nap) + "\nsleep 0.1; exit 7")
    assert done.returncode == 7 and is_gone(nap, 1), done


@forking
@pytest.mark.parametrize("how", ["timeout", "spawner", "worker", "terminate", "interrupt"])
def test_nothing_survives_a_violent_end(box, place, how):
    """However it ends, no process is left; and no directory either, but for a spawner that is killed: that is the sweep's."""
    nap = unique_nap()
    options = ["--timeout", "500ms"] if how == "timeout" else []
    process = box.start(*options, "--", "sh", "-c", f"trap '' TERM INT; mkdir -p d/e; touch d/e/f; (setsid {nap} >/dev/null 2>&1 &); echo up; {nap}; :",
                        start_new_session=True)
    assert process.stdout.readline() == "up\n"
    workers = [int(word) for word in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
               if b"exec" in pathlib.Path(f"/proc/{word}/cmdline").read_bytes()]
    if how == "spawner":
        process.kill()
    elif how == "worker":
        os.kill(workers[0], signal.SIGKILL)
    elif how == "terminate":
        process.terminate()
    elif how == "interrupt":
        os.killpg(process.pid, signal.SIGINT)
    process.stdin.close()
    process.wait(timeout=10)
    error = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert is_gone(nap), "processes are left"
    if how == "spawner":
        assert len(place.left()) == 1
        assert box("--", "true").returncode == 0
    assert place.left() == [] and "left for the next sweep" not in error, error


@forking
def test_sweep_leaves_living_spawners_alone(box, place):
    first = box.start("--", "sh", "-c", "echo data >file; echo up; read x; cat file; exec cat")
    dead = box.start("--", "sh", "-c", "mkdir -p a/b/c; chmod 000 a; echo up; read x")
    assert first.stdout.readline() == dead.stdout.readline() == "up\n"
    assert len(place.left()) == 2
    dead.kill()
    dead.communicate()
    assert box("--", "true").returncode == 0
    assert len(place.left()) == 1
    assert first.communicate("go\n")[0] == "data\n" and first.returncode == 0


def test_a_directory_of_somebody_else_under_our_name_is_not_used(place):
    """/tmp is everybody's: another user was there first. Nothing may run in what is his."""
    own = place.tmp / f"nacre-{USER}"
    if own.exists():
        own.rmdir()
    for make in (lambda: own.mkdir(mode=0o777), lambda: own.symlink_to("/tmp/public"), lambda: own.write_text("x")):
        make()
        os.chown(own, 4711, 4711, follow_symlinks=False)
        done = place.run("user", "--", "echo", "ran")
        own.rmdir() if own.is_dir() and not own.is_symlink() else own.unlink()
        assert done.returncode == 125 and done.stdout == "" and "/tmp" in done.stderr, done


def test_another_user_cannot_keep_root_from_its_boxes(place):
    """Whoever makes /tmp/nacre-0 first must not decide whether root's process boxes can be had."""
    own = place.tmp / "nacre-0"
    if own.exists():
        own.rmdir()
    own.mkdir()
    os.chown(own, USER, USER)
    done = place.run("root", "--", "echo", "ran")
    own.rmdir()
    assert done.stdout == "ran\n", done.stderr


@alone
@pytest.mark.parametrize("how", ["os.fork()", "os.forkpty()", "os.posix_spawn('/usr/bin/true', ['true'], {})", "__import__('subprocess').run('true')",
                                 "call(57)", "call(58)", "call(56, 17, 0, 0, 0, 0)", "call(435, (ctypes.c_ulong * 8)(0, 0, 0, 0, 17), 64)",
                                 "call(56, 0x8000 | 17, 0, 0, 0, 0)", "call(56, 0x100, 0, 0, 0, 0)"])
def test_alone_it_makes_no_processes(box, how):
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    pid = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    if pid < 0: raise OSError(ctypes.get_errno(), "")
me = os.getpid()
try: {how}; print("ESCAPED: made one")
except OSError as error: print("held" if os.getpid() == me else "ESCAPED: in a child")
"""
    assert box.python(code).stdout == "held\n"


@alone
def test_alone_threads_work_and_strength_says_so(box):
    answer = box.json("import threading\nfor n in range(4):\n t = threading.Thread(target=print, args=('x',)); t.start(); t.join()")
    assert (answer["status"], answer["stdout"], answer["tier"]) == ("success", "x\n" * 4, "process")
    strength = answer["strength"]
    assert (strength["identity"], strength["processes"], strength["kill"], strength["filesystem"]) == ("none", "reduced", "full", "reduced")
    assert (strength["network"], strength["ipc"], strength["disk"], strength["cpu"]) == ("reduced", "reduced", "reduced", "none")
    done = box("--", "true", tier="container")
    assert done.returncode == 125 and "--tier process" in done.stderr


@forking
def test_strength_goes_with_the_result(box):
    strength = box.json("1")["strength"]
    assert (strength["processes"], strength["kill"]) == ("full", "full")
    assert all(strength[name] == "reduced" for name in ("filesystem", "network", "ipc", "disk"))
    assert strength["identity"] == ("full" if box.mode == "root" else "reduced")


def test_root_where_no_user_namespace_can_be_made(place):
    """Control groups end it then, or it may make no processes; in any case it runs, and says what holds it."""
    wrapper = ["/usr/bin/python3", "-c", NO_USER_NS]
    nap = unique_nap()
    done = place.run(wrapper, "--json", "--", "sh", "-c", f"(setsid {nap} >/dev/null 2>&1 &) ; exit 4")
    assert place.left() == []
    assert is_gone(nap, 1)
    answer = json.loads(done.stdout or '{"status": null}')
    assert answer["status"] in ("error", "success"), done.stderr
    assert answer["strength"]["processes"] == "reduced" and answer["strength"]["kill"] in ("full", "reduced"), answer["strength"]


GROUP_ENDS = """
worker = Worker()
scratch = worker.scratch(worker.hello()).encode()
argv = (b"sh", b"-c", b"(setsid {nap} >/dev/null 2>&1 &); {nap} & kill -STOP $!; sleep 0.1; echo up")
kind, body, data = worker.finish(1, argv=argv, tier=PROCESS, directory=scratch + b"/1/workspace")
end = read_end(body) if kind == ENDED else {"held": {"processes": body}, "alone": 0}
print(kind, data, end["held"]["processes"], end["alone"])
"""


def test_a_control_group_ends_what_has_no_pid_namespace(place):
    """A worker that does not insist on a pid namespace, where none can be had: the group holds and ends the box."""
    nap = unique_nap()
    text = (ROOT / "tests/func/wire.py").read_text() + GROUP_ENDS.replace("{nap}", nap)
    python = os.open(os.path.realpath("/usr/bin/python3"), os.O_RDONLY)
    words = ["nsenter", f"--mount=/proc/{place.holder.pid}/ns/mnt", "/usr/bin/python3", "-c", NO_USER_NS, str(place.dir / "nacre-spawner"),
             "0", "0", "0", "python3", "-c", text]
    done = subprocess.run(words, preexec_fn=lambda: os.dup2(python, 4), pass_fds=(4,), capture_output=True, text=True, timeout=30)
    os.close(python)
    gone = is_gone(nap, 1)
    for word in subprocess.run(["pgrep", "-xf", nap], capture_output=True, text=True).stdout.split():
        os.kill(int(word), signal.SIGKILL)  # this test's own, by the length of their sleep
    assert gone, "ESCAPED: processes survive the end of their box"
    words = done.stdout.split()
    assert words and (words[0], words[-2]) == ("103", "reduced"), done
    assert place.left() == []


@pytest.mark.parametrize("options, words", [
    (["--disk", "1MB"], "Option '--disk': a process box has no file system of its own"),
    (["--inodes", "100"], "Option '--inodes': a process box has no file system of its own"),
    (["--bind", "/usr/share"], "Option '--bind': a process box has no mounts of its own"),
    (["--image", "host"], "Option '--image': a process box has no mounts of its own"),
    (["--image", "other"], "Option '--image': a process box has no mounts of its own"),
    (["--floor", "filesystem=full"], "The floor wants filesystem=full, and a process box here has it reduced"),
    (["--floor", "full"], "The floor wants"),
])
def test_what_it_cannot_hold_is_refused(box, options, words):
    done = box(*options, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (125, "") and words in done.stderr, done


@pytest.mark.parametrize("tier", ["", "Process", "vm", "container "])
def test_wrong_tiers(place, tier):
    done = place.run("root", "--", "true", tier=tier or "x")
    assert done.returncode == 125 and "Option '--tier'" in done.stderr


def with_terminal(box, *command, rows=33, columns=77, feed=b""):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(slave)
    process = box.start("--tty", "--", *command, stdin=slave, text=False)
    if feed:
        time.sleep(0.3)
        os.write(master, feed)
    output, error = process.communicate(timeout=20)
    after = termios.tcgetattr(slave)
    os.close(master)
    os.close(slave)
    assert before == after, "the caller's terminal is not given back as it was"
    return process.returncode, output.decode(), error.decode()


def test_terminal(box):
    code, output, error = with_terminal(box, "python3", "-c", "import os, sys; print(all(map(os.isatty, range(3))), os.get_terminal_size().lines, os.get_terminal_size().columns, open('/dev/tty').isatty())")
    assert (code, output) == (0, "True 33 77 True\r\n"), error
    code, output, error = with_terminal(box, "python3", "-c", "print('got', input())", feed=b"hello\r")
    assert code == 0 and "got hello" in output, error


def test_terminals_of_others_stay_closed(box):
    """With --tty a process box has the host's /dev/pts before it, where the same user's other terminals are."""
    others = [pty.openpty() for _ in range(2)]
    names = [os.ttyname(slave) for _, slave in others]
    for _, slave in others:
        os.fchown(slave, 0 if box.mode == "root" else USER, 5)
    code = f"""
import os
own = os.ttyname(0)
for path in {names}:
    for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
        try: os.write(os.open(path, flags | os.O_NOCTTY), b"planted"); print("ESCAPED: opened", path)
        except OSError: pass
    if path != own:
        try: os.chmod(path, 0o666); print("ESCAPED: changed", path)
        except OSError: pass
print("end")
"""
    result, output, error = with_terminal(box, "python3", "-c", code)
    for descriptors in others:
        for descriptor in descriptors:
            os.close(descriptor)
    assert (result, output) == (0, "end\r\n"), output + error


def test_files_do_not_grow_beyond_the_limit(box):
    answer = json.loads(box("--json", "--", "truncate", "-s", "200M", "big").stdout)
    assert (answer["status"], answer["signal"]) == ("disk_limit", signal.SIGXFSZ)
    answer = json.loads(box("--json", "--", "truncate", "-s", "90M", "big").stdout)
    assert answer["status"] == "success"


def test_honest_programs(box):
    for command, words in ((["python3", "-c", "import json, ssl, sqlite3, decimal; print(sqlite3.connect('x.db').execute('select 1').fetchall())"], "[(1,)]\n"),
                           (["node", "-e", "require('fs').writeFileSync('x', 'y'); console.log(6 * 7)"], "42\n"), (["perl", "-e", "print 1 + 1"], "2")):
        if shutil.which(command[0], path="/usr/bin:/bin"):
            done = box("--", *command)
            assert done.stdout == words, done.stderr


@forking
def test_honest_compiler(box):
    """What a compiler makes cannot be run (SECURITY.md): modes are set by path, which Landlock does not cover. It is said."""
    if not shutil.which("cc", path="/usr/bin"):
        pytest.skip("no cc")
    done = box("--", "sh", "-c", "echo 'int main(void){return 7;}' >a.c && cc a.c -o a && ./a; echo $?")
    assert done.stdout == "126\n" and "Refused: chmod" in done.stderr, done.stderr


@pytest.mark.parametrize("box", ["root"], indirect=True)
def test_limits_hold_here_too(box):
    assert json.loads(box("--json", "--memory", "64MB", "--", "python3", "-c", "x = bytearray(200 << 20)").stdout)["status"] == "memory_limit"
    assert json.loads(box("--json", "--cpu-time", "1s", "--", "sh", "-c", "while :; do :; done").stdout)["status"] == "cpu_limit"
    answer = json.loads(box("--json", "--pids", "8", "--", "python3", "-c", "import os\ntry:\n  for _ in range(20):\n    if os.fork() == 0: os.read(os.pipe()[0], 1)\nexcept OSError: print('refused')").stdout)
    assert (answer["stdout"], answer["limits"]["hit"]) == ("refused\n", ["pids"])


def test_neighbours_do_not_meet(box):
    """Two boxes at once: neither can open what the other made, whatever its mode, also where both are the same user."""
    first = box.start("--", "python3", "-c", f"{CHMOD}open('f', 'w').write('secret'); chmod('f', 0o777); chmod('.', 0o777); print(os.getcwd(), flush=True); input()")
    path = first.stdout.readline().strip()
    assert path.endswith("/workspace")
    done = box.python(f"import os\nfor p in ({path!r}, {path + '/f'!r}, {path!r} + '/..'):\n  for f in (os.O_RDONLY, os.O_DIRECTORY, os.O_RDWR):\n    try: os.open(p, f); print('ESCAPED', p, f)\n    except OSError: pass\nprint('end')")
    first.communicate("x\n")
    assert done.stdout == "end\n", done.stdout


@pytest.mark.parametrize("box", ["user"], indirect=True)
def test_memory_of_all_processes_together_is_watched(box):
    """Each stays below its own limit; without a control group their sum is looked at."""
    code = """
import os, time
for _ in range(7):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
"""
    answer = json.loads(box("--json", "--", "python3", "-c", code).stdout)
    assert (answer["status"], answer["strength"]["memory"]) == ("memory_limit", "reduced"), answer
    assert answer["usage"]["memory_peak_bytes"] > 500 << 20 and answer["usage"]["wall_seconds"] < 10, answer["usage"]
