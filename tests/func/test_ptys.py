"""Pseudo-terminals in boxes that have none themselves: what pexpect, script and CPython's own tests of pty need."""

import json

import pytest

from serving import Daemon

TALK = """
import os, pty, termios, tty
master, slave = pty.openpty()
print(os.ttyname(slave).startswith('/dev/pts/'), os.isatty(slave))
tty.setraw(slave)
os.write(master, b'in'); print(os.read(slave, 9))
pid, fd = pty.fork()
if pid == 0:
    os.execvp('sh', ['sh', '-c', 'tty; stty size; read x; echo got $x'])
os.write(fd, b'word\\n')
seen = b''
while b'got word' not in seen:
    seen += os.read(fd, 99)
print(b'/dev/pts/' in seen, os.waitpid(pid, 0)[1])
"""
SAID = "True True\nb'in'\nTrue 0\n"
MANY = """
import os, pty
held = []
try:
    while True:
        held.append(os.openpty())
except OSError as e:
    print(len(held), e.errno)
"""


@pytest.fixture(params=["root", "user"])
def caller(request, nacre_by):
    return nacre_by(request.param)


def test_run_and_exec(caller):
    assert caller("run", "--lang", "python", "-c", TALK).stdout == SAID
    assert caller("exec", "--", "python3", "-c", TALK).stdout == SAID
    done = caller("exec", "--", "script", "-qec", "tty", "/dev/null")
    assert "/dev/pts/0" in done.stdout, done


def test_there_is_an_end_to_them(caller):
    count, error = map(int, caller("exec", "--", "python3", "-c", MANY).stdout.split())
    assert count == 64 and error == 28


def test_they_are_the_boxes_own(caller):
    done = caller("exec", "--", "sh", "-c", "ls /dev/pts; stat -c %a /dev/pts/ptmx; readlink /dev/ptmx")
    assert done.stdout == "ptmx\n666\npts/ptmx\n", done


def test_the_daemon_and_sandboxes(tmp_path):
    with Daemon(tmp_path) as daemon:
        for _ in range(3):  # also in a box that waited
            assert daemon.execute(TALK).json()["output"] == SAID
        sandbox = daemon.post("/v1/sandboxes", {}).json()["id"]
        answer = daemon.post(f"/v1/sandboxes/{sandbox}/commands", {"command": ["python3", "-c", TALK]}).json()
        assert json.dumps(SAID)[1:-1] in json.dumps(answer), answer
