"""What replies of `nacre serve` say: why a command ended, under which id, and which bytes it printed."""

import base64
import json
import re
import subprocess

import pytest

from conftest import NACRE
from serving import Daemon
from test_sandboxes import Sandbox


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("replies"), "--no-warm") as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    made.ask("DELETE")


def test_commands_say_what_was_refused_and_how_strong_the_box_is(sandbox):
    done = sandbox.run("python3 -c 'import ctypes; ctypes.CDLL(None).mount(None, None, None, 0, None)'; true")
    assert done["status"] == "success" and done["error"] is None
    assert any("mount" in json.dumps(denial) for denial in done["denials"]), done["denials"]
    assert done["strength"]["filesystem"] and done["strength"]["syscalls"]
    assert sandbox.command(done["id"])["denials"] == done["denials"]


@pytest.mark.parametrize("command, status", [
    ("head -c 70000000 /dev/zero", "output_limit"), ("exit 3", "error"), ("kill -9 $$", "killed")])
def test_commands_say_why_they_ended(sandbox, command, status):
    done = sandbox.run(command)
    assert done["status"] == status and done["error"], done
    if status == "output_limit":
        assert [denial for denial in done["denials"] if denial["layer"] == "limit"], done["denials"]


def test_what_is_not_text_is_marked_and_kept(daemon, sandbox):
    data = bytes(range(256)) * 4
    reply = daemon.execute("import sys; sys.stdout.buffer.write(bytes(range(256)) * 4); sys.stderr.buffer.write(b'\\xff')").json()
    assert base64.b64decode(reply["output_base64"]) == data and "\ufffd" in reply["output"]
    assert base64.b64decode(reply["stderr_base64"]) == b"\xff"
    done = sandbox.run("printf '\\377ok'")
    assert base64.b64decode(done["stdout_base64"]) == b"\xffok" and done["stdout"] == "\ufffdok" and "stderr_base64" not in done
    plain = daemon.execute("print('\u00e4\ufffd')").json()
    assert plain["output"] == "\u00e4\ufffd\n" and "output_base64" not in plain and "stderr_base64" not in plain
    steps = daemon.post("/v1/execute", {"steps": [{"language": "shell", "code": "printf '\\377'"}, {"language": "shell", "code": "echo"}]}).json()
    assert steps["steps"][0]["output_base64"] == "/w==" and "output_base64" not in steps


def test_the_id_of_the_caller_is_found_everywhere(daemon):
    job = daemon.post("/v1/jobs", {"id": "order-66", "language": "python", "code": "print(66)"}).json()
    assert job["request_id"] == "order-66" and job["id"] != "order-66"
    assert daemon.get("/v1/jobs/order-66/wait").json()["id"] == job["id"]
    assert daemon.get("/v1/jobs/order-66").json()["request_id"] == "order-66"
    assert [entry["request_id"] for entry in daemon.get("/v1/jobs").json()["jobs"] if entry["id"] == job["id"]] == ["order-66"]
    assert daemon.get("/v1/history/order-66").json()["id"] == job["id"]
    assert daemon.get("/v1/history/order-66/stdout").body == b"66\n"
    assert any(row["request_id"] == "order-66" for row in daemon.get("/v1/history").json()["executions"])
    for words in (["history", "show", "order-66"], ["history", "--json", "show", "order-66"]):
        shown = subprocess.run([NACRE, *words], env=daemon.env, capture_output=True, text=True)
        assert shown.returncode == 0 and job["id"] in shown.stdout and "order-66" in shown.stdout, shown
    # of several with one name the last is meant; without a name there is none
    again = daemon.post("/v1/execute", {"id": "order-66", "language": "python", "code": "print(67)"}).json()
    assert daemon.get("/v1/history/order-66").json()["id"] == again["receipt"]["id"]
    assert daemon.post("/v1/jobs", {"language": "python", "code": "1"}).json()["request_id"] is None


def test_times_of_the_history_are_texts(daemon):
    reply = daemon.execute("print(1)").json()
    row = daemon.get(f"/v1/history/{reply['receipt']['id']}").json()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", row["started"]), row["started"]
    assert row["started"] <= row["time"]
    assert not [name for name, value in row.items() if isinstance(value, int) and value > 2 ** 53]


def test_input_is_taken_whole_or_said(sandbox):
    """A command that reads nothing: its pipe and our buffer fill up."""
    command = sandbox.ask("POST", "/commands", {"command": "sleep 60 & cat >/dev/null; wait", "background": True, "keep_input": True}).json()["id"]
    answer = sandbox.ask("POST", f"/commands/{command}/input", b"x" * 10)
    assert answer.status == 200 and answer.json() == {"taken": 10}
    sandbox.ask("DELETE", f"/commands/{command}")
    command = sandbox.ask("POST", "/commands", {"command": "sleep 60", "background": True, "keep_input": True}).json()["id"]
    answer = sandbox.ask("POST", f"/commands/{command}/input", b"x" * 1000000)
    assert answer.status == 409 and answer.json()["code"] == "input_full" and 0 <= answer.json()["taken"] < 1000000
    sandbox.ask("DELETE", f"/commands/{command}")
    # nor is what a command begins with dropped without a word
    answer = sandbox.ask("POST", "/commands", {"command": "cat", "background": True, "keep_input": True, "input": "x" * 1000000})
    assert answer.status == 413 and "input" in answer.json()["detail"]


def test_what_is_refused_has_its_reason(daemon):
    for body in ({"policy": "nowhere"}, {"limits": {"open_files": 1048576}}):
        answer = daemon.post("/v1/execute", {"language": "shell", "code": "true", **body})
        assert answer.status in (200, 400, 403), answer.body
        answer = daemon.post("/v1/sandboxes", body)
        assert answer.status == 201 or (400 <= answer.status < 500 and answer.json()["detail"]), answer.body
        if answer.status == 201:
            daemon.ask("DELETE", f"/v1/sandboxes/{answer.json()['id']}")
