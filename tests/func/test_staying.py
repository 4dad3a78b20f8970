"""Boxes that outlive their commands: one after the other in the same workspace, each with a bill of its own, and
nothing of one left running for the next; files go in and out through nacre-files, inside."""

import ast
import os
import pathlib
import struct
import subprocess
import uuid

import pytest

from conftest import BUILD, ROOT
from wire import (CANCEL, DOOR, ENDED, EXIT, FAILED, FILES, KEEP, NEXT, OUTPUT, STAY, STARTED, TTY, WALL, greeting, message, order, order_body,
                  pack_head)

PYTHON = os.path.realpath("/usr/bin/python3")
WIRE = (ROOT / "tests/func/wire.py").read_text()

# what a worker does here: sh() runs a shell script in box 1, first() makes the box; results are (kind, end, output)
SCRIPT = WIRE + r"""
import threading, time
worker = Worker(patience=30)
HOST = worker.hello()
tier, where = TIER, b"/workspace"
if tier != CONTAINER: where = worker.scratch(HOST).encode() + b"/1/workspace"
def command(kind, argv, flags=STAY, identity=1, feed=None, **fields):
    stdin = None
    if feed is not None:
        stdin, ours = os.pipe()
        def write():
            try: os.write(ours, feed) if len(feed) < 4096 else [os.write(ours, feed[i:i+4096]) for i in range(0, len(feed), 4096)]
            except BrokenPipeError: pass
            os.close(ours)
        threading.Thread(target=write).start()
    kind, body, data = worker.finish(identity, kind=kind, argv=argv, flags=flags, tier=tier, directory=where, stdin=stdin,
                                     **{"env": (b"PATH=/usr/bin:/bin",), "pids": 50, **fields})
    return kind, read_end(body) if kind == ENDED else body[13:].decode(errors="replace"), data
def first(script, **fields): return command(RUN, (b"sh", b"-c", script), **fields)
def sh(script, **fields): return command(NEXT, (b"sh", b"-c", script), **fields)
def put(data, **fields): return command(NEXT, (b"nacre-files", b"put"), flags=STAY | FILES, feed=data, **fields)
def get(*words, **fields): return command(NEXT, (b"nacre-files", b"get", *words), flags=STAY | FILES, **fields)
def result():
"""

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(params=["container", "process"])
def tier(request, way):
    return "remote" if way == "holder" else request.param


@pytest.fixture(params=["root", "user"])
def play(request, programs, tier, relay_line):
    """Runs the body of result() as a worker and gives what it returned."""
    if os.geteuid() != 0 and request.param == "root":
        pytest.skip("needs root")

    def run(body, which=tier):
        script = SCRIPT.replace("worker = Worker", relay_line + "worker = Worker", 1).replace("TIER", which.upper(), 1) + "\n".join("    " + line for line in body.strip().split("\n"))
        script += "\nprint(repr(result()))"
        python = os.open(PYTHON, os.O_RDONLY)
        prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if request.param == "user" and os.geteuid() == 0 else []
        done = subprocess.run([*prefix, str(programs / "nacre-spawner"), "0", "0", "0", "python3", "-"], input=script,
                              preexec_fn=lambda: os.dup2(python, 4), pass_fds=(4,), capture_output=True, text=True, timeout=60)
        os.close(python)
        assert done.returncode == 0, done.stderr
        return ast.literal_eval(done.stdout)

    return run


def test_commands_share_a_workspace_and_have_bills_of_their_own(play):
    results = play("""
return [first(b"echo one >a; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"), sh(b"cat a; echo two >>a"), sh(b"cat a; exit 3", flags=0)]
""")
    assert [kind for kind, _, _ in results] == [ENDED] * 3
    assert [data for _, _, data in results] == [b"", b"one\n", b"one\ntwo\n"]
    ends = [end for _, end, _ in results]
    assert [end["stays"] for end in ends] == [1, 1, 0]
    assert [end["code"] for end in ends] == [0, 0, 3]
    cpu = [end["cpu_user_us"] + end["cpu_system_us"] for end in ends]
    assert cpu[1] < cpu[0] / 2, cpu


