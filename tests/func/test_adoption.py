"""A spawner that starts its worker again: kept boxes live on, and the next worker is told of them."""

import ast
import ctypes
import fcntl
import os
import pathlib
import random
import signal
import socket
import subprocess
import time

import pytest

from conftest import BUILD, HOLDER, ROOT, TERMS, open_way
from leftovers import lives
from wire import ADOPT, CANCEL, ENDED, EXIT, STARTED, WELCOME, call, start_holder

PYTHON = os.path.realpath("/usr/bin/python3")
WIRE = (ROOT / "tests/func/wire.py").read_text()

# a worker that does what it reads, an expression per line, and prints what came of it. All of them share these pipes:
# nothing is read ahead, since the next line may be for the next worker
SCRIPT = WIRE + r"""
import sys, time
worker = Worker()
def keep(identity, script, **fields):
    # a kept box with a pipe each for output and error; gives the reading ends
    pipes = [os.pipe() for _ in range(2)]
    null = os.open("/dev/null", os.O_RDWR)
    fds = [null, pipes[0][1], pipes[1][1], null, pipes[0][0], pipes[1][0]]
    worker.send(order(identity, argv=(b"sh", b"-c", script), flags=KEEP, wall=60000, **fields), fds)
    for fd in (null, pipes[0][1], pipes[1][1]): os.close(fd)
    return [pipes[0][0], pipes[1][0]]
def plain(identity, script): return worker.run(identity, argv=(b"sh", b"-c", script), wall=60000)
def next_message():
    kind, body, fds = worker.receive()
    if kind == ENDED: return kind, read_end(body)
    return kind, struct.unpack("<Q", body[:8])[0] if kind in (ADOPT, STARTED, FAILED) else None, fds
def hello():
    worker.send(greeting())
    return next_message()[0]
def whole(fd):
    data = b""
    while part := os.read(fd, 65536): data += part
    return data
def line():
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(0, 1)
        if not part: sys.exit(0)
        data += part
    return data.decode()
if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
    print("dies", flush=True)
    os._exit(1)
print("worker", os.getpid(), flush=True)
while True:
    try: result = eval(line())
    except Exception as error: result = repr(error)
    print(repr(result), flush=True)
"""


