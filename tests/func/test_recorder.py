"""nacre-recorder from the side of its worker: what is acknowledged is there whatever is killed, what breaks the rules ends the
conversation, and every attack on the files is found."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from conftest import BUILD, open_way
from recordwire import (AUDIT, BLOB, BORN, CALL, DIED, EXECUTION, FINISH, HELLO, LIMIT, NOTE, OPEN, OWNER, PART, RECEIPT, SECURITY, VERSION, Recorder, birth, blob,
                        check_chain, death, entry, greeting, hand_over, lines, make_history, message, note, read_key, sealed, segments, text)


@pytest.fixture
def history(tmp_path):
    return make_history(tmp_path / "state")


@pytest.fixture
def audit(nacre, history):
    """Verifies by the program: the answer as a dictionary; its exit code must fit."""

    def run(*args, key=None):
        words = ["--key", key] if key else []
        done = nacre("audit", "verify", "--json", *words, *args, env={"NACRE_STATE": str(history.parent)})
        assert done.returncode in (0, 1), done.stderr
        answer = json.loads(done.stdout)
        assert answer["ok"] == (done.returncode == 0) == (answer["damages"] == [])
        return answer

    return run


def test_an_execution_is_a_chain_of_lines(history, audit):
    with Recorder(history, witness=True) as recorder:
        assert (recorder.lost, recorder.cut, recorder.missing) == (0, 0, 0)
        code, digest = recorder.keep(b"print(1)")
        assert code == 0
        recorder.open("ex_1", language="python", code_sha256=digest)
        recorder.witness.send(birth(7, 1000, name=b"ex_1"))
        recorder.note(SECURITY, "denied", {"call": "mount"})
        assert recorder.finish("ex_1", status="success", labels={"a": "é"})[:2][0] == 0
        recorder.witness.send(death(7, memory=12345, name=b'no id"'))
        assert recorder.end() == (0, "")
    found = lines(history)
    assert check_chain(history) == len(found) == 5
    assert sorted((line["from"], line["kind"], line["event"], line["id"]) for line in found) == [
        ("spawner", "audit", "born", "ex_1"), ("spawner", "audit", "died", ""), ("worker", "execution", "finish", "ex_1"),
        ("worker", "execution", "open", "ex_1"), ("worker", "security", "denied", "")]
    assert [line["seq"] for line in found] == [1, 2, 3, 4, 5]
    assert next(line for line in found if line["event"] == "died")["body"]["memory_peak_bytes"] == 12345
    answer = audit()
    assert answer["ok"] and answer["lines"] == 5 and answer["first_seq"] == 1


PTRACE = 101 if os.uname().machine == "x86_64" else 117
REFUSALS = [(CALL, PTRACE, 7), (LIMIT, 1, 3), (CALL, 1 << 20, 1)]
DENIALS = [{"id": "seccomp.ptrace", "layer": "seccomp", "count": 7}, {"id": "limit.pids", "layer": "limit", "count": 3},
           {"id": "seccomp.unknown", "layer": "seccomp", "count": 1}]


def security(history):
    return [line["body"] for line in lines(history) if line["kind"] == "security"]


def wait_for(history, event, n=1):
    until = time.monotonic() + 10
    while len([line for line in lines(history) if line["event"] == event]) < n:
        assert time.monotonic() < until, lines(history)
        time.sleep(0.05)


@pytest.mark.parametrize("first", ["death", "loss"])
def test_what_was_refused_to_one_that_is_lost_is_told_once(history, first):
    with Recorder(history, witness=True) as recorder:
        recorder.open("ex_1", language="python")
        recorder.open("ex_2", language="python")
        wait_for(history, "open", 2)
        if first == "death":
            recorder.witness.send(death(7, name=b"ex_1", refusals=REFUSALS))
            wait_for(history, "died")
        recorder.socket.close()
        wait_for(history, "lost", 2)
        if first == "loss":
            recorder.witness.send(death(7, name=b"ex_1", refusals=REFUSALS))
            wait_for(history, "denied")  # at once
        recorder.witness.send(death(8, name=b"ex_2"))
        recorder.witness.close()
        assert recorder.process.wait(timeout=20) == 0
    assert [(told["id"], told["status"], told["denials"]) for told in security(history)] == [("ex_1", "lost", DENIALS)]
    deaths = [line["body"] for line in lines(history) if line["event"] == "died"]
    assert [told.get("denials") for told in deaths] == [DENIALS, None]
    check_chain(history)


def test_what_was_refused_to_one_that_ends_is_its_worker_s_to_tell(history):
    with Recorder(history, witness=True) as recorder:
        recorder.open("ex_1", language="python")
        recorder.witness.send(death(7, name=b"ex_1", refusals=REFUSALS))
        recorder.finish("ex_1", status="success")
        recorder.open("ex_2", language="python")
        recorder.finish("ex_2", status="success")
        recorder.witness.send(death(7, name=b"ex_2", refusals=REFUSALS))
        assert recorder.end() == (0, "")
    assert security(history) == []


def test_the_next_recorder_tells_what_was_refused(history):
    with Recorder(history, witness=True) as recorder:
        recorder.open("ex_1", language="python")
        wait_for(history, "open")
        recorder.witness.send(death(7, name=b"ex_1", refusals=REFUSALS))
        wait_for(history, "died")
        recorder.process.kill()
        recorder.process.wait()
    with Recorder(history) as recorder:
        assert recorder.lost == 1 and recorder.end() == (0, "")
    assert [(told["id"], told["denials"]) for told in security(history)] == [("ex_1", DENIALS)]


@pytest.mark.parametrize("lie", [dict(n_refusals=41), dict(n_refusals=2), dict(n_refusals=0), dict(refusals=[(2, 1, 1)])])
def test_a_witness_that_lies_about_refusals_is_not_heard(history, lie):
    with Recorder(history, witness=True) as recorder:
        recorder.witness.send(death(7, **{"refusals": REFUSALS[:1], **lie}))
        until = time.monotonic() + 10
        try:  # it hangs up
            while time.monotonic() < until:
                recorder.witness.send(birth(8))
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() < until and recorder.end() == (0, "")
    assert [line for line in lines(history) if line["event"] == "died"] == []


def test_a_receipt_is_the_number_and_the_hash_of_the_line(history, nacre, audit):
    with Recorder(history) as recorder:
        code, seq, digest = recorder.run("ex_1", status="success")
        assert code == 0
    head = nacre("audit", "head", env={"NACRE_STATE": str(history.parent)}).stdout.strip()
    assert head == f"{seq}:{digest}"
    assert audit("--head", head)["ok"]
    assert not audit("--head", f"{seq}:{'0' * 64}")["ok"]
    assert audit("--head", f"{seq + 1}:{digest}")["damages"][0]["kind"] == "cut"


def test_bodies_are_kept_as_they_are(history):
    body = b'{"a" : 1.50, "b":[ ],"u":"\\u00e9","big":123456789012}'
    with Recorder(history) as recorder:
        recorder.send(entry(OPEN, "ex_1", body))
        recorder.send(entry(FINISH, "ex_1", body))
        recorder.receipt()
    assert segments(history)[0].read_bytes().count(b'"body":' + body + b',"prev":') == 2


def test_blobs_small_large_and_too_large(history):
    with Recorder(history, blobs=1 << 20) as recorder:
        for size in (0, 1, 40000, 60000, 1 << 20):
            data = random.Random(size).randbytes(size)
            code, digest = recorder.keep(data)
            assert code == 0
            assert (history / "blobs" / digest[:2] / digest[2:]).read_bytes() == data
        recorder.send(blob(b""), [sealed(bytes((1 << 20) + 1))])
        kind, body = recorder.receive()
        assert struct.unpack("<I", body[:4])[0] == 27  # EFBIG
        assert recorder.run("ex_1", status="success")[0] == 0
    kept = [path for path in (history / "blobs").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) <= 1 << 20


DEEP = b'{"a":' * 70 + b"1" + b"}" * 70
HOSTILE = {
    "nothing but noise": [b"\0" * 40],
    "an unknown message": [message(99)],
    "an answer": [message(RECEIPT)],
    "a message of the spawner": [death(1)],
    "a second greeting": [greeting()],
    "a wrong size": [message(OPEN, text(b"x") + text(b"{}"), size=4)],
    "something left over": [message(OPEN, text(b"x") + text(b"{}") + b"x")],
    "no id": [entry(OPEN, "", {})],
    "a quote in an id": [entry(OPEN, 'a"b', {})],
    "a newline in an id": [entry(OPEN, "a\nb", {})],
    "a slash in an id": [entry(OPEN, "../a", {})],
    "a long id": [entry(OPEN, "a" * 65, {})],
    "a NUL in an id": [entry(OPEN, "a\0b", {})],
    "no body": [entry(OPEN, "a", b"")],
    "no object": [entry(OPEN, "a", b"[1]")],
    "half an object": [entry(OPEN, "a", b'{"a":1')],
    "an object and more": [entry(OPEN, "a", b'{},"seq":9')],
    "two objects": [entry(OPEN, "a", b"{}{}")],
    "a newline in a body": [entry(OPEN, "a", b'{"a":\n1}')],
    "a return in a body": [entry(OPEN, "a", b'{"a":\r1}')],
    "a NUL in a body": [entry(OPEN, "a", b'{"a":"\0"}')],
    "a body that is no UTF-8": [entry(OPEN, "a", b'{"a":"\xff"}')],
    "a key twice": [entry(OPEN, "a", b'{"a":1,"a":2}')],
    "a deep body": [entry(OPEN, "a", DEEP)],
    "a body that is too long": [entry(OPEN, "a", b'{"a":"' + b"x" * 62000 + b'"}')],
    "an end without a beginning": [entry(FINISH, "a", {})],
    "a second end": [entry(OPEN, "a", {}), entry(FINISH, "a", {}), entry(FINISH, "a", {})],
    "a second beginning": [entry(OPEN, "a", {}), entry(OPEN, "a", {})],
    "a note about executions": [note(EXECUTION, "finish", {})],
    "a note of no kind": [note(4, "x", {})],
    "more executions than allowed": [entry(OPEN, f"a{n}", {}) for n in range(2049)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_worker_that_breaks_the_rules_is_not_listened_to(history, audit, name):
    with Recorder(history) as recorder:
        try:
            for packet in HOSTILE[name]:
                recorder.send(packet)
        except BrokenPipeError:
            pass
        kind = RECEIPT
        while kind == RECEIPT:
            kind, _ = recorder.receive()
        assert kind == 0
        code, error = recorder.end()
        assert code == 0 and "not listening to it any more" in error
    assert [line["kind"] for line in lines(history) if line["event"] == "worker-ended"] == ["security"]
    assert audit()["ok"]
    check_chain(history)


@pytest.mark.parametrize("packet", [entry(FINISH, "a", {}), note(SECURITY, "denied", {}), blob(b"x"), entry(OPEN, "a b", {}), greeting(VERSION + 1), message(HELLO)])
def test_little_is_heard_before_a_greeting(history, packet):
    """Only what goes on."""
    with Recorder(history, hello=False) as recorder:
        recorder.send(packet)
        assert recorder.receive()[0] == 0


@pytest.mark.parametrize("make", [lambda: os.open("/etc/passwd", os.O_RDONLY), lambda: os.pipe()[0], lambda: sealed(b"x", 0), lambda: sealed(b"x", 2),
                                  lambda: socket.socketpair()[0].detach()], ids=["file", "pipe", "unsealed", "half sealed", "socket"])
def test_only_sealed_memory_is_taken(history, make):
    with Recorder(history) as recorder:
        recorder.send(blob(b""), [make()])
        assert recorder.receive()[0] == 0


def test_two_descriptors_or_one_with_another_message_break_the_rules(history):
    for packet, n in ((blob(b""), 2), (blob(b"x"), 1), (entry(OPEN, "a", {}), 1)):
        with Recorder(history) as recorder:
            recorder.send(packet, [sealed(b"x") for _ in range(n)])
            assert recorder.receive()[0] == 0


def test_a_worker_that_does_not_read_is_waited_for(history):
    with Recorder(history) as recorder:
        recorder.socket.settimeout(0.3)
        sent = 0
        try:
            while sent < 5000:
                recorder.send(entry(OPEN, f"a{sent}", {}))
                recorder.send(entry(FINISH, f"a{sent}", {}))
                sent += 1
        except TimeoutError:
            pass
        recorder.socket.settimeout(10)
        assert [recorder.receipt()[0] for _ in range(sent)] == [0] * sent
        recorder.end()
    check_chain(history)


def test_signals_of_a_terminal_lose_nothing(history):
    with Recorder(history) as recorder:
        recorder.open("ex_1")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
            recorder.process.send_signal(number)
        assert recorder.finish("ex_1", status="cancelled")[0] == 0
        assert recorder.end()[0] == 0
    assert check_chain(history) == 2


def test_what_a_worker_leaves_open_is_lost(history):
    with Recorder(history) as recorder:
        recorder.open("ex_1", language="python")
        recorder.run("ex_2", status="success")
    last = lines(history)[-1]
    assert (last["event"], last["id"], last["from"], last["body"]["status"]) == ("lost", "ex_1", "recorder", "lost")
    assert not list((history / "live").iterdir())


def test_the_next_worker_comes_in_at_the_place(history, audit):
    with Recorder(history, place=True) as recorder:
        recorder.open("ex_1")
        assert recorder.run("ex_2", status="success")[0] == 0
        for n in range(3, 40):  # said, and the answers never read: all of it holds
            recorder.send(entry(OPEN, f"ex_{n}", {}))
            recorder.send(entry(FINISH, f"ex_{n}", {"status": "success"}))
        recorder.send(entry(OPEN, "ex_last", {}))
        recorder.socket.close()
        recorder.call()
        assert recorder.run("ex_new", status="success")[0] == 0
        recorder.call()  # while the one before is still there
        assert recorder.run("ex_newer", status="success")[0] == 0
        assert recorder.end() == (0, "")
    found = lines(history)
    assert {line["id"] for line in found if line["event"] == "lost"} == {"ex_1", "ex_last"}
    finished = [line["id"] for line in found if line["event"] == "finish"]
    assert finished == ["ex_2", *(f"ex_{n}" for n in range(3, 40)), "ex_new", "ex_newer"]
    assert audit()["ok"]


def test_what_a_hostile_worker_hands_in_at_the_place(history, audit, tmp_path):
    """Nothing, too much, no message, what is no socket, a socket of another kind, and his own breach; the next one is served all the same."""
    with Recorder(history, place=True) as recorder:
        plain = os.open("/dev/null", os.O_RDWR)
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        stream, other = socket.socketpair()
        reading, writing = os.pipe()
        recorder.place.send(b"x")
        recorder.place.send(message(1, b""))
        recorder.place.send(message(1, bytes(60000)))
        for fds in ([plain, file], [plain] * 16, [plain], [file], [stream.fileno()], [reading], [recorder.place.fileno()]):
            socket.send_fds(recorder.place, [message(1, b"")], fds)
        other.send(b"\0" * 100)
        os.write(writing, b"x" * 100)
        recorder.call(hello=False)
        recorder.send(b"nonsense")
        assert recorder.receive()[0] == 0
        recorder.call()
        assert recorder.run("ex_1", status="success")[0] == 0
        assert os.fstat(file).st_size == 0
        for fd in (plain, file, reading, writing):
            os.close(fd)
        code, said = recorder.end()
        assert code == 0 and "not listening to it any more" in said
    assert audit()["ok"] and [line["id"] for line in lines(history) if line["event"] == "finish"] == ["ex_1"]


def test_the_next_recorder_tells_what_was_lost(history, audit):
    first = Recorder(history)
    first.open("ex_1")
    first.run("ex_2", status="success")
    first.open("ex_3")
    first.keep(b"")  # so it has heard of ex_3
    first.kill()
    with Recorder(history) as second:
        assert second.lost == 2
    lost = [line for line in lines(history) if line["event"] == "lost"]
    assert {line["id"] for line in lost} == {"ex_1", "ex_3"}
    assert {line["body"]["run"] for line in lost} == {lines(history)[0]["run"]}
    with Recorder(history) as third:
        assert third.lost == 0
    assert audit()["ok"]


def test_a_worker_whose_recorder_died_goes_on(history, audit):
    """It names what it has open, and says again what was not answered: nothing is lost, and nothing is written twice."""
    first = Recorder(history)
    for name in ("ex_runs", "ex_written", "ex_gone"):
        first.open(name, language="python")
    since = first.note(SECURITY, "denied", {"n": 1}) + 1
    first.send(entry(FINISH, "ex_written", {"status": "success"}))
    first.send(note(SECURITY, "denied", {"n": 1}))  # the same again
    until = time.monotonic() + 10
    while len(lines(history)) < 6:  # written, and the answers are not read
        assert time.monotonic() < until
        time.sleep(0.01)
    written = segments(history)[-1].read_bytes().splitlines()[4]
    first.kill()
    with Recorder(history, hello=False) as second:
        for name in ("ex_runs", "ex_written", "ex_unheard"):
            second.open(name)
        second.greet()
        assert second.lost == 1  # ex_gone, which nobody names
        assert second.note(SECURITY, "denied", {"n": 1}, since=since) == 6  # that it was
        assert second.note(SECURITY, "denied", {"n": 2}, since=since) > 6
        assert second.note(SECURITY, "denied", {"n": 1}) > 7  # another one
        second.send(entry(FINISH, "ex_written", {"status": "success"}, since=since))
        assert second.receipt() == (0, 5, hashlib.sha256(written).hexdigest())
        assert second.finish("ex_runs", status="success")[0] == second.finish("ex_unheard", status="success")[0] == 0
        second.send(entry(FINISH, "ex_written", {"status": "success"}))  # it has ended for good
        assert second.receive()[0] == 0
    ends = [(line["event"], line["id"]) for line in lines(history) if line["event"] in ("finish", "lost")]
    assert sorted(ends) == [("finish", "ex_runs"), ("finish", "ex_unheard"), ("finish", "ex_written"), ("lost", "ex_gone")]
    assert [line["body"]["n"] for line in lines(history) if line["event"] == "denied"] == [1, 1, 2, 1]
    assert audit()["ok"] and not list((history / "live").iterdir())


def test_a_worker_that_dies_with_its_recorder_loses_once(history, audit):
    """What was written but not answered has ended; nobody comes for it."""
    first = Recorder(history)
    first.open("ex_runs")
    assert first.run("ex_ended", status="success")[0] == 0
    first.open("ex_written")
    first.send(entry(FINISH, "ex_written", {"status": "success"}))
    while len(lines(history)) < 5:
        time.sleep(0.01)
    first.kill()
    second = Recorder(history, hello=False)  # its worker names it and dies with it
    second.open("ex_written")
    second.greet()
    second.kill()
    with Recorder(history) as third:
        assert third.lost == 0
    assert [(line["event"], line["id"]) for line in lines(history) if line["event"] in ("finish", "lost")] == \
        [("finish", "ex_ended"), ("finish", "ex_written"), ("lost", "ex_runs")]
    assert audit()["ok"]


def test_a_worker_that_calls_again_loses_nothing(history, audit):
    """Its recorder lives, and did not answer in time."""
    with Recorder(history, place=True) as recorder:
        for name in ("ex_1", "ex_2"):
            recorder.open(name)
        recorder.socket.close()
        time.sleep(0.2)
        recorder.call(hello=False)
        recorder.open("ex_2")
        recorder.greet()
        assert recorder.lost == 1
        assert recorder.finish("ex_2", status="success")[0] == 0
        assert recorder.end() == (0, "")
    found = [(line["event"], line["id"]) for line in lines(history)]
    assert found == [("open", "ex_1"), ("open", "ex_2"), ("lost", "ex_1"), ("finish", "ex_2")] and audit()["ok"]


def test_a_recorder_that_lives_loses_nothing_to_others(history):
    with Recorder(history) as first:
        first.open("ex_1")
        first.keep(b"")
        with Recorder(history) as second:
            assert second.lost == 0
        assert first.finish("ex_1", status="success")[0] == 0
    check_chain(history)


def test_two_recorders_keep_one_chain(history, audit):
    with Recorder(history) as one, Recorder(history) as two:
        for n in range(200):
            for recorder, name in ((one, "a"), (two, "b")):
                recorder.send(entry(OPEN, f"{name}{n}", {}))
                recorder.send(entry(FINISH, f"{name}{n}", {"status": "success"}))
            assert one.receipt()[0] == two.receipt()[0] == 0
        one.end(), two.end()
    assert check_chain(history) == 800
    assert len({line["run"] for line in lines(history)}) == 2
    assert audit()["ok"]


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_one_that_begins_while_another_sweeps(history):
    """The sweep of another one may get hold of its file of open executions before it has locked that itself: here it is slow to."""
    met = []

    def sweep():  # as nc_live_sweep does, but that it takes its time; once
        until = time.monotonic() + 20
        while not met and time.monotonic() < until:
            for path in (history / "live").glob("*"):
                with open(path, "r+") as file:
                    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
                    met.append(path.name)
                    time.sleep(0.3)
                    path.unlink()

    with Recorder(history) as first:
        first.end()
    thread = threading.Thread(target=sweep)
    thread.start()
    with Recorder(history, prefix=("strace", "-qq", "-o", "/dev/null", "-e", "trace=fcntl", "-e", "inject=fcntl:delay_enter=100000")) as slow:
        slow.send(entry(OPEN, "a", {}))
        slow.send(entry(FINISH, "a", {"status": "success"}))
        slow.receipt()
        slow.end()
    thread.join()
    assert met and [line["event"] for line in lines(history)] == ["open", "finish"]


def test_killed_at_a_hundred_moments_no_acknowledged_record_is_lost(history, audit):
    """kill -9 of the recorder at random moments of a stream of executions, a hundred times over one history."""
    random_moments = random.Random(4)
    acknowledged = {}
    for trial in range(100):
        recorder = Recorder(history)
        deadline = time.monotonic() + random_moments.uniform(0, 0.012)
        try:
            for n in range(10000):
                name = f"ex_{trial}_{n}"
                if time.monotonic() > deadline:
                    recorder.process.kill()
                recorder.open(name)
                code, seq, digest = recorder.finish(name, status="success")
                assert code == 0
                acknowledged[name] = seq, digest
        except (OSError, AssertionError, struct.error) as gone:
            assert not isinstance(gone, AssertionError) or "(0, b'')" in str(gone), gone
        recorder.kill()
    with Recorder(history) as recorder:
        said = recorder.run("ex_last", status="success")
    acknowledged["ex_last"] = said[1:]
    import hashlib
    found, opened = {}, set()
    for path in segments(history):
        for line in path.read_bytes().splitlines():
            told = json.loads(line)
            if told["event"] == "open":
                opened.add(told["id"])
            if told["event"] in ("finish", "lost"):
                assert told["id"] not in found, "ended twice"
                found[told["id"]] = told["seq"], hashlib.sha256(line).hexdigest()
    assert len(acknowledged) > 100
    assert opened <= set(found), "begun, and neither ended nor lost"
    assert {name: found.get(name) for name in acknowledged} == acknowledged
    check_chain(history)
    assert audit()["ok"]


@pytest.fixture
def written(history):
    """A history with a few lines, and copies of all of its files to begin each attack with."""
    with Recorder(history) as recorder:
        for n in range(5):
            recorder.run(f"ex_{n}", status="success", n=n)
    return segments(history)[0], segments(history)[0].read_bytes()


def test_every_attack_on_the_lines_is_found(written, audit):
    path, data = written
    whole = data.splitlines(keepends=True)

    def attacked(parts):
        path.write_bytes(b"".join(parts))
        return not audit()["ok"]

    generator = random.Random(1)
    for at in [data.index(word) + 8 for word in (b'"seq":', b'"time":', b'"run":', b'"from":', b'"kind":', b'"event":', b'"id":', b'"body":',
                                                 b'"prev":', b'"mac":')] + generator.sample(range(len(data)), 20):
        assert attacked([data[:at], bytes([data[at] ^ 1]), data[at + 1:]]), at  # changed
        assert attacked([data[:at], data[at + 1:]]), at  # removed
        assert attacked([data[:at], b"0", data[at:]]), at  # put in
        assert attacked([data[:at]]), at  # cut
    for n in range(len(whole)):
        assert attacked(whole[:n] + whole[n + 1:])
        assert attacked(whole[:n] + [whole[n], whole[n]] + whole[n + 1:])
        assert attacked(whole[:n] + [b"\n"] + whole[n:])
        assert attacked(whole[:n] + [whole[-1]] + whole[n:])
        if n:
            assert attacked(whole[:n - 1] + [whole[n], whole[n - 1]] + whole[n + 1:])
    assert attacked(whole + [b"\n"]) and attacked(whole + [b"{}\n"]) and attacked(whole[::-1])
    assert not attacked(whole)


def test_damage_is_told_with_its_place(written, audit, nacre, history):
    path, data = written
    path.write_bytes(data.replace(b'"n":1', b'"n":7', 1))
    answer = audit()
    assert answer["n_damages"] == 1
    assert answer["damages"][0] | {"text": ""} == {"kind": "changed", "file": path.name, "line": 4, "seq": 4, "text": ""}
    said = nacre("audit", "verify", env={"NACRE_STATE": str(history.parent)})
    assert said.returncode == 1 and f"{path.name}:4: Line 4 has been changed" in said.stdout


def test_a_damaged_key_stops_the_recorder_and_says_so(history, audit):
    (history / "key").write_bytes(b"x" * 128)
    recorder = Recorder(history, hello=False)
    code, error = recorder.end()
    assert code == 125 and "key of the journal is damaged" in error
    assert audit()["damages"][0]["kind"] == "key"


def test_a_cut_journal_goes_on_and_tells(written, audit, history):
    path, data = written
    path.write_bytes(data[:len(data) // 2])
    with Recorder(history) as recorder:
        assert recorder.missing > 0
        assert recorder.run("ex_new", status="success")[0] == 0
    assert "missing" in {damage["kind"] for damage in audit()["damages"]}
    assert [line["body"]["missing_bytes"] for line in map(json.loads, segments(history)[1].read_bytes().splitlines())
            if line["event"] == "repaired"] == [len(data) - len(data) // 2]


def test_the_key_can_be_kept_elsewhere(written, audit, nacre, history, tmp_path):
    moved = tmp_path / "usb.key"
    shutil.move(history.parent / "verify.key", moved)
    assert audit(key=moved)["ok"]
    done = nacre("audit", "verify", env={"NACRE_STATE": str(history.parent)})
    assert done.returncode == 125 and "--key" in done.stderr
    moved.write_text("0" * 64 + "\n")
    assert not audit(key=moved)["ok"]
    moved.write_text("zz")
    done = nacre("audit", "verify", "--key", moved, env={"NACRE_STATE": str(history.parent)})
    assert done.returncode == 125 and "not the key of a journal" in done.stderr


def test_a_full_disk_is_told_and_breaks_no_chain(as_root, tmp_path, nacre):
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", place], check=True)
    try:
        history = make_history(place / "state")
        with Recorder(history) as recorder:
            codes = []
            for n in range(200):
                recorder.open(f"ex_{n}")
                codes.append(recorder.finish(f"ex_{n}", status="success", padding="x" * 4000)[0])
            assert codes[0] == 0 and set(codes) == {0, 28}
            assert recorder.keep(bytes(40000))[0] == 28
            (history / "journal/padding").unlink(missing_ok=True)
            subprocess.run(["mount", "-o", "remount,size=4m", place], check=True)
            assert recorder.run("ex_new", status="success")[0] == 0
            # what has ended once cannot be told another way, though it is not written yet; then it is
            assert recorder.finish(f"ex_{codes.index(28)}", status="error")[0] == errno.EALREADY
            recorder.end()
        check_chain(history)
        ends = {line["id"]: line["body"]["status"] for line in lines(history) if line["event"] in ("finish", "lost")}
        assert ends == {name: "success" for name in [*(f"ex_{n}" for n in range(200)), "ex_new"]}
        assert any(line["event"] == "dropped" for line in lines(history))
        done = nacre("audit", "verify", env={"NACRE_STATE": str(place / "state")})
        assert done.returncode == 0, done.stdout
    finally:
        subprocess.run(["umount", place], check=True)


def test_old_records_are_retired_and_the_rest_verifies(history, audit):
    with Recorder(history) as recorder:
        for n in range(600):
            recorder.open(f"ex_{n}")
            recorder.finish(f"ex_{n}", status="success", padding="x" * 40000)
        digest = recorder.keep(b"old")[1]
    assert len(segments(history)) >= 3
    (history / "swept").unlink()
    for path in (*segments(history)[:2], history / "blobs" / digest[:2] / digest[2:]):
        os.utime(path, (1, 1))
    with Recorder(history, days=1) as recorder:
        assert recorder.run("ex_new", status="success")[0] == 0
    assert segments(history)[0].name == "000000000003.jsonl"
    assert not (history / "blobs" / digest[:2] / digest[2:]).exists()
    answer = audit()
    assert answer["ok"] and answer["retired"] > 300 and answer["first_seq"] == answer["retired"] + 1
    with Recorder(history, journal=1, days=1):
        pass  # nobody sweeps twice an hour
    assert segments(history)[0].name == "000000000003.jsonl"


@pytest.mark.parametrize("attack", ["cat history/key", "cat verify.key", "ls history", "echo >>history/journal/000000000001.jsonl",
                                    "rm -f history/key", "mv history elsewhere", "rm -rf history", "mv verify.key elsewhere", "touch new",
                                    "kill -9 $PID", "cat /proc/$PID/mem", "ls /proc/$PID/fd"])
def test_a_worker_that_was_taken_over_has_no_way_to_the_files(as_root, history, attack):
    """With its user id alone, as if Landlock and filter had fallen."""
    open_way(history.parent)
    (history.parent / "verify.key").chmod(0o400)
    worker = str(0x70000000 - 1)
    with Recorder(history) as recorder:
        assert recorder.run("ex_1", status="success")[0] == 0
        done = subprocess.run(["setpriv", "--reuid", worker, "--regid", worker, "--clear-groups", "sh", "-c", attack], cwd=history.parent,
                              env={"PATH": os.environ["PATH"], "PID": str(recorder.process.pid)}, capture_output=True, text=True)
        assert done.returncode != 0 and re.search("Permission denied|not permitted", done.stderr), done
        assert recorder.run("ex_2", status="success")[0] == 0
    assert check_chain(history) == 4


def test_the_recorder_is_locked_in(history):
    with Recorder(history) as recorder:
        status = pathlib.Path(f"/proc/{recorder.process.pid}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["NoNewPrivs"] == "1"
        assert fields["CapEff"].strip("0") == "" or os.geteuid() != 0
        assert set(fields["Uid"].split()) == {str(OWNER)}
        if "asan" not in str(BUILD) and "cov" not in str(BUILD):
            assert fields["Seccomp"] == "2"


PART_SIZE = 128 << 10


def part(offset):
    return message(PART, offset.to_bytes(8, "little"))


def test_a_blob_in_parts(history):
    """Others are answered between two parts, a part out of turn is refused, and what is not finished leaves nothing."""
    data = os.urandom(3 * PART_SIZE + 17)
    digest = hashlib.sha256(data).hexdigest()
    with Recorder(history) as recorder:
        memory = sealed(data)
        for offset in range(0, 3 * PART_SIZE, PART_SIZE):
            recorder.send(part(offset), [memory])
            assert recorder.digest()[0] == errno.EINPROGRESS
            assert recorder.keep(b"small %d" % offset)[0] == 0
        assert not (history / "blobs" / digest[:2] / digest[2:]).exists()
        recorder.send(part(PART_SIZE), [memory])
        assert recorder.digest()[0] == errno.ESTALE
        recorder.send(part(3 * PART_SIZE), [memory])
        assert recorder.digest() == (0, digest)
        assert (history / "blobs" / digest[:2] / digest[2:]).read_bytes() == data
        usage = int((history / "usage").read_text())
        for offset in range(0, 4 * PART_SIZE, PART_SIZE):  # the same again is kept once
            recorder.send(part(offset), [memory])
            last = recorder.digest()
        assert last == (0, digest) and int((history / "usage").read_text()) == usage
        recorder.send(part(0), [sealed(bytes(2 * PART_SIZE))])  # and never the second
        assert recorder.digest()[0] == errno.EINPROGRESS
    files = [path for path in (history / "blobs").rglob("*") if path.is_file()]
    assert len(files) == 4 and sum(path.stat().st_size for path in files) == int((history / "usage").read_text()), files
