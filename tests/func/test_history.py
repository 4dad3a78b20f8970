"""nacre history and nacre audit log: what was recorded can be found again, whatever happened to the index."""

import base64
import json
import os
import re
import subprocess

import pytest

from conftest import NACRE
from recordwire import PERFORMANCE, SECURITY, Recorder, lines, make_history, note, segments

CODE = b"print('caf\xc3\xa9')\n"


@pytest.fixture
def history(tmp_path):
    return make_history(tmp_path / "state")


@pytest.fixture
def ask(nacre, history):
    def run(*args, code=0):
        done = nacre(*args, env={"NACRE_STATE": str(history.parent)}, errors="replace")
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def ids(ask):
    return lambda *args: [row["id"] for row in json.loads(ask("history", "--json", *args))["executions"]]


@pytest.fixture
def filled(history):
    with Recorder(history) as recorder:
        code = recorder.keep(CODE)[1]
        output = recorder.keep(b"caf\xc3\xa9 \x1b[31m\xff\xc2\x9b\n" * 3)[1]
        recorder.open("ex_1", language="python", tier="container", code_sha256=code, tenant="t1")
        recorder.finish("ex_1", status="success", exit_code=0, wall_seconds=0.25, cpu_seconds=0.1, memory_peak_bytes=1 << 20, disk_bytes=0,
                        stdout_sha256=output, stderr_sha256="0" * 64, risk="low", labels={"a": "b"}, extra=[1, 2])
        recorder.open("ex_2", language="shell")
        recorder.finish("ex_2", status="timeout", signal=9)
        recorder.open("ex_3", language="python")
        recorder.finish("ex_3", status="error", exit_code=1)
        recorder.note(SECURITY, "denied", {"call": "mount"})
        recorder.note(PERFORMANCE, "pool", {"ready": 3})
        recorder.open("ex_4", language="c")
        recorder.keep(b"")
        yield recorder


def test_list_and_filters(filled, ids, ask):
    assert ids() == ["ex_4", "ex_3", "ex_2", "ex_1"]
    assert ids("--status", "timeout") == ["ex_2"]
    assert ids("--status", "running") == ["ex_4"]
    assert ids("--lang", "python") == ["ex_3", "ex_1"]
    assert ids("--lang", "python", "--status", "error") == ["ex_3"]
    assert ids("--limit", "2") == ["ex_4", "ex_3"]
    assert ids("--since", "1h") == ids()
    assert ids("--since", "2020-01-01") == ids()
    assert ids("--since", "2120-01-01T00:00:00Z") == []
    third = next(row for row in json.loads(ask("history", "--json"))["executions"] if row["id"] == "ex_3")
    assert ids("--since", third["time"]) == ["ex_4", "ex_3"]
    table = ask("history").splitlines()
    assert len(table) == 4 and re.search(r"ex_1 +success +python +container +0\.250$", table[3])


def test_show_has_everything(filled, ask, history):
    row = json.loads(ask("history", "show", "ex_1", "--json"))["executions"][0]
    assert row["code"] == CODE.decode() and row["stdout"].startswith("café ") and row["stderr"] is None
    assert base64.b64decode(row["stdout_base64"]) == b"caf\xc3\xa9 \x1b[31m\xff\xc2\x9b\n" * 3
    assert "code_base64" not in row and "stderr_base64" not in row
    assert row["kept"] == {"code": "kept", "stdout": "kept", "stderr": "gone"}
    assert row["extra"] == [1, 2] and row["labels"] == {"a": "b"} and row["tenant"] == "t1" and row["wall_seconds"] == 0.25
    line = lines(history)[1]
    assert row["seq"] == line["seq"] == 2 and row["time"] == line["time"] and row["opened"] == lines(history)[0]["time"]
    said = ask("history", "show", "ex_1")
    assert "print('café')" in said and "--- stderr: gone" in said and re.search(r"^wall_seconds +0\.25$", said, re.M)
    blob = history / "blobs" / row["code_sha256"][:2] / row["code_sha256"][2:]
    blob.write_bytes(b"import os")
    assert json.loads(ask("history", "show", "ex_1", "--json"))["executions"][0]["kept"]["code"] == "damaged"
    assert "There is no execution 'nope'" in ask("history", "show", "nope", code=125)