def test_nothing_of_a_command_runs_beside_the_next(play):
    """setsid, double fork, stopped, signals ignored: all gone before the next command begins."""
    results = play("""
script = b'''
for i in 1 2 3; do (setsid sh -c 'trap "" TERM HUP INT; while :; do echo x >>grows; sleep 0.01; done' >/dev/null 2>&1 &); done
sleep 100 & kill -STOP $!
sleep 0.2
echo up'''
first_one = first(script)
return [first_one, sh(b"a=$(cat grows | wc -c); sleep 0.3; b=$(cat grows | wc -c); echo $a $b"), sh(b"ls /proc | grep -c '^[0-9]'; echo $$", flags=0)]
""")
    (_, _, up), (_, _, sizes), _ = results
    assert up == b"up\n"
    before, after = map(int, sizes.split())
    assert before == after > 0


def test_a_fork_bomb_does_not_keep_the_next_command_out(play, terms):
    terms("pids")
    results = play("""
bomb = b"f() { f | f & }; f; sleep 0.3; echo bang"
return [first(bomb, pids=30), sh(b"echo here", pids=30), sh(b"sleep 0.2; echo still", flags=0, pids=30)]
""")
    assert results[1][0] == ENDED and results[1][2] == b"here\n", results
    assert results[2][2] == b"still\n", results


def test_a_box_stays_after_a_timeout(play):
    results = play("""
return [first(b"echo kept >file; (setsid sleep 50 &); sleep 60", wall=300), sh(b"cat file", flags=0)]
""")
    (_, end, _), (_, _, data) = results
    assert end["cause"] == WALL and end["stays"] == 1
    assert data == b"kept\n"


def test_every_holder_holds_open_files_and_ends_what_prints_too_much(play):
    files, end, data, last = play("""
files = first(b"ulimit -n", files=77)[2]
output = worker.run(1, kind=NEXT, argv=(b"sh", b"-c", b"sleep 100"), flags=STAY, tier=tier, directory=where, env=(b"PATH=/usr/bin:/bin",), pids=50, wall=60000)
worker.receive()
worker.send(kill(1, OUTPUT))
end = read_end(worker.receive()[1])
data = sh(b"echo next")[2]
worker.run(1, kind=NEXT, argv=(b"sh", b"-c", b"sleep 100"), flags=STAY, tier=tier, directory=where, env=(b"PATH=/usr/bin:/bin",), pids=50, wall=60000)
worker.receive()
worker.send(kill(1))
return files, end, data, read_end(worker.receive()[1])
""")
    assert files == b"77\n" and (end["cause"], end["signal"], end["stays"], data) == (OUTPUT, 9, 1, b"next\n")
    assert (last["cause"], last["signal"], last["stays"]) == (CANCEL, 9, 0)


def test_the_worker_ends_a_box_that_stays(play):
    kind, end = play("""
first(b"true")
worker.send(kill(1))
kind, body, _ = worker.receive()
return kind, read_end(body)
""")
    assert kind == ENDED and end["stays"] == 0


