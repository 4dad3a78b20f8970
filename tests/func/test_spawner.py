"""nacre-spawner from the side of a worker that has been taken over: any message that breaks the
rules ends the worker, never the spawner's caller, and makes no box."""

import os
import struct
import subprocess

import pytest

from conftest import BUILD

HELLO, RUN, KILL, WELCOME, STARTED, ENDED, FAILED = 1, 2, 3, 101, 102, 103, 104

# the hostile worker: it gets the packets to send as arguments (how many descriptors to attach, how
# often to repeat the bytes, the bytes in hexadecimal) and prints the types of the answers
WORKER = r"""
import os, socket, sys
spawner = socket.socket(fileno=3)
spawner.settimeout(3)
null = os.open("/dev/null", os.O_RDWR)
for packet in sys.argv[1:]:
    fds, times, data = packet.split(":")
    socket.send_fds(spawner, [bytes.fromhex(data) * int(times)], [null] * int(fds))
    try:
        answer = spawner.recv(70000)
    except OSError:
        answer = b""
    print(int.from_bytes(answer[2:4], "little") if answer else "closed", flush=True)
"""


def message(kind, body=b"", magic=0x634E, size=None):
    return struct.pack("<HHI", magic, kind, len(body) if size is None else size) + body


def words(*items):
    data = b"".join(item + b"\0" for item in items)
    return struct.pack("<II", len(items), len(data)) + data


MB = 1 << 20
LIMITS = dict(memory=64 * MB, cpu=1000, cpu_time=0, wall=5000, pids=5, disk=MB, inodes=64, files=64)


def order(identity=1, directory=b"/workspace", argv=(b"true",), env=(), **limits):
    values = {**LIMITS, **limits}
    return message(RUN, struct.pack("<9Q", identity, *values.values()) + struct.pack("<I", len(directory)) + directory +
                   words(*argv) + words(*env))


GREETING = (0, message(HELLO, struct.pack("<I", 1)))


@pytest.fixture
def converse():
    """Starts the spawner with the hostile worker in place of nacre; returns what it was answered."""

    def run(*packets):
        # the interpreter is the executable that the spawner starts as its worker
        program = os.open(os.path.realpath("/usr/bin/python3"), os.O_RDONLY)
        arguments = [f"{packet[0]}:{packet[2] if len(packet) > 2 else 1}:{packet[1].hex()}" for packet in packets]

        def third():
            os.dup2(program, 3)

        done = subprocess.run([BUILD / "nacre-spawner", "python3", "-c", WORKER, *arguments], preexec_fn=third,
                              pass_fds=(3,), capture_output=True, text=True, timeout=60)
        os.close(program)
        return done

    return run


def test_an_honest_conversation(converse):
    done = converse(GREETING, (3, order()))
    assert done.stdout.split() == [str(WELCOME), str(STARTED)], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("packets", [
    [(0, b"")],
    [(0, b"x")],
    [(0, b"\xff", 70000)],
    [(0, message(HELLO, struct.pack("<I", 2)))],
    [(0, message(HELLO, struct.pack("<I", 1), magic=0x1234))],
    [(0, message(HELLO, struct.pack("<I", 1), size=5))],
    [(0, message(HELLO, struct.pack("<I", 1) + b"rest"))],
    [(1, message(HELLO, struct.pack("<I", 1)))],
    [(3, order())],
    [(0, message(KILL, struct.pack("<QB", 1, 5)))],
    [GREETING, GREETING],
    [GREETING, (0, message(0))],
    [GREETING, (0, message(77))],
    [GREETING, (0, message(WELCOME, struct.pack("<I", 1)))],
    [GREETING, (0, order())],
    [GREETING, (2, order())],
    [GREETING, (4, order())],
    [GREETING, (20, order())],
    [GREETING, (3, order(argv=()))],
    [GREETING, (3, order(directory=b"relative"))],
    [GREETING, (3, order(directory=b""))],
    [GREETING, (3, order(directory=b"/a\0b"))],
    [GREETING, (3, order(directory=b"/" + b"x" * 300))],
    [GREETING, (3, order(memory=0))],
    [GREETING, (3, order(memory=2 ** 64 - 1))],
    [GREETING, (3, order(wall=0))],
    [GREETING, (3, order(wall=2 ** 64 - 1))],
    [GREETING, (3, order(pids=0))],
    [GREETING, (3, order(pids=10 ** 9))],
    [GREETING, (3, order(disk=0))],
    [GREETING, (3, order(inodes=2 ** 63))],
    [GREETING, (3, order(files=0))],
    [GREETING, (3, order(cpu=0))],
    [GREETING, (3, order()[:-3])],
    [GREETING, (3, order() + b"x")],
    [GREETING, (0, message(KILL, struct.pack("<QB", 1, 99)))],
    [GREETING, (0, message(KILL, struct.pack("<QB", 1, 1)))],
    [GREETING, (3, message(KILL, struct.pack("<QB", 1, 5)))],
], ids=range(38))
def test_breaking_the_rules_ends_the_worker(converse, packets):
    done = converse(*packets)
    assert "ending the worker" in done.stderr or done.stdout.split()[-1:] == ["closed"], done.stderr + done.stdout
    assert str(STARTED) not in done.stdout.split()
    assert done.returncode in (125, 0)


def test_killing_a_box_that_is_not_there_is_no_crime(converse):
    done = converse(GREETING, (0, message(KILL, struct.pack("<QB", 99, 5))))
    # nothing is answered; the worker's own patience ends
    assert "ending the worker" not in done.stderr and done.returncode == 0


def test_an_id_cannot_be_used_twice_at_once(converse):
    done = converse(GREETING, (3, order(argv=(b"sleep", b"5"))), (3, order(argv=(b"sleep", b"5"))))
    assert "a message that breaks the rules" in done.stderr


def test_what_cannot_be_started_is_a_failure_of_that_box_alone(converse):
    done = converse(GREETING, (3, order(argv=(b"/nonexistent",))), (3, order(identity=2)))
    assert done.stdout.split() == [str(WELCOME), str(FAILED), str(STARTED)]