def test_escape_sequences_are_not_for_the_terminal(filled, history):
    import pty
    main, other = pty.openpty()
    subprocess.run([NACRE, "history", "show", "ex_1"], stdout=other, check=True, env={"NACRE_STATE": str(history.parent)})
    os.close(other)
    said = b""
    try:
        while part := os.read(main, 4096):
            said += part
    except OSError:
        pass
    assert b"\x1b" not in said and b"\\x1b[31m\\xff\\xc2\\x9b" in said and "café".encode() in said


def test_the_index_follows_the_journal(filled, ids, history):
    assert ids("--status", "running") == ["ex_4"]
    assert filled.finish("ex_4", status="success")[0] == 0
    assert ids("--status", "running") == []
    assert ids()[0] == "ex_4"
    filled.open("ex_5")
    filled.end()
    assert ids("--status", "lost") == ["ex_5"]


@pytest.mark.parametrize("damage", ["missing", "noise", "noise without log", "pages", "half", "another journal", "other tables", "log"])
def test_a_damaged_index_is_rebuilt(filled, ids, history, damage, tmp_path):
    index = history.parent / "index.db"
    before = ids()
    assert index.stat().st_mode & 0o777 == 0o600
    if damage == "missing":
        index.unlink()
        (history.parent / "index.db-wal").unlink(missing_ok=True)
    elif damage == "noise":
        index.write_bytes(os.urandom(8192))
    elif damage == "noise without log":
        index.write_bytes(os.urandom(8192))
        (history.parent / "index.db-wal").unlink()  # from which it would be made whole again
    elif damage == "pages":
        import sqlite3
        with sqlite3.connect(index) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        data = index.read_bytes()  # what tables there are can be read, what is in them cannot
        index.write_bytes(data[:4096] + os.urandom(len(data) - 4096))
    elif damage == "half":
        index.write_bytes(index.read_bytes()[:5000])
    elif damage == "log":
        (history.parent / "index.db-wal").write_bytes(os.urandom(9000))
    elif damage == "other tables":
        index.unlink()
        (history.parent / "index.db-wal").unlink(missing_ok=True)
        import sqlite3
        with sqlite3.connect(index) as db:
            db.execute("CREATE TABLE execution (x)")
            db.execute("PRAGMA user_version = 1")
    else:
        other = make_history(tmp_path / "other")
        with Recorder(other) as recorder:
            recorder.run("ex_other", status="success")
        subprocess.run([NACRE, "history"], check=True, env={"NACRE_STATE": str(other.parent)}, capture_output=True)
        for name in ("index.db", "index.db-wal"):
            (history.parent / name).unlink(missing_ok=True)
            if (other.parent / name).exists():
                (history.parent / name).write_bytes((other.parent / name).read_bytes())
    assert ids() == before
    assert ids() == before  # and from what was made of it
    if damage == "noise without log":
        assert index.read_bytes().startswith(b"SQLite format 3")


def test_an_index_that_somebody_uses_is_done_without(filled, ids, history):
    before = ids()
    import sqlite3
    db = sqlite3.connect(history.parent / "index.db", isolation_level=None)
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN IMMEDIATE")
    assert ids() == before
    db.close()


def test_a_state_directory_that_cannot_be_written(as_root, tmp_path, nacre):
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "none", place], check=True)
    try:
        with Recorder(make_history(place / "state")) as recorder:
            recorder.run("ex_1", status="success")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        for _ in range(2):
            done = nacre("history", "--json", env={"NACRE_STATE": str(place / "state")})
            assert done.returncode == 0, done.stderr
            assert [row["id"] for row in json.loads(done.stdout)["executions"]] == ["ex_1"]
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_changed_journal_is_indexed_anew(filled, ids, history):
    assert len(ids()) == 4
    filled.end()
    path = segments(history)[0]
    path.write_bytes(b"".join(line for line in path.read_bytes().splitlines(keepends=True) if b"ex_2" not in line))
    assert "ex_2" not in ids()


