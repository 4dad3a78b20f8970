"""nacre engine from the other side of its socket: honest clients, slow ones and hostile ones."""

import os
import pathlib
import struct
import subprocess
import time

import pytest

from conftest import NACRE, NOBODY
from frames import Engine, data_of
from leftovers import Leftovers, descendants

AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def is_sanitized():
    return "libasan" in subprocess.run(["ldd", NACRE], capture_output=True, text=True).stdout


@pytest.fixture
def user_with_boxes(user_namespaces):
    if is_sanitized():
        pytest.skip("where no control group counts memory, a box has no room for AddressSanitizer in nacre-files")


@pytest.fixture
def engine(tmp_path):
    with Engine(tmp_path, "--max-running", "3") as running:
        assert running.receive()["event"] == "ready"
        yield running
    assert running.code == 0 and running.errors == ""


def test_greeting_says_what_it_is(tmp_path):
    with Engine(tmp_path, "--max-running", "3", "--max-queued", "7") as engine:
        greeting = engine.receive()
        version = subprocess.run([NACRE, "--version"], capture_output=True, text=True).stdout.split()[1]
        assert greeting == {"n": 0, "event": "ready", "protocol": 1, "version": version, "max_running": 3, "max_queued": 7}
    assert engine.code == 0


def test_replies_carry_the_number_of_their_request(engine):
    for i in range(12):
        engine.send({"n": 10 * i + 5, "op": "execute", "request": {"language": "shell", "code": f"echo {i}"}})
    replies = engine.replies(12)
    assert {n: frame["reply"]["output"] for n, frame in replies.items()} == {10 * i + 5: f"{i}\n" for i in range(12)}


def test_output_comes_as_it_is_printed_and_byte_by_byte(engine):
    code = r"echo first; sleep 0.5; printf '\377\000x' ; echo oops >&2"
    engine.execute({"language": "shell", "code": code}, stream=True)
    frames = [engine.receive()]
    began = time.monotonic()
    while frames[-1]["event"] == "output":
        frames.append(engine.receive())
    assert time.monotonic() - began > 0.3, "nothing came before its end"
    out = b"".join(data_of(frame) for frame in frames[:-1] if frame["stream"] == "stdout")
    errors = b"".join(data_of(frame) for frame in frames[:-1] if frame["stream"] == "stderr")
    assert (out, errors) == (b"first\n\xff\x00x", b"oops\n")
    assert frames[-1]["event"] == "done" and frames[-1]["reply"]["status"] == "success"


def test_no_output_frames_unless_asked_for(engine):
    engine.execute({"language": "shell", "code": "echo x"})
    assert engine.receive()["event"] == "done"


def test_faults_are_all_listed(engine):
    n = engine.execute({"langauge": "python", "code": 5})
    answer = engine.receive()
    assert answer["n"] == n and answer["event"] == "faults"
    assert {fault["pointer"] for fault in answer["faults"]} == {"/langauge", "/code"}
    engine.ask(op="execute", request=[1])
    assert engine.receive()["event"] == "faults"
    engine.ask(op="execute")
    assert engine.receive()["code"] == "EINVAL"


def test_cancel_at_every_stage(engine):
    running = [engine.execute({"language": "shell", "code": "sleep 60"}) for _ in range(3)]
    queued = engine.execute({"language": "shell", "code": "sleep 60"})
    while True:
        engine.ask(op="load")
        load = engine.receive()
        if load["running"] == 3:
            break
        time.sleep(0.02)
    assert load["queued"] == 1 and load["memory_bytes"] > 0
    cancels = [engine.ask(op="cancel", of=n) for n in (queued, *running)]
    answers = engine.replies(8)
    assert all(answers[n]["event"] == "ok" for n in cancels)
    assert all(answers[n]["reply"]["status"] == "cancelled" for n in (queued, *running))
    engine.ask(op="cancel", of=queued)
    assert engine.receive()["code"] == "ENOENT"


@pytest.mark.parametrize("options, limits", [
    (("--max-running", "8", "--memory", "200MB"), {"memory_mb": 150}), (("--max-running", "8", "--cpus", "2.5"), {"cpu_cores": 1.5}),
    (("--max-running", "2"), {"cpu_cores": 1.5}), (("--max-running", "8", "--memory", "20MB"), {"memory_mb": 150})], ids=["memory", "cpus", "cpus by itself", "larger than all"])
