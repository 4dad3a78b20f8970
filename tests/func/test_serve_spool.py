"""nacre serve: large bodies go to a file, and what their files hold stays there until a box wants it."""

import base64
import hashlib
import json
import os
import subprocess

import pytest

from serving import Daemon

MIB = 1 << 20
SUM = "import hashlib, sys\nfor name in sys.argv[1:]: print(hashlib.sha256(open(name, 'rb').read()).hexdigest())"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("spool")) as one:
        yield one


def execute(daemon, **fields):
    return daemon.ask("POST", "/v1/execute", {"language": "python", "code": SUM, **fields})


TEXTS = {
    "plain": "abc\n" * 600_000,
    "escapes": 'q"\\\b\f\n\r\t/' * 300_000,
    "unicode": "ä€𝄞\u0001\u2028" * 250_000,
    "odd": "x" * 16381 + "𝄞" * 400_000 + "é",
}


@pytest.mark.parametrize("ascii", [True, False], ids=["escaped", "utf8"])
def test_what_is_read_is_what_was_sent(daemon, ascii):
    """Texts with escapes across every boundary, and bytes of every length modulo three, beside small files."""
    data = [os.urandom(MIB + i) for i in range(3)]
    files = {**TEXTS, **{f"b{i}": {"base64": base64.b64encode(one).decode()} for i, one in enumerate(data)},
             "small": "tiny", "small64": {"base64": base64.b64encode(b"tiny").decode()}, "run": {"text": "#!/bin/sh\necho ok\n" + "#" * 9000, "executable": True}}
    names = [*TEXTS, "b0", "b1", "b2", "small", "small64"]
    body = {"language": "python", "code": SUM, "args": names, "files": files, "timeout": 60}
    reply = daemon.ask("POST", "/v1/execute", json.dumps(body, ensure_ascii=ascii).encode()).json()
    assert reply["status"] == "success", reply
    wanted = [TEXTS[name].encode() for name in TEXTS] + data + [b"tiny", b"tiny"]
    assert reply["output"].split() == [hashlib.sha256(one).hexdigest() for one in wanted]


def test_programs_in_it_run(daemon):
    files = {"pad": "x" * 2 * MIB, "run": {"text": "#!/bin/sh\necho ok\n" + "#" * 9000, "executable": True}}
    reply = daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "./run; wc -c <pad", "files": files}).json()
    assert reply["output"].split() == ["ok", str(2 * MIB)], reply


def test_large_but_little_in_files(daemon):
    """All that is large are blanks: the program brings its files along."""
    body = json.dumps({"language": "python", "code": SUM, "args": ["a"], "files": {"a": "y" * 9000}}).encode()
    reply = daemon.ask("POST", "/v1/execute", body + b" " * 2 * MIB).json()
    assert reply["output"].split() == [hashlib.sha256(b"y" * 9000).hexdigest()], reply


def test_compiled(daemon):
    header = "#define ANSWER 42\n/*" + "*" * 2 * MIB + "*/\n"
    code = '#include <stdio.h>\n#include "answer.h"\nint main(void) { printf("%d", ANSWER); }'
    reply = daemon.ask("POST", "/v1/execute", {"language": "c", "code": code, "files": {"answer.h": header}, "timeout": 60}).json()
    assert reply["output"] == "42", reply


PAD = '"pad": {"text": "' + "p" * 2 * MIB + '"}'


@pytest.mark.parametrize("files, pointer, message", [
    ('"a": {"base64": "' + "A" * 8001 + '"}', "/files/a/base64", "found base64 of 8001 characters"),
    ('"a": {"base64": "' + "A" * 40000 + "*" + "A" * 7999 + '"}', "/files/a/base64", "wrong at character 40001"),
    ('"a": {"base64": "' + "A" * 7998 + '==AA=="}', "/files/a/base64", "wrong at character 7999"),
    ('"a": "' + "A" * 20000 + '\\x"', "/files/a", "no JSON"),
    ('"a": "' + "A" * 20000 + '\\ud800"', "/files/a", "no JSON"),
    ('"a": "' + "A" * 20000 + '\\u0000"', "/files/a", "no JSON"),
    ('"a": "' + "A" * 20000 + '\t"', "/files/a", "no JSON"),
    ('"../a": "' + "A" * 20000 + '"', "/files/..~1a", "found the name"),
    ('"a": 3', "/files/a", "found 3"),
], ids=["uneven", "digit", "padding", "escape", "surrogate", "nul", "control", "path", "number"])
def test_faults(daemon, files, pointer, message):
    answer = daemon.ask("POST", "/v1/execute", ('{"language": "python", "code": "1", "files": {' + PAD + ", " + files + "}}").encode())
    assert answer.status == 400, answer.json()
    faults = answer.json()["faults"]
    assert any(one["pointer"] == pointer and message in one["message"] for one in faults), faults