def test_the_same_id_in_two_runs_is_two_executions(history, ids, ask):
    for status in ("success", "error"):
        with Recorder(history) as recorder:
            recorder.run("ex_1", status=status)
    assert ids() == ["ex_1", "ex_1"]
    assert [row["status"] for row in json.loads(ask("history", "show", "ex_1", "--json"))["executions"]] == ["success", "error"]


def test_the_four_kinds_of_the_log(filled, ask):
    assert [json.loads(line)["event"] for line in ask("audit", "log", "--json", "--kind", "security").splitlines()] == ["denied"]
    assert [json.loads(line)["event"] for line in ask("audit", "log", "--json", "--kind", "performance").splitlines()] == ["pool"]
    assert len(ask("audit", "log", "--kind", "execution").splitlines()) == 7
    assert ask("audit", "log", "--kind", "audit") == ""
    assert ask("audit", "log", "--since", "2120-01-01") == ""
    assert '{"call":"mount"}' in ask("audit", "log", "--since", "1h")


@pytest.mark.parametrize("args, words", [
    (("history", "--since", "yesterday"), "neither a time"), (("history", "--limit", "0"), "--limit"), (("history", "shew"), "nacre history show ID"),
    (("history", "show"), "nacre history show ID"), (("audit", "log", "--kind", "x"), "not one of execution"), (("audit", "verify", "--head", "x"), "not as nacre audit head")])
def test_wrong_calls(filled, ask, args, words):
    assert words in ask(*args, code=125)


def test_nothing_recorded_yet(nacre, tmp_path):
    for args in (("history",), ("audit", "verify"), ("audit", "head"), ("audit", "log")):
        done = nacre(*args, env={"NACRE_STATE": str(tmp_path / "none")})
        assert done.returncode == 125 and "Nothing has been recorded yet" in done.stderr


def test_a_history_of_somebody_else_is_not_read(as_root, history, nacre):
    os.chown(history, 4242, 4242)
    done = nacre("history", env={"NACRE_STATE": str(history.parent)})
    assert done.returncode == 125 and "must belong to user" in done.stderr


@pytest.mark.parametrize("spoil, words", [
    (lambda state: None, "Nothing has been recorded yet"),
    (lambda state: (state / "history").write_text(""), "Open the history: Not a directory"),
    (lambda state: (state / "verify.key").write_text(""), "Nothing has been recorded yet")], ids=["empty", "file", "key alone"])
def test_a_state_without_a_history(nacre, tmp_path, spoil, words):
    """Is not read, and a run that cannot be recorded says so; somebody who removed the history is not helped to hide it."""
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    spoil(state)
    done = nacre("history", env={"NACRE_STATE": str(state)})
    assert done.returncode == 125 and words in done.stderr
    ran = nacre("run", "--lang", "shell", "-c", "echo ran", env={"NACRE_STATE": str(state)})
    assert ran.stdout == "ran\n"
    if (state / "verify.key").exists() and not (state / "history").exists():
        assert "Not recorded: The history is gone, but its verify.key is there" in ran.stderr
    elif (state / "history").is_file():
        assert "Not recorded: Open the history" in ran.stderr
    else:
        assert ran.stderr == "" and (state / "verify.key").stat().st_mode & 0o777 == 0o400


def test_a_history_that_others_may_write_is_not_used(nacre, history):
    history.chmod(0o770)
    done = nacre("run", "--lang", "shell", "-c", "echo ran", env={"NACRE_STATE": str(history.parent)})
    assert done.stdout == "ran\n" and "Not recorded: The history must belong to user" in done.stderr


def test_a_key_that_cannot_be_read(nacre, filled, history):
    done = nacre("audit", "verify", "--key", "/usr", env={"NACRE_STATE": str(history.parent)})
    assert done.returncode == 125 and "Read the key '/usr': Is a directory" in done.stderr