def test_what_does_not_fit_waits(tmp_path, options, limits):
    """Three that together are allowed more than there is run one after the other, also where one alone is too much."""
    with Engine(tmp_path, *options) as engine:
        engine.receive()
        code = "import time; print(time.monotonic()); time.sleep(0.3); print(time.monotonic())"
        asked = [engine.execute({"language": "python", "code": code, "limits": limits}) for _ in range(3)]
        replies = engine.replies(3)
    times = sorted([float(word) for word in replies[n]["reply"]["output"].split()] for n in asked)
    assert all(before[1] <= after[0] for before, after in zip(times, times[1:])), times


def order_of(tmp_path, running, requests):
    """The names of the requests in the order in which they began, behind others that fill the engine until all wait."""
    with Engine(tmp_path, "--max-running", str(running)) as engine:
        engine.receive()
        first = [engine.execute({"language": "shell", "code": "sleep 1", "tenant": f"early{i}"}) for i in range(running)]
        code = "date +%s%N; sleep 0.1"
        asked = {engine.execute({"language": "shell", "code": code, **request}): name for name, request in requests}
        replies = engine.replies(len(first) + len(asked))
    return [asked[n] for n in sorted(asked, key=lambda n: int(replies[n]["reply"]["output"]))]


def test_a_higher_priority_goes_first_and_equal_ones_by_their_turn(tmp_path):
    requests = [("low", {"priority": 0}), ("first", {"priority": 3}), ("low too", {"priority": 0}), ("second", {"priority": 3}), ("high", {"priority": 9})]
    assert order_of(tmp_path, 1, requests) == ["high", "first", "second", "low", "low too"]


def test_who_asks_for_much_does_not_keep_others_waiting(tmp_path):
    """The tenant of whom the least runs is next, whatever others have queued before."""
    many = [(f"many {i}", {"tenant": "many"}) for i in range(5)]
    order = order_of(tmp_path, 2, [*many, ("few", {"tenant": "few"}), ("other", {"tenant": "other"})])
    assert order.index("few") <= 1 and order.index("other") <= 3


def test_full_queue_is_told_and_nothing_else_is_lost(tmp_path):
    with Engine(tmp_path, "--max-running", "1", "--max-queued", "2") as engine:
        engine.receive()
        numbers = [engine.execute({"language": "shell", "code": f"sleep 0.2; echo {i}"}) for i in range(8)]
        answers = engine.replies(8)
        refused = [n for n in numbers if answers[n]["event"] == "error"]
        assert 0 < len(refused) < 8 and all(answers[n]["code"] == "EAGAIN" for n in refused)
        assert all(answers[n]["reply"]["output"] == f"{n - 1}\n" for n in numbers if n not in refused)


def test_check_reports_without_running(engine):
    engine.ask(op="check", language="python", code="import os\nos.system('id')\n", policy="strict")
    report = engine.receive()["report"]
    assert report["recommendation"] == "refuse" and report["imports"][0]["name"] == "os"
    for wrong in ({"language": "cobol", "code": "x"}, {"language": "python"}, {"language": "python", "code": 3},
                  {"language": "python", "code": "x", "policy": "lax"}):
        engine.ask(op="check", **wrong)
        assert engine.receive()["code"] == "EINVAL"


def test_unknown_op_is_answered(engine):
    n = engine.ask(op="explode")
    answer = engine.receive()
    assert (answer["n"], answer["event"], answer["code"]) == (n, "error", "EOPNOTSUPP")
    engine.ask(op=7)
    assert engine.receive()["code"] == "EOPNOTSUPP"
    engine.execute({"language": "shell", "code": "echo on"})
    assert engine.receive()["reply"]["output"] == "on\n"


def frame(body):
    return struct.pack("<I", len(body)) + body