@pytest.mark.parametrize("body, message", [
    (b"[" * 4 * MIB, "values"),
    (b" " * 4 * MIB, "Invalid JSON"),
    (b'{"code": "' + b"x" * 40 * MIB + b'"}', "beside the contents of files"),
    (b'{"files": {"a": "' + b"x" * 4 * MIB, "Invalid JSON"),
    (b'{"files": {"a": "' + b"x" * 4 * MIB + b'"}, "files": {}}', "(without the contents of files)"),
    (b'{"files": {"a": "' + b"\xff" * 4 * MIB + b'"}, "code": "1"}', "no JSON"),
], ids=["brackets", "blanks", "code", "open", "twice", "bytes"])
def test_what_is_no_request(daemon, body, message):
    answer = daemon.ask("POST", "/v1/execute", body)
    assert answer.status == 400 and message in json.dumps(answer.json()), answer.json()


def test_too_much_in_files(daemon):
    answer = daemon.ask("POST", "/v1/execute", {"language": "python", "code": "1", "files": {"a": "x" * (64 * MIB + 1)}})
    assert answer.status == 400 and "bytes of files" in json.dumps(answer.json()), answer.json()


def test_nobody_can_name_a_part(daemon):
    """A text that looks like what stands for a part is that text."""
    mark = "ct_" + "0" * 32 + ":0"
    files = {"pad": "x" * 2 * MIB, "a": mark}
    reply = execute(daemon, args=["a"], files=files).json()
    assert reply["output"].split() == [hashlib.sha256(mark.encode()).hexdigest()]


def test_kept_replies_go_by_the_contents(daemon):
    def ask(last):
        return execute(daemon, args=["a"], files={"a": "x" * 2 * MIB + last}, cache=True).json()

    first, again, other = ask("1"), ask("1"), ask("2")
    assert not first["cached"] and again["cached"] and not other["cached"], [one.get("cached") for one in (first, again, other)]
    assert again["output"] == first["output"] != other["output"]


def test_chunked(daemon):
    """Of unknown length."""
    body = json.dumps({"language": "python", "code": SUM, "args": ["a"], "files": {"a": "z" * 3 * MIB}}).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 50_000]), body[i:i + 50_000]) for i in range(0, len(body), 50_000)) + b"0\r\n\r\n"
    head = (f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").encode()
    answer = daemon.raw(head + chunks)
    assert b" 200 " in answer.split(b"\r\n")[0] and hashlib.sha256(b"z" * 3 * MIB).hexdigest().encode() in answer, answer[:300]


@pytest.fixture
def small_disk(tmp_path):
    """A state directory with a disk of its own."""
    state = tmp_path / "state"
    state.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=755", "none", state], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount: {done.stderr}")
    yield state
    subprocess.run(["umount", "-l", state])


def test_a_full_disk(tmp_path, small_disk):
    """Bodies do not take the last of the journal's disk; it is said, costs nobody else anything, and goes on when there is room again."""
    with Daemon(tmp_path) as one:
        answer = execute(one, files={"a": "x" * 60 * MIB})
        assert answer.status == 507 and answer.json()["code"] == "spool_full", answer.json()
        disk = os.statvfs(small_disk)
        assert disk.f_bavail * disk.f_frsize > 30 * MIB, "the file has gone"
        assert execute(one, args=["a"], files={"a": "x"}).json()["status"] == "success"
        reply = execute(one, args=["a"], files={"a": "x" * 2 * MIB}).json()
        assert reply["output"].split() == [hashlib.sha256(b"x" * 2 * MIB).hexdigest()], reply
