"""The frame of a root that a spawner makes once for many boxes (src/inside/frame.c): nobody can tell, and nobody can write to it."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from serving import Daemon
from test_zygote import daemon_of

has_frames = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 15)
needs_frames = pytest.mark.skipif(not has_frames, reason="before Linux 6.15 nothing can be attached to a detached mount")

# What of the root is on the frame's own file system, but for the owner: that is the spawner's user there, else the box's.
LOOK = """
import hashlib, json, os, stat
top, seen = os.stat("/").st_dev, {}
for directory, names, files in os.walk("/"):
    names[:] = [name for name in names if os.lstat(os.path.join(directory, name)).st_dev == top]
    for path in [directory, *(os.path.join(directory, name) for name in [*files, *names])]:
        status = os.lstat(path)
        if status.st_dev != top:
            continue
        kind = stat.S_IFMT(status.st_mode)
        content = os.readlink(path) if kind == stat.S_IFLNK else open(path).read() if kind == stat.S_IFREG else sorted(os.listdir(path))
        seen[path] = [oct(status.st_mode), status.st_nlink, content]
mounts = sorted((words[4], words[5], words[words.index("-") + 1]) for words in map(str.split, open("/proc/self/mountinfo")))
print(json.dumps({"seen": seen, "mounts": mounts, "dev": top, "times": [os.lstat(path).st_mtime_ns for path in sorted(seen)],
                  "boot": open("/proc/sys/kernel/random/boot_id").read(), "again": open("/proc/sys/kernel/random/boot_id").read()}))
"""

# Every way to change something there; prints those that work.
CHANGE = """
import os, socket
top = os.stat("/").st_dev
dirs = [d for d, _, _ in os.walk("/") if os.lstat(d).st_dev == top and not d.startswith("/proc/")]
files = ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/mtab", "/bin", "/dev/fd"]
worked = []
def attempt(what, how, *arguments, **more):
    try:
        how(*arguments, **more)
        worked.append(what)
    except OSError:
        pass
for d in [*dirs, "/", "/etc", "/dev", "/mnt", "/root", "/var", "/proc/bus"]:
    new = d.rstrip("/") + "/trace"
    attempt(f"create {new}", os.open, new, os.O_CREAT | os.O_WRONLY)
    attempt(f"unnamed {d}", os.open, d, os.O_TMPFILE | os.O_RDWR)
    attempt(f"mkdir {new}", os.mkdir, new)
    attempt(f"symlink {new}", os.symlink, "x", new)
    attempt(f"mkfifo {new}", os.mkfifo, new)
    attempt(f"link {new}", os.link, "/etc/passwd", new)
    attempt(f"bind {new}", lambda: socket.socket(socket.AF_UNIX).bind(new))
for f in [*files, *dirs]:
    attempt(f"write {f}", os.open, f, os.O_WRONLY)
    attempt(f"truncate {f}", os.truncate, f, 0)
    attempt(f"chmod {f}", os.chmod, f, 0o777)
    attempt(f"chown {f}", os.chown, f, os.getuid(), os.getgid(), follow_symlinks=False)
    attempt(f"utime {f}", os.utime, f, (1, 1), follow_symlinks=False)
    attempt(f"xattr {f}", os.setxattr, f, "user.trace", b"x")
    attempt(f"rename {f}", os.rename, f, f + "2")
    attempt(f"unlink {f}", os.unlink, f)
    attempt(f"rmdir {f}", os.rmdir, f)
print(worked)
"""

# The same with every capability over the box's own namespaces, which no program in a box ever has.
WITH_CAPABILITIES = """
import ctypes, os, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
spaces = [os.open(f"/proc/{sys.argv[1]}/ns/{name}", os.O_RDONLY) for name in ("user", "mnt")]
assert all(libc.setns(space, 0) == 0 for space in spaces)
libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
libc.setresuid(0, 0, 0)  # where there is one
assert libc.mount(b"test", b"/mnt", b"tmpfs", 0, None) == 0 and libc.umount2(b"/mnt", 0) == 0, "not capable"
worked = []
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096
if libc.mount(None, b"/", None, MS_REMOUNT, None) == 0:
    worked.append("the file system can be written to")