BROKEN = {
    "too long": struct.pack("<I", 97 << 20),
    "as long as can be": b"\xff\xff\xff\xff",
    "empty": frame(b""),
    "not JSON": frame(b"{nothing}"),
    "a list": frame(b"[1]"),
    "too deep": frame(b'{"n":' + b"[" * 100000 + b"]" * 100000 + b"}"),
    "too many values": frame(b'{"n":1,"op":"execute","request":[' + b"1," * 40000 + b"1]}"),
    "a key twice": frame(b'{"n":1,"n":2,"op":"load"}'),
    "no number": frame(b'{"op":"load"}'),
    "number 0": frame(b'{"n":0,"op":"load"}'),
    "negative number": frame(b'{"n":-1,"op":"load"}'),
    "number with a point": frame(b'{"n":1.0,"op":"load"}'),
    "number as text": frame(b'{"n":"1","op":"load"}'),
    "number twice": frame(b'{"n":1,"op":"load"}') * 2,
    "number that goes back": frame(b'{"n":5,"op":"load"}') + frame(b'{"n":4,"op":"load"}'),
    "number beyond all": frame(b'{"n":9007199254740993,"op":"load"}'),
    "not UTF-8": frame(b'{"n":1,"op":"\xff"}'),
    "a NUL": frame(b'{"n":1,"op":"load"}\0'),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_frames_end_the_service_with_a_reason(tmp_path, name):
    left = Leftovers()
    with Engine(tmp_path) as engine:
        assert engine.receive()["event"] == "ready"
        engine.execute({"language": "shell", "code": "sleep 60"}) if "number" not in name else None
        engine.send_bytes(BROKEN[name])
        frames = []
        while (got := engine.receive()) is not None:
            frames.append(got)
        assert frames[-1]["n"] == 0 and frames[-1]["event"] == "error" and frames[-1]["message"]
    assert engine.code == 0 and engine.errors == ""
    left.check()


@pytest.mark.parametrize("bytes_sent", [b"", b"\x10", b"\x10\0\0\0", b'\x10\0\0\0{"n":1'])
def test_half_a_frame_and_a_hang_up(tmp_path, bytes_sent):
    with Engine(tmp_path) as engine:
        engine.receive()
        engine.send_bytes(bytes_sent)
    assert engine.code == 0 and engine.errors == ""


def test_hang_up_ends_everything(tmp_path):
    left = Leftovers()
    with Engine(tmp_path, "--max-running", "4") as engine:
        engine.receive()
        for _ in range(20):
            engine.execute({"language": "shell", "code": "sleep 600 & sleep 600"})
        deadline = time.monotonic() + 30
        while len(descendants(engine.process.pid)) < 12 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(descendants(engine.process.pid)) >= 12  # the worker, and of each box at least three
    assert engine.code == 0 and engine.errors == ""
    left.check()


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def memory_of(pid):
    return int(next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                    if line.startswith("VmRSS")).split()[1]) * 1024


def test_a_client_that_never_reads_costs_little(tmp_path):
    """Live output is left out beyond 8 MiB, with its size; the reply is whole, and later frames are too."""
    with Engine(tmp_path, "--max-running", "1") as engine:
        engine.receive()
        # it waits to be seen, and prints then
        code = "import sys, time\ntime.sleep(1)\nfor i in range(600): sys.stdout.write('x' * 65535 + '\\n')"
        engine.execute({"language": "python", "code": code, "limits": {"output_bytes": 1 << 30}, "timeout": 60}, stream=True)
        worker = min(descendants(engine.process.pid))
        largest, was_seen = 0, False
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            largest = max(largest, memory_of(worker))
            is_seen = any("python" in name_of(pid) for pid in descendants(engine.process.pid))
            if was_seen and not is_seen:
                break
            was_seen = was_seen or is_seen
        assert was_seen and largest < 120 << 20, "it grows with what nobody reads"
        seen = dropped = 0
        while (got := engine.receive())["event"] == "output":
            seen += len(data_of(got))
            dropped += got["dropped"]
        assert dropped > 0 and seen + dropped == 600 * 65536
        assert got["reply"]["status"] == "success" and got["reply"]["truncated"]
        engine.execute({"language": "shell", "code": "echo still here"})
        assert engine.receive()["reply"]["output"] == "still here\n"
    assert engine.code == 0


def test_a_client_that_only_writes_is_not_listened_to(tmp_path):
    """Beyond 64 MiB of answers that nobody reads it stops reading questions; then it goes on where it was."""
    with Engine(tmp_path) as engine:
        engine.receive()
        engine.socket.settimeout(4)
        questions = b"".join(frame(b'{"n":%d,"op":"load"}' % n) for n in range(1, 1500001))
        with pytest.raises(TimeoutError):
            engine.send_bytes(questions)
        worker = min(descendants(engine.process.pid))
        assert memory_of(worker) < 300 << 20
        assert [engine.receive()["n"] for _ in range(1000)] == list(range(1, 1001))
    assert engine.code == 0


def test_large_requests_wait_for_room(tmp_path):
    """Open requests are bounded in bytes, not only in number."""
    with Engine(tmp_path, "--max-running", "1") as engine:
        engine.receive()
        first = engine.execute({"language": "shell", "code": "sleep 600", "timeout": 600})
        for n in range(2, 8):
            engine.send_bytes(frame(b'{"n":%d,"op":"execute","request":{"language":"shell","code":":"}%s}' % (n, b" " * (90 << 20))))
        answers = engine.replies(1)
        assert set(answers) == {7} and answers[7]["code"] == "EAGAIN"
        engine.n = 7
        engine.ask(op="cancel", of=first)
        assert engine.replies(2)[first]["reply"]["status"] == "cancelled"