def test_a_box_that_stays_goes_with_its_worker(play):
    """And nothing of it is left: the fixture's spawner ends with 0 only when all boxes are buried."""
    nap = 1000000 + int(uuid.uuid4().int % 1000000)
    play(f"""
worker.run(1, argv=(b"sh", b"-c", b"sleep {nap}"), flags=STAY, tier=tier, directory=where, wall=100000)
return worker.receive()[0]
""")
    assert all(str(nap).encode() not in read_cmdline(path) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"))


def read_cmdline(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_program_that_is_not_there_ends_the_box(play):
    failed, after = play("""
first(b"true")
return command(NEXT, (b"no-such-program",)), command(NEXT, (b"true",))
""")
    assert failed[0] == FAILED and "start the program" in failed[1]
    assert after[0] == FAILED and "no such box" in after[1]


def unpacked(stream):
    """Files with their bytes, those left behind with their errno, and the last head."""
    files, left = {}, {}
    while True:
        kind, _, length, error, size = head = struct.unpack_from("<BBHIQ", stream)
        path, stream = stream[16:16 + length], stream[16 + length:]
        if kind == 0:
            assert not stream
            return files, left, head
        if kind == 1:
            files[path], stream = stream[:size], stream[size:]
        else:
            left[path] = error


def test_files_go_in_and_come_out(play):
    data = (pack_head(1, b"a.txt", 5) + b"hello" + pack_head(1, b"deep/er/tool.sh", 16, executable=1) + b"#!/bin/sh\necho 7"
            + pack_head(1, b"bin", 4) + b"\0\xff\n\0" + pack_head(0))
    first, put, ran, got = play(f"""
a = first(b"true")
b = put({data!r})
c = sh(b"cat a.txt; ./deep/er/tool.sh; ls -l deep/er | grep -c rwx; echo new >deep/out.txt; ln -s /etc/passwd link.txt; mkfifo pipe.txt; mkdir dir.txt")
return a, b, c, get(b"1000000", b"100", b"*.txt", b"bin")
""")
    assert put[1]["code"] == 0, put
    assert ran[2] == b"hello7\n1\n"
    files, left, end = unpacked(got[2])
    assert files == {b"a.txt": b"hello", b"bin": b"\0\xff\n\0", b"deep/out.txt": b"new\n"}
    assert set(left) == {b"link.txt", b"pipe.txt"} and all(left.values()), left  # named, with the reason
    assert end[0] == 0


@pytest.mark.parametrize("pattern, expected", [
    ("*.py", [b"a.py", b"d/b.py", b"d/e/c.py"]), ("d/*.py", [b"d/b.py"]), ("d/**.py", [b"d/b.py", b"d/e/c.py"]), ("[ab].py", [b"a.py", b"d/b.py"]),
    ("*.js", []), ("./a.py", []), ("../*", []), ("/etc/passwd", []), ("d", [])])
def test_patterns(play, pattern, expected):
    kind, end, data = play(f"""
first(b"mkdir -p d/e; touch a.py d/b.py d/e/c.py")
return get(b"100", b"100", {pattern.encode()!r})
""")
    assert kind == ENDED and end["code"] == 0, (kind, end, data)
    assert data == b"".join(pack_head(1, path) for path in expected) + pack_head(0, size=len(expected))


def test_capture_has_caps(play):
    data = play("""
first(b"echo small >a; head -c 5000 /dev/zero >b; echo c >c; touch d")
return get(b"100", b"3", b"*")[2]
""")
    assert data == (pack_head(1, b"a", 6) + b"small\n" + pack_head(2, b"b", 5000, error=27) + pack_head(1, b"c", 2) + b"c\n"
                    + pack_head(0, size=3, error=24))


HOSTILE_PATHS = [b"../x", b"/tmp/x", b"a/../../x", b"a//b", b"./x", b".", b"..", b"x/", b"n" * 256]


@pytest.mark.parametrize("path", HOSTILE_PATHS, ids=lambda path: path[:12].decode())
def test_paths_stay_below_the_workspace(play, path):
    end = play(f"""
first(b"true")
return put({pack_head(1, path, 1) + b"x" + pack_head(0)!r})
""")
    assert end[1]["code"] == 1 and (b"Invalid argument" in end[2] or b"too long" in end[2])


def test_a_planted_link_is_not_followed(play):
    result = play(f"""
first(b"mkdir real; ln -s real dir; ln -s /workspace/real/target file; ln -s ../../../../tmp out")
a = put({pack_head(1, b"dir/x", 1) + b"x" + pack_head(0)!r})
b = put({pack_head(1, b"file", 1) + b"y" + pack_head(0)!r})
c = put({pack_head(1, b"out/x", 1) + b"x" + pack_head(0)!r})
return a, b, c, sh(b"ls real; cat file; ls -l file | cut -c1")
""")
    assert [end["code"] for _, end, _ in result[:3]] == [1, 0, 1]
    assert result[3][2] == b"y-\n"


@pytest.mark.parametrize("stream", [b"", b"x", b"\x07" + b"\0" * 15, pack_head(1, b"a", 10) + b"short", pack_head(2, b"a"),
                                    pack_head(1, b"a", 1 << 62), b"\0\0\1\0" + b"\0" * 12, b"\1\0\0\0" + b"\0" * 12],
                         ids=["empty", "byte", "kind", "short", "skipped", "huge", "end_with_path", "file_without"])
def test_broken_streams_are_refused(play, stream):
    end = play(f"""
first(b"true")
return put({stream!r})
""")
    assert end[1]["code"] == 1 and end[2]


def test_a_full_disk_says_so(play, tier, terms):
    terms("disk")
    if tier == "process":
        pytest.skip("a process box has no disk of its own")
    end = play(f"""
first(b"true")
return put({pack_head(1, b"big", 3 << 20)!r} + b"x" * (3 << 20), disk=1 << 20)
""")
    assert end[1]["code"] == 1 and b"No space left" in end[2]


def test_files_see_the_box_and_nothing_more(play, tier):
    """nacre-files is held by what holds any other command."""
    got = play("""
first(b"ln -s /proc/1/environ proc; ln -s /etc/shadow shadow; ln -s /dev/zero zero.txt")
return get(b"1000000", b"100", b"*", b"**")[2]
""")
    files, left, _ = unpacked(got)
    assert files == {} and set(left) == {b"proc", b"shadow", b"zero.txt"} and all(left.values()), (files, left)


GREETING = ("", greeting())
LIMITS = dict(memory=64 << 20, pids=16, wall=10000)
NEXTS = {
    "terminal_where_there_is_none": (TTY, ""), "keep": (KEEP, "nnnnnn"), "door": (DOOR, "nnn"), "image": (2, "nnnd"), "files_with_a_terminal": (TTY | FILES, ""),
}


@pytest.mark.parametrize("name", [*NEXTS, "bind", "other_tier"])
def test_a_next_order_cannot_change_what_the_box_is(name):
    from test_spawner import WORKER, start_spawner

    flags, fds = NEXTS.get(name, (0, "nnn"))
    fields = {"bind": dict(binds=[(0, 1, b"/mnt")]), "other_tier": dict(tier=1)}.get(name, {})
    packets = [GREETING, ("nnn", order(flags=STAY, **LIMITS)), ("", b""), (fds, message(NEXT, order_body(flags=flags, **fields, **LIMITS)))]
    script = WORKER.replace("    socket.send_fds", "    if data: socket.send_fds")
    words = [f"{packet[0]}:1:{packet[1].hex()}" for packet in packets]
    process = start_spawner("-c", script, *words, binds=["/usr"])
    output, error = process.communicate(timeout=30)
    assert process.returncode == 125 and "breaks the rules" in error


def test_next_for_a_box_that_runs_or_is_not_there():
    from test_spawner import WORKER, start_spawner

    packets = [GREETING, ("nnn", message(NEXT, order_body(7, **LIMITS))), ("nnn", order(argv=(b"sleep", b"5"), flags=STAY, **LIMITS)),
               ("nnn", message(NEXT, order_body(**LIMITS)))]
    process = start_spawner("-c", WORKER, *[f"{fds}:1:{data.hex()}" for fds, data in packets])
    output, error = process.communicate(timeout=30)
    assert output.split()[1:] == [str(FAILED), str(STARTED), str(FAILED)], error