libc.mount(None, b"/", None, MS_REMOUNT | MS_BIND, None)
def attempt(how, *arguments):
    try:
        how(*arguments)
        worked.append((how.__name__, arguments))
    except OSError:
        pass
for path in ("/trace", "/etc/trace", "/dev/trace", "/root/trace"):
    attempt(os.open, path, os.O_CREAT | os.O_WRONLY)
    attempt(os.mkdir, path)
    attempt(os.mknod, path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
for path in ("/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/", "/etc"):
    attempt(os.open, path, os.O_WRONLY | os.O_APPEND)
    attempt(os.chmod, path, 0o777)
    attempt(os.chown, path, 0, 0)
    attempt(os.utime, path, (1, 1))
    attempt(os.setxattr, path, "trusted.trace", b"x")
    attempt(os.unlink, path)
print(worked)
"""


def run(daemon, code):
    answer = daemon.execute(code)
    assert answer.status == 200 and answer.json()["status"] == "success", answer.body
    return answer.json()["output"]


def look(daemon):
    return json.loads(run(daemon, LOOK))


@pytest.fixture(scope="module", params=["root", "user"])
def daemon(request, tmp_path_factory, programs):
    with daemon_of(request.param, tmp_path_factory.mktemp("frame"), programs) as running:
        run(running, "pass")  # the first box has a root of its own
        wait_for_frame(running)
        yield running


def wait_for_frame(daemon):
    until = time.monotonic() + 30
    while has_frames and look(daemon)["dev"] != look(daemon)["dev"]:
        assert time.monotonic() < until, "boxes in a row have roots of their own"


def test_a_copy_looks_like_a_root_of_its_own(daemon, tmp_path):
    ours = look(daemon)
    words = [*daemon.prefix, daemon.program, "exec", "--", "python3", "-c", LOOK]
    alone = json.loads(subprocess.run(words, capture_output=True, text=True, env=daemon.env, cwd="/", check=True).stdout)
    assert ours["seen"] == alone["seen"] and len(ours["seen"]) > 20
    assert ours["mounts"] == alone["mounts"]


def test_boot_ids_are_the_boxes_own(daemon):
    first, second = look(daemon), look(daemon)
    uuid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n"
    assert re.fullmatch(uuid, first["boot"]) and first["boot"] == first["again"]
    assert first["boot"] not in (second["boot"], pathlib.Path("/proc/sys/kernel/random/boot_id").read_text())


@needs_frames
def test_nothing_can_be_left_for_the_next(daemon):
    before = look(daemon)
    assert run(daemon, CHANGE) == "[]\n"
    after = look(daemon)
    assert before["dev"] == after["dev"] and {**before, "boot": 0, "again": 0} == {**after, "boot": 0, "again": 0}


def waiting_box(daemon, device):
    """Process 1 of a box of the daemon's with that root."""
    listed = subprocess.run(["pgrep", "-P", str(daemon.process.pid), "nacre-ini"], capture_output=True, text=True).stdout.split()
    for pid in listed:
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            if os.stat(f"/proc/{pid}/root").st_dev == device:
                return pid
    raise AssertionError("none waits")


@needs_frames
def test_not_even_with_capabilities(daemon):
    """As if the kernel had given a program all of them: the file system belongs to the spawner's user namespace."""
    before = look(daemon)
    words = ["/usr/bin/python3", "-c", WITH_CAPABILITIES, waiting_box(daemon, before["dev"])]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/")
    assert done.stdout == "[]\n", done
    after = look(daemon)
    assert before["seen"] == after["seen"] and before["times"] == after["times"]


@needs_frames
def test_what_changes_on_the_host_shows(tmp_path):
    """Copies are made of one frame for some seconds; then what was mounted on the host is in boxes that come."""
    code = "import os; print(os.path.exists('/usr/share/trace'))"
    with Daemon(tmp_path, prefix=["unshare", "--mount"]) as daemon:
        for _ in range(3):
            assert run(daemon, code) == "False\n"
        script = "mount -t tmpfs test /usr/share && touch /usr/share/trace"
        subprocess.run(["nsenter", "-t", str(daemon.process.pid), "-m", "sh", "-c", script], check=True)
        until = time.monotonic() + 60
        while run(daemon, code) != "True\n":
            assert time.monotonic() < until
            time.sleep(0.2)