@pytest.mark.parametrize("options, message", [
    (("--max-running", "0"), "from 1 to 256"), (("--max-running", "257"), "from 1 to 256"),
    (("--max-queued", "x"), "from 1 to 65536"), (("--memory", "much"), "a size such as 4GB"),
    (("--cpus", "0"), "from 0.01 to 1024")])
def test_bad_options_are_told_over_the_socket_too(tmp_path, options, message):
    with Engine(tmp_path, *options) as engine:
        told = engine.receive()
        assert told["event"] == "error" and message in told["message"]
        assert engine.receive() is None
    assert engine.code == 125 and message in engine.errors


def test_needs_a_socket(nacre):
    done = nacre("engine", stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and "Descriptor 3 must be a stream socket" in done.stderr


def test_as_an_ordinary_user(tmp_path_factory, programs, user_with_boxes):
    home = tmp_path_factory.mktemp("home")
    os.chown(home, NOBODY, NOBODY)
    with Engine(home, program=programs / "nacre", prefix=AS_NOBODY) as engine:
        assert engine.receive()["event"] == "ready"
        engine.execute({"language": "shell", "code": "id -u; echo ok"})
        assert engine.receive()["reply"]["output"] == "1000\nok\n"
    assert engine.code == 0


def test_two_engines_at_once(tmp_path):
    with Engine(tmp_path) as one, Engine(tmp_path) as two:
        assert one.receive()["event"] == two.receive()["event"] == "ready"
        for i in range(10):
            one.execute({"language": "shell", "code": f"echo one {i}"})
            two.execute({"language": "shell", "code": f"echo two {i}"})
        assert sorted(frame["reply"]["output"] for frame in one.replies(10).values()) == [f"one {i}\n" for i in range(10)]
        assert sorted(frame["reply"]["output"] for frame in two.replies(10).values()) == [f"two {i}\n" for i in range(10)]


def test_compiled_programs_are_kept_unless_told_not_to(tmp_path):
    request = {"language": "c", "code": "int main(void) { return 0; }"}
    state = {"NACRE_STATE": str(tmp_path / "state")}
    tmp_path.chmod(0o755)
    cached = {}
    for options in ((), ("--no-cache",)):
        with Engine(tmp_path, *options, env=state) as engine:
            engine.receive()
            replies = []
            for _ in range(2):
                engine.execute(request)
                replies.append(engine.receive()["reply"])
            assert [reply["status"] for reply in replies] == ["success", "success"], replies
            cached[options] = [reply["cached_program"] for reply in replies]
    assert cached == {(): [False, True], ("--no-cache",): [False, False]}


def test_what_waits_finds_what_was_compiled_meanwhile(tmp_path):
    request = {"language": "c", "code": "int main(void) { return 0; }"}
    tmp_path.chmod(0o755)
    with Engine(tmp_path, "--max-running", "1", env={"NACRE_STATE": str(tmp_path / "state")}) as engine:
        engine.receive()
        for _ in range(4):
            engine.execute(request)
        replies = [frame["reply"] for _, frame in sorted(engine.replies(4).items())]
    assert [reply["cached_program"] for reply in replies] == [False, True, True, True]


def test_executions_are_recorded(tmp_path):
    tmp_path.chmod(0o755)
    state = {"NACRE_STATE": str(tmp_path / "state")}
    with Engine(tmp_path, env=state) as engine:
        engine.receive()
        engine.execute({"language": "shell", "code": "echo remembered"})
        wanted = engine.receive()["reply"]["id"]
    done = subprocess.run([NACRE, "history"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **state})
    assert done.returncode == 0 and wanted in done.stdout, done


def test_packages_of_a_request(tmp_path):
    """What the image has needs no environment, and what nobody has is refused with a reason."""
    replies = []
    with Engine(tmp_path) as engine:
        engine.receive()
        for code, package in (("import pytest; print('here')", "pytest"), ("print(1)", "no-such-pearl")):
            engine.execute({"language": "python", "code": code, "packages": [package]})
            replies.append(engine.receive()["reply"])
    assert (replies[0]["status"], replies[0]["output"]) == ("success", "here\n"), replies[0]
    assert replies[1]["status"] == "blocked" and "packages.python.wheels" in replies[1]["error"], replies[1]