class Fleet:
    """A spawner with a worker that was there before it, as `nacre` makes them, and what starts it again."""

    def __init__(self, flag="/nonexistent"):
        arguments = ["python3", "-c", SCRIPT, str(flag)]
        program = os.open(PYTHON, os.O_RDONLY)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to_worker, self.to_worker = os.pipe()
        self.from_worker, from_worker = os.pipe()
        self.errors, errors = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for number, descriptor in enumerate((to_worker, from_worker, errors)):
                    os.dup2(descriptor, number)
                worker = os.fork()
                high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for descriptor in (theirs.fileno(), ours.fileno(), program)]
                os.dup2(high[0] if worker == 0 else high[1], 3)
                if worker == 0:
                    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # as nacre does: it goes with the spawner
                    os.closerange(4, 256)
                    os.execv(PYTHON, arguments)
                os.dup2(high[2], 4)
                os.closerange(5, 256)
                os.execv(BUILD / "nacre-spawner", ["nacre-spawner", str(worker), "0", "0", *arguments])
            finally:
                os._exit(99)
        for descriptor in (program, to_worker, from_worker, errors):
            os.close(descriptor)
        ours.close()
        theirs.close()
        self.reader = os.fdopen(self.from_worker, "r")
        self.error_reader = os.fdopen(self.errors, "r")
        self.worker = self.next_worker()

    def next_worker(self):
        words = self.reader.readline().split()
        assert words and words[0] == "worker", words or self.error_reader.read()
        self.worker = int(words[1])
        return self.worker

    def ask(self, expression):
        os.write(self.to_worker, expression.encode() + b"\n")
        answer = self.reader.readline()
        assert answer, f"no answer to {expression}"
        return ast.literal_eval(answer)

    def kill_worker(self):
        """Ends this fleet's own worker, and waits for the next."""
        assert children(self.pid)[self.worker].startswith(b"python3"), "not our worker"
        os.kill(self.worker, signal.SIGKILL)
        return self.next_worker()

    def break_a_rule(self, crime):
        """For which the worker is ended, and the next one started."""
        os.write(self.to_worker, f"worker.send({crime}), time.sleep(60)\n".encode())
        return self.next_worker()

    def wait(self, seconds=10):
        """The exit status of the spawner."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = None
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        raise AssertionError("the spawner does not end")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.to_worker)
        self.reader.close()
        self.error_reader.close()


class HolderFleet(Fleet):
    """The same with the other holder: who starts workers again is its caller, here this test."""

    def __init__(self, flag="/nonexistent"):
        self.flag = flag
        self.place, self.pid = start_holder(str(HOLDER))
        self.their_input, self.to_worker = os.pipe()
        self.from_worker, self.their_output = os.pipe()
        self.errors, self.their_errors = os.pipe()
        self.reader = os.fdopen(self.from_worker, "r")
        self.error_reader = os.fdopen(self.errors, "r")
        self.start_worker()

    def start_worker(self):
        connection = call(self.place)
        script = SCRIPT.replace("worker = Worker()", "USUAL = REMOTE\nworker = Worker()")
        self.process = subprocess.Popen([PYTHON, "-c", script, str(self.flag)], stdin=self.their_input, stdout=self.their_output, stderr=self.their_errors,
                                        pass_fds=(3,), preexec_fn=lambda: os.dup2(connection.fileno(), 3))
        connection.close()
        self.next_worker()

    def kill_worker(self):
        self.process.kill()
        self.process.wait()
        self.start_worker()
        return self.worker

    def break_a_rule(self, crime):
        assert self.ask(f"(worker.send({crime}), worker.receive()[0])")[1] == 0, "it was not hung up on"
        return self.kill_worker()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.place.close()
        if self.pid:
            assert self.wait() == 0  # nobody can call any more
        for descriptor in (self.their_input, self.their_output, self.their_errors, self.to_worker):
            os.close(descriptor)
        self.reader.close()
        self.error_reader.close()


def children(pid):
    found = {}
    for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            found[int(word)] = pathlib.Path(f"/proc/{word}/cmdline").read_bytes()
        except OSError:
            continue
    return found


@pytest.fixture(params=["direct", "holder"])
def fleet(as_root, tmp_path, request):
    mark = request.node.get_closest_marker("wants")
    missing = set(mark.args if mark else ()) - TERMS[request.param] - {"spawner"}
    if missing or (mark and "spawner" in mark.args and request.param == "holder"):
        pytest.skip(f"not of this holder: {', '.join(sorted(missing)) or 'starting the worker again'}")
    made = {"direct": Fleet, "holder": HolderFleet}[request.param](tmp_path / "die")
    made.flag = tmp_path / "die"
    open_way(tmp_path)
    yield made
    made.close()


def nap():
    return f"sleep {random.randint(10 ** 6, 10 ** 9)}"


def runs(command):
    return subprocess.run(["pgrep", "-xf", command], capture_output=True).returncode == 0


def ends(command, seconds=3):
    end = time.monotonic() + seconds
    while runs(command) and time.monotonic() < end:
        time.sleep(0.02)
    return not runs(command)


def starts(command, seconds=3):
    end = time.monotonic() + seconds
    while not runs(command) and time.monotonic() < end:
        time.sleep(0.02)
    return runs(command)


def test_a_kept_box_survives_its_worker(fleet):
    assert fleet.ask("hello()") == WELCOME
    output, _ = fleet.ask("keep(1, b'echo one; echo bad >&2; sleep 0.7; echo two; exit 5')")
    assert fleet.ask("next_message()")[:2] == (STARTED, 1)
    assert fleet.ask(f"os.read({output}, 4)") == b"one\n"
    first = fleet.worker
    assert fleet.kill_worker() != first
    assert fleet.ask("hello()") == WELCOME
    kind, identity, fds = fleet.ask("next_message()")
    assert (kind, identity, len(fds)) == (ADOPT, 1, 3)
    # what the first worker has read is gone, all that was written later is there
    assert (fleet.ask(f"whole({fds[1]})"), fleet.ask(f"whole({fds[2]})")) == (b"two\n", b"bad\n")
    kind, end = fleet.ask("next_message()")
    assert (kind, end["id"], end["cause"], end["code"], end["signal"]) == (ENDED, 1, EXIT, 5, 0)
    fleet.ask("worker.send(forget(1))")
    # it is forgotten: the number is free again
    fleet.ask("keep(1, b'exit 6')")
    assert fleet.ask("next_message()")[:2] == (STARTED, 1)
    assert fleet.ask("next_message()")[1]["code"] == 6


def test_output_of_the_time_between_is_not_lost(fleet):
    """A pipe full of output, written while there is no reader at all; the program waits, and is not ended for it."""
    fleet.ask("hello()")
    fleet.ask("keep(1, b'sleep 0.3; head -c 200000 /dev/zero; echo end; exit 3')")
    fleet.ask("next_message()")
    fleet.kill_worker()
    time.sleep(0.6)
    fleet.ask("hello()")
    fds = fleet.ask("next_message()")[2]
    assert fleet.ask(f"len(whole({fds[1]}))") == 200004
    assert fleet.ask("next_message()")[1]["code"] == 3


def test_a_box_that_is_not_kept_dies_with_its_worker(fleet):
    lost, kept = nap(), nap()
    fleet.ask("hello()")
    fleet.ask(f"plain(1, b'exec {lost}')")
    assert fleet.ask("next_message()")[:2] == (STARTED, 1)
    fleet.ask(f"keep(2, b'exec {kept}')")
    assert fleet.ask("next_message()")[:2] == (STARTED, 2)
    assert starts(lost) and starts(kept)
    fleet.kill_worker()
    assert ends(lost) and runs(kept)
    fleet.ask("hello()")
    assert fleet.ask("next_message()")[:2] == (ADOPT, 2)
    # the number of the dead one is free; its end was the dead worker's business
    fleet.ask("plain(1, b'exit 4')")
    messages = [fleet.ask("next_message()") for _ in range(2)]
    assert [message[0] for message in messages] == [STARTED, ENDED] and messages[1][1]["code"] == 4
    # and an adopted box can be ended like any other
    fleet.ask("worker.send(kill(2))")
    kind, end = fleet.ask("next_message()")
    assert (kind, end["id"], end["cause"], end["signal"]) == (ENDED, 2, CANCEL, 9) and ends(kept)


def test_an_end_that_nobody_read_is_told_again(fleet):
    fleet.ask("hello()")
    fleet.ask("keep(7, b'echo last; exit 9')")
    assert fleet.ask("next_message()")[:2] == (STARTED, 7)
    fleet.ask("time.sleep(0.5)")  # it has ended, and the message waits
    for _ in range(2):  # as often as a worker dies before it says that it took note
        fleet.kill_worker()
        fleet.ask("hello()")
        kind, identity, fds = fleet.ask("next_message()")
        assert (kind, identity) == (ADOPT, 7)
        kind, end = fleet.ask("next_message()")
        assert (kind, end["id"], end["code"]) == (ENDED, 7, 9)
    assert fleet.ask(f"whole({fds[1]})") == b"last\n"
    fleet.ask("worker.send(forget(7))")
    fleet.ask("plain(1, b'true')")  # answered after it
    fleet.ask("next_message()")
    fleet.kill_worker()
    fleet.ask("hello()")
    fleet.ask("plain(2, b'true')")
    assert fleet.ask("next_message()")[:2] == (STARTED, 2), "a forgotten box is offered again"


def test_several_boxes_are_adopted(fleet):
    fleet.ask("hello()")
    for number in range(1, 6):
        fleet.ask(f"keep({number}, b'sleep 0.8; echo {number}; exit {number}')")
    assert sorted(fleet.ask("next_message()")[1] for _ in range(5)) == [1, 2, 3, 4, 5]
    fleet.kill_worker()
    fleet.ask("hello()")
    adopted = [fleet.ask("next_message()") for _ in range(5)]
    assert sorted((kind, identity) for kind, identity, _ in adopted) == [(ADOPT, number) for number in range(1, 6)]
    assert {identity: fleet.ask(f"whole({fds[1]})") for _, identity, fds in adopted} == {n: b"%d\n" % n for n in range(1, 6)}
    ended = [fleet.ask("next_message()")[1] for _ in range(5)]
    assert {end["id"]: end["code"] for end in ended} == {n: n for n in range(1, 6)}


@pytest.mark.wants("spawner")
def test_a_worker_that_always_dies_is_given_up(fleet):
    command = nap()
    fleet.ask("hello()")
    fleet.ask(f"keep(1, b'exec {command}')")
    fleet.ask("next_message()")
    assert starts(command)
    fleet.flag.touch()
    started = time.monotonic()
    os.kill(fleet.worker, signal.SIGKILL)
    assert fleet.wait() == 125 and time.monotonic() - started < 8
    assert [line.strip() for line in fleet.reader] == ["dies"] * 5
    assert "The worker died too often" in fleet.error_reader.read()
    assert ends(command, 0.5), "a kept box outlives its spawner"


@pytest.mark.parametrize("crime", ["b'junk'", "message(99)", "ready(300)", "forget(1)", "order(1)", "message(ADOPT, bytes(8))"])
def test_a_worker_that_breaks_the_rules_is_ended_and_its_kept_box_lives_on(fleet, crime):
    command = nap()
    fleet.ask("hello()")
    fleet.ask(f"keep(1, b'exec {command}')")
    fleet.ask("next_message()")
    assert starts(command)
    first = fleet.worker
    assert fleet.break_a_rule(crime) != first
    assert runs(command)
    fleet.ask("hello()")
    assert fleet.ask("next_message()")[:2] == (ADOPT, 1)
    fleet.ask("worker.send(kill(1))")
    assert fleet.ask("next_message()")[1]["cause"] == CANCEL and ends(command)


@pytest.mark.wants("cpu_time")
def test_limits_of_a_kept_box_go_on_without_a_worker(fleet):
    """Nobody serves while the worker is started again; the deadline holds all the same."""
    fleet.ask("hello()")
    fleet.ask("keep(1, b'while :; do :; done', cpu_time=300)")
    assert fleet.ask("next_message()")[:2] == (STARTED, 1)
    fleet.kill_worker()
    time.sleep(0.8)  # it does not greet yet
    fleet.ask("hello()")
    assert fleet.ask("next_message()")[:2] == (ADOPT, 1)
    kind, end = fleet.ask("next_message()")
    assert (kind, end["cause"]) == (ENDED, 2)


@pytest.mark.wants("spawner")
def test_the_next_worker_has_no_privilege(fleet):
    for _ in range(2):
        status = pathlib.Path(f"/proc/{fleet.worker}/status").read_text()
        if _ == 1:
            assert f"Uid:\t{0x70000000 - 1}\t" in status and "NoNewPrivs:\t1" in status
            assert all(f"{name}:\t0000000000000000" in status for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
            assert "SigBlk:\t0000000000000000" in status
            assert sorted(os.listdir(f"/proc/{fleet.worker}/fd")) == ["0", "1", "2", "3"]
            assert "Groups:\t \n" in status or "Groups:\t\n" in status
        else:
            fleet.kill_worker()


def test_descriptors_do_not_leak(fleet):
    fleet.ask("hello()")
    counts = []
    for number in range(1, 5):
        fleet.ask(f"keep({number}, b'echo x')")
        fleet.ask("next_message()"), fleet.ask("next_message()")
        fleet.kill_worker()
        fleet.ask("hello()")
        fleet.ask("next_message()"), fleet.ask("next_message()")
        fleet.ask(f"worker.send(forget({number}))")
        fleet.ask("plain(99, b'true')"), fleet.ask("next_message()"), fleet.ask("next_message()")
        counts.append(settled_count(fleet.pid))
    assert len(set(counts)) == 1, counts


def settled_count(pid):
    """The end of a box is told before its last descriptors are closed."""
    count = None
    while count != (count := len(os.listdir(f"/proc/{pid}/fd"))):
        time.sleep(0.2)
    return count


@pytest.mark.wants("spawner")
@pytest.mark.parametrize("how", ["contented", "terminated", "killed"])
def test_kept_boxes_end_with_the_spawner(fleet, how):
    command = nap()
    fleet.ask("hello()")
    fleet.ask(f"keep(1, b'exec {command}')")
    fleet.ask("next_message()")
    assert starts(command)
    if how == "contented":
        os.write(fleet.to_worker, b"sys.exit(0)\n")
    else:
        os.kill(fleet.pid, signal.SIGTERM if how == "terminated" else signal.SIGKILL)
    code = fleet.wait()
    assert code == {"contented": 0, "terminated": 137, "killed": -9}[how]
    assert ends(command)
    assert ends_pid(fleet.worker), "the worker outlives the spawner"


def ends_pid(pid, seconds=3):
    end = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not lives(pid)


@pytest.mark.wants("spawner")
def test_a_worker_that_ends_with_an_error_is_started_again(fleet):
    first = fleet.worker
    fleet.ask("hello()")
    os.write(fleet.to_worker, b"os._exit(3)\n")
    assert fleet.next_worker() != first
    assert fleet.ask("hello()") == WELCOME


def test_boxes_are_ready_again_for_the_next_worker(fleet):
    fleet.ask("hello()")
    fleet.ask("worker.send(ready(3))")
    fleet.ask("plain(1, b'true')"), fleet.ask("next_message()"), fleet.ask("next_message()")
    fleet.kill_worker()
    fleet.ask("hello()")
    fleet.ask("plain(1, b'exit 8')")
    assert fleet.ask("next_message()")[0] == STARTED and fleet.ask("next_message()")[1]["code"] == 8


def test_a_kept_process_box(fleet):
    tier = "REMOTE" if isinstance(fleet, HolderFleet) else "PROCESS"
    fleet.ask("worker.send(greeting())")
    scratch = fleet.ask("worker.scratch(worker.receive()[1])")
    fleet.ask(f"keep(1, b'echo x >file; sleep 0.6; cat file; exit 5', tier={tier}, directory={scratch.encode() + b'/1/workspace'!r})")
    assert fleet.ask("next_message()")[:2] == (STARTED, 1)
    fleet.kill_worker()
    fleet.ask("hello()")
    fds = fleet.ask("next_message()")[2]
    assert fleet.ask(f"whole({fds[1]})") == b"x\n"
    assert fleet.ask("next_message()")[1]["code"] == 5
    assert not os.path.exists(f"{scratch}/1")
