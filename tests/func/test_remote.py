"""nacre --server: a shell in a sandbox of a daemon, and files in and out."""

import contextlib
import ctypes
import os
import pty
import re
import select
import signal
import stat
import subprocess
import threading
import time

import pytest

from conftest import NACRE
from serving import Daemon
from test_sandboxes import Sandbox, daemon, sandbox  # noqa: F401: fixtures


def nacre(daemon, *words, key=None, **options):  # noqa: F811
    env = {**daemon.env, **({"NACRE_KEY": key} if key else {})}
    return subprocess.run([str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}", *map(str, words)], env=env, capture_output=True, timeout=60, **options)


def count(daemon):  # noqa: F811
    return len(daemon.get("/v1/sandboxes").json()["sandboxes"])


def test_a_shell_with_pipes(daemon, sandbox):  # noqa: F811
    done = nacre(daemon, "shell", sandbox.id, input=b"echo out; echo err >&2; echo kept >f; exit 3\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    done = nacre(daemon, "shell", sandbox.id, "--", "cat", "f", "-", input=b"more")
    assert (done.returncode, done.stdout) == (0, b"kept\nmore")
    assert nacre(daemon, "shell", sandbox.id, "sh", "-c", "kill -9 $$", input=b"").returncode == 128 + 9
    before = count(daemon)
    done = nacre(daemon, "shell", input=b"pwd\n")
    assert (done.returncode, done.stdout) == (0, b"/workspace\n")
    time.sleep(0.3)
    assert count(daemon) == before
    data = os.urandom(3000000)  # more than any buffer, both ways at once
    assert nacre(daemon, "shell", sandbox.id, "cat", input=data).stdout == data


def test_faults_of_a_shell(daemon, sandbox):  # noqa: F811
    for words, text in ((("shell", sandbox.id, "/no/such"), b"start the program"), (("shell", "sb_" + "0" * 32), b"no such sandbox"),
                        (("shell", "--image", "nowhere"), b"image import"), (("shell", "--snapshot", "sn_0"), b"no such snapshot"),
                        (("shell", "--image", "host", sandbox.id, "true"), b"there already"), (("shell", "--snapshot", "sn_0", sandbox.id), b"there already")):
        done = nacre(daemon, *words, input=b"")
        assert done.returncode == 125 and text in done.stderr, (words, done)
    for url in ("http://127.0.0.1:1", "ftp://x"):
        done = subprocess.run([str(NACRE), "--server", url, "shell"], capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 125 and done.stderr.startswith(b"nacre shell: ")
    done = subprocess.run([str(NACRE), "shell"], capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and b"--server URL shell" in done.stderr


class Pty:
    def __init__(self, daemon, *words):  # noqa: F811
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(NACRE, [str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}", *words], {**daemon.env, "TERM": "xterm-256color"})
        self.seen = b""

    def until(self, text, seconds=20):
        until = time.monotonic() + seconds
        while not re.search(text, self.seen):
            assert time.monotonic() < until, self.seen
            if select.select([self.fd], [], [], 0.5)[0]:
                self.seen += os.read(self.fd, 65536)
        return self.seen

    def type(self, data):
        os.write(self.fd, data)

    def wait(self):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                if select.select([self.fd], [], [], 0.1)[0]:
                    self.seen += os.read(self.fd, 65536)
            except OSError:
                pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(self.seen)


def test_a_shell_with_a_terminal(daemon):  # noqa: F811
    import fcntl
    import struct
    import termios
    before = count(daemon)
    shell = Pty(daemon, "shell")
    modes = termios.tcgetattr(shell.fd)
    shell.until(rb"\$ ")
    fcntl.ioctl(shell.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    shell.type(b"sleep 0.3; stty size; echo $TERM; tty\r")
    shell.until(rb"33 99\r\nxterm-256color\r\n/dev/pts/")
    shell.type(b"echo be''gun; cat\r")
    shell.until(rb"begun")
    time.sleep(0.3)
    shell.type(b"\x03")  # goes there, and does not end us
    shell.until(rb"\^C\r\n\$ $")
    shell.type(b"echo still''here\r")
    shell.until(rb"stillhere")
    shell.type(b"exit 7\r")
    assert shell.wait() == 7
    assert termios.tcgetattr(shell.fd) == modes
    time.sleep(0.3)
    assert count(daemon) == before


def test_a_terminal_is_put_back_when_the_daemon_goes(tmp_path):
    import termios
    with Daemon(tmp_path) as own:
        shell = Pty(own, "shell")
        modes = termios.tcgetattr(shell.fd)
        shell.until(rb"\$ ")
        assert termios.tcgetattr(shell.fd) != modes
        os.kill(own.pid, signal.SIGTERM)
        assert shell.wait() == 125 and b"ended the connection" in shell.seen
        assert termios.tcgetattr(shell.fd) == modes


@pytest.fixture
def tree(tmp_path):
    top = tmp_path / "tree"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "run").write_bytes(b"#!/bin/sh\necho ran\n")
    (top / "sub" / "run").chmod(0o755)
    (top / "data").write_bytes(os.urandom(2000000))
    (top / "link").symlink_to("data")
    return top


def test_directories(daemon, sandbox, tree, tmp_path):  # noqa: F811
    assert nacre(daemon, "cp", tree, f"{sandbox.id}:/workspace").returncode == 0  # into what is there
    assert nacre(daemon, "cp", tree, f"{sandbox.id}:/workspace/new").returncode == 0  # as what is not
    done = sandbox.run("diff -r tree new && tree/sub/run && readlink new/link")
    assert done["stdout"] == "ran\ndata\n", done
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/tree", tmp_path / "back").returncode == 0
    assert subprocess.run(["diff", "-r", tree, tmp_path / "back"]).returncode == 0
    (tmp_path / "into").mkdir()
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/tree", tmp_path / "into").returncode == 0
    assert subprocess.run(["diff", "-r", tree, tmp_path / "into" / "tree"]).returncode == 0
    assert os.access(tmp_path / "into" / "tree" / "sub" / "run", os.X_OK)


def test_files(daemon, sandbox, tree, tmp_path):  # noqa: F811
    data = (tree / "data").read_bytes()
    assert nacre(daemon, "cp", tree / "data", f"{sandbox.id}:/workspace").returncode == 0
    assert nacre(daemon, "cp", tree / "data", f"{sandbox.id}:/workspace/deep/name with blank&").returncode == 0
    assert sandbox.run("cmp data 'deep/name with blank&' && ls -A deep")["stdout"] == "name with blank&\n"
    sandbox.run("echo mine >other; echo his >data2")
    assert nacre(daemon, "cp", tree / "data", f"{sandbox.id}:/workspace/other").returncode == 0
    assert sandbox.run("cmp data other; cat data2")["stdout"] == "his\n"
    (tmp_path / "out").mkdir()
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/data", tmp_path / "out").returncode == 0
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/data", tmp_path / "out" / "renamed").returncode == 0
    assert {path.name: path.read_bytes() == data for path in (tmp_path / "out").iterdir()} == {"data": True, "renamed": True}


def test_what_comes_out_is_hostile(daemon, sandbox, tmp_path):  # noqa: F811
    """Links that lead out of the place that was named, special files, names of all kinds: nothing outside is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "trap").symlink_to(outside)  # planted here before
    sandbox.run(f"mkdir -p d/trap; echo x >d/trap/f; ln -s {outside} d/sneaky; ln -s /etc/passwd d/passwd; mkfifo d/p; touch \"d/$(printf 'a\\nb')\"; chmod 4755 d/trap/f")
    done = nacre(daemon, "cp", f"{sandbox.id}:/workspace/d/.", target)
    assert done.returncode == 125 and b"trap" in done.stderr and not list(outside.iterdir()), done
    (target / "trap").unlink()
    done = nacre(daemon, "cp", f"{sandbox.id}:/workspace/d", target)  # all but what leads out, which is said
    assert done.returncode == 125 and b"lead out of the directory (3, the first is 'p')" in done.stderr, done
    assert not list(outside.iterdir()) and not os.path.lexists(target / "d" / "p") and not os.path.lexists(target / "d" / "sneaky") and not os.path.lexists(target / "d" / "passwd")
    assert stat.S_IMODE(os.stat(target / "d" / "trap" / "f").st_mode) == 0o755  # no set-user-id


def test_a_link_of_an_earlier_copy_is_no_way(daemon, sandbox, tmp_path):  # noqa: F811
    """A copy brings a link to a directory of the user's, the next one goes through it."""
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.mkdir()
    target.mkdir()
    (secret / "key").write_text("old")
    there = f"{sandbox.id}:/workspace/results"
    for link in (str(secret), "../secret"):  # a link by itself is not copied, wherever it leads
        sandbox.run(f"ln -s {link} results")
        assert nacre(daemon, "cp", there, target).returncode == 125 and not os.path.lexists(target / "results")
        sandbox.run("rm results")
    sandbox.run(f"echo x >data; ln -s data results; mkdir all; ln -s {secret} all/results")
    done = nacre(daemon, "cp", there, target)
    assert done.returncode == 125 and b"is a symbolic link" in done.stderr, done
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/all/.", target).returncode == 125 and not list(target.iterdir())
    (target / "results").symlink_to(secret)  # one that came otherwise, or long ago
    sandbox.run("rm results; mkdir results; echo mine >results/key; echo more >results/authorized_keys")
    done = nacre(daemon, "cp", there, target)
    assert done.returncode == 125 and b"a link is not followed" in done.stderr, done
    assert {path.name: path.read_text() for path in secret.iterdir()} == {"key": "old"}
    sandbox.run("rm -r results; echo mine >results")
    assert nacre(daemon, "cp", there, target).returncode == 0  # a file takes the place of the link
    assert (target / "results").read_text() == "mine\n" and not (target / "results").is_symlink()
    assert {path.name: path.read_text() for path in secret.iterdir()} == {"key": "old"}
    (target / "link").symlink_to(secret / "key")
    sandbox.run("mkdir one; echo mine >one/link")
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/one/link", target / "link").returncode == 0
    assert (secret / "key").read_text() == "old" and (target / "link").read_text() == "mine\n"
    (target / "deep").mkdir()
    before = sorted(tmp_path.iterdir())
    assert nacre(daemon, "cp", f"{sandbox.id}:/workspace/one/..", target / "deep").returncode == 125  # all/results again; no name of its own
    assert sorted(tmp_path.iterdir()) == before and (target / "deep/one/link").read_text() == "mine\n"


def test_links_are_sent_as_links(daemon, sandbox, tmp_path):  # noqa: F811
    """What a copy to a sandbox meets in the source, or is named, is not followed: an earlier copy may have made it."""
    secret, source = tmp_path / "secret", tmp_path / "source"
    secret.mkdir()
    source.mkdir()
    (secret / "key").write_text("old")
    (source / "dir").symlink_to(secret)
    (source / "file").symlink_to(secret / "key")
    assert nacre(daemon, "cp", source, f"{sandbox.id}:/workspace").returncode == 0
    for name in ("dir", "file"):
        assert nacre(daemon, "cp", source / name, f"{sandbox.id}:/workspace").returncode == 0
        for place in (name, f"source/{name}"):
            assert sandbox.run(f"readlink {place}")["stdout"] == f"{(source / name).readlink()}\n"
    assert "old" not in sandbox.run("cat -- $(find . -type f) </dev/null")["stdout"]
    assert nacre(daemon, "cp", f"{source}/dir/", f"{sandbox.id}:/workspace/asked").returncode == 0  # with a slash that is what was asked for
    assert sandbox.run("cat asked/key")["stdout"] == "old"


def exchange(one, other):
    """Each takes the place of the other, at once."""
    at, swap = -100, 2
    return ctypes.CDLL(None).renameat2(at, bytes(one), at, bytes(other), swap)


@contextlib.contextmanager
def swapping(one, other):
    """Somebody exchanges two names again and again."""
    done = threading.Event()

    def work():
        while not done.is_set():
            assert exchange(one, other) == 0

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_link_that_comes_while_the_copy_runs(daemon, sandbox, tmp_path):  # noqa: F811
    """Directories of the destination, and of the source, are swapped for links all the time."""
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.mkdir()
    (secret / "key").write_text("old")
    sandbox.run("mkdir -p r/sub; for i in $(seq 200); do echo $i >r/sub/$i; echo $i >r/$i; done")
    for below in ("r", "r/sub"):
        (target / below).mkdir(parents=True)
        link = tmp_path / "link"
        link.symlink_to(secret)
        with swapping(target / below, link):
            for _ in range(15):
                nacre(daemon, "cp", f"{sandbox.id}:/workspace/r", target)
                nacre(daemon, "cp", target, f"{sandbox.id}:/workspace/back")
        assert {path.name: path.read_text() for path in secret.iterdir()} == {"key": "old"}
        subprocess.run(["rm", "-rf", target, link], check=True)
    assert sandbox.run("grep -rl old back")["stdout"] == ""


def test_faults_of_cp(daemon, sandbox, tree, tmp_path):  # noqa: F811
    here, there = str(tree), f"{sandbox.id}:/workspace"
    for words, text in (((here,), b"Name what"), ((here, here), b"One of both"), ((there, there), b"One of both"), (("/nowhere", there), b"No such file"),
                        ((f"{sandbox.id}:/nowhere", tmp_path), b"There is no '/nowhere'"), ((here, "sb_" + "0" * 32 + ":/workspace"), b"no such sandbox"),
                        ((here, f"{sandbox.id}:/usr"), b"answered 403"), ((here, f"{sandbox.id}:relative"), b"absolute path"),
                        ((there, "/proc/nowhere"), b"/proc/nowhere"), ((f"{there}/x", "/nowhere/y"), b"There is no")):
        done = nacre(daemon, "cp", *words)
        assert done.returncode == 125 and text in done.stderr, (words, done.stderr)
    os.mkfifo(tree / "fifo")
    assert nacre(daemon, "cp", tree, f"{there}/again").returncode == 0
    small = Sandbox(daemon, limits={"disk_mb": 1})
    done = nacre(daemon, "cp", tree, f"{small.id}:/workspace")
    assert done.returncode == 125 and b"No space left" in done.stderr
    sandbox.run("head -c 300000000 /dev/zero >large")
    timer = threading.Timer(0.4, sandbox.ask, ("DELETE",))
    timer.start()
    done = nacre(daemon, "cp", f"{there}/large", tmp_path / "large")  # it goes in the middle: whole or not at all
    timer.join()
    assert (done.returncode, (tmp_path / "large").exists()) in ((125, False), (0, True)), done
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".n")]


def test_keys(tmp_path, tree):
    with Daemon(tmp_path) as own:
        one, two = own.key("--tenant", "one"), own.key("--tenant", "two")
        box = Sandbox(own, key=one)
        assert nacre(own, "cp", tree, f"{box.id}:/workspace", key=one).returncode == 0
        assert nacre(own, "shell", box.id, "ls", key=one, input=b"").stdout == b"tree\n"
        for key, text in ((two, b"no such sandbox"), (None, b"key is needed")):
            for words in (("cp", tree, f"{box.id}:/workspace"), ("cp", f"{box.id}:/workspace", tmp_path / "x"), ("shell", box.id, "ls")):
                done = nacre(own, *words, key=key, input=b"")
                assert done.returncode == 125 and text in done.stderr, (words, done)


def test_over_tls(tmp_path, tree):
    import socket
    import ssl
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem",
                    "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    with Daemon(tmp_path, "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")) as own:
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        own.connect = lambda timeout=30: context.wrap_socket(socket.create_connection(("127.0.0.1", own.port), timeout=timeout), server_hostname="localhost")
        box = Sandbox(own)
        base = [str(NACRE), "--server", f"https://localhost:{own.port}"]
        env = {**own.env, "SSL_CERT_FILE": str(tmp_path / "cert.pem")}
        assert subprocess.run([*base, "cp", tree, f"{box.id}:/workspace"], env=env).returncode == 0
        assert subprocess.run([*base, "cp", f"{box.id}:/workspace/tree", tmp_path / "back"], env=env).returncode == 0
        assert subprocess.run(["diff", "-r", tree, tmp_path / "back"]).returncode == 0
        data = os.urandom(2000000)
        assert subprocess.run([*base, "shell", box.id, "cat"], env=env, input=data, capture_output=True).stdout == data


def test_a_fresh_sandbox_reaches_what_is_allowed(daemon):  # noqa: F811
    """--allow goes along with a command that gets a sandbox of its own; what is not named stays refused."""
    name = "nowhere.invalid"
    command = f"curl -s -o /dev/null -w '%{{http_code}}' http://{name}/; curl -s http://other.invalid/ | grep -o network.not-listed"
    done = subprocess.run([str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}", "exec", "--allow", name, "--", "sh", "-c", command],
                              capture_output=True, text=True, timeout=60, env=daemon.env)
    assert done.stdout.startswith("502") and "network.not-listed" in done.stdout, done
    none = subprocess.run([str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}", "exec", "--", "sh", "-c", f"curl -s http://{name}/; echo $?"],
                          capture_output=True, text=True, timeout=60, env=daemon.env)
    assert none.stdout.strip() not in ("", "0"), none


@pytest.mark.parametrize("program, code", [("/no/such", 127), ("/etc", 126), ("/etc/passwd", 126), ("false", 1)])
def test_exec_there_ends_as_exec_here(daemon, program, code):  # noqa: F811
    here = subprocess.run([str(NACRE), "exec", "--", program], capture_output=True, timeout=60, env=daemon.env)
    there = subprocess.run([str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}", "exec", "--", program], capture_output=True, timeout=60, env=daemon.env)
    assert (here.returncode, there.returncode) == (code, code), (here, there)
