"""Sandboxes of nacre serve: boxes that stay, with commands beside each other, files, and an end."""

import ast
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import NACRE, open_way
from leftovers import descendants
from serving import Daemon, events_of
from test_network import host  # noqa: F401: a fixture

USER = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("sandboxes")) as made:
        yield made


def pgrep(command, below=None):
    """From outside: inside, nobody sees another's processes. Of everybody, or of those below a process."""
    found = subprocess.run(["pgrep", "-xf", command], capture_output=True, text=True).stdout.split()
    return found if below is None else [pid for pid in found if int(pid) in descendants(below)]


class Sandbox:
    place = "/workspace"  # where it is, of boxes that have mounts

    def __init__(self, daemon, **options):
        self.daemon, self.key = daemon, options.pop("key", None)
        answer = daemon.post("/v1/sandboxes", options, key=self.key)
        assert answer.status == 201, answer.body
        self.value = answer.json()
        self.id = self.value["id"]
        assert answer.headers["location"] == self.path()

    def path(self, rest=""):
        return f"/v1/sandboxes/{self.id}{rest}"

    def ask(self, method, rest="", body=None, **options):
        return self.daemon.ask(method, self.path(rest.replace("/workspace", self.place)), body, key=self.key, **options)

    def run(self, command, **options):
        answer = self.ask("POST", "/commands", {"command": command, **options})
        assert answer.status in (200, 202), answer.body
        return answer.json()

    def command(self, identity):
        return self.ask("GET", f"/commands/{identity}").json()

    def wait(self, identity, seconds=10):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.command(identity)
            if found["state"] == "ended":
                return found
            time.sleep(0.02)
        raise AssertionError(found)

    def write(self, path, data, more=""):
        return self.ask("PUT", f"/files?path={path}{more}", data, headers={"Content-Type": "application/octet-stream"})


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon, labels={"test": "yes"})
    yield made
    made.ask("DELETE")


def test_commands_share_files_and_have_ends_of_their_own(sandbox):
    first = sandbox.run("echo kept >file; echo out; echo err >&2; exit 3")
    assert (first["exit_code"], first["status"], first["stdout"], first["stderr"], first["failure"]) == (3, "error", "out\n", "err\n", None)
    assert first["usage"]["wall_seconds"] > 0 and first["usage"]["memory_peak_bytes"] > 0
    assert sandbox.run(["cat", "file"])["stdout"] == "kept\n"
    assert sandbox.run(["sh", "-c", "echo $0 $HOME", "a b"])["stdout"].startswith("a b ")
    assert sandbox.run("pwd; echo $WORD", dir="/tmp", env={"WORD": "x y"})["stdout"] == "/tmp\nx y\n"
    missing = sandbox.run(["/no/such/program"])
    assert missing["status"] == "error" and missing["exit_code"] is None and "start the program" in missing["error"]
    assert missing["failure"] == "program_missing" and sandbox.run(["/etc"])["failure"] == "program_refused"
    late = sandbox.run("sleep 30", timeout=0.2)
    assert late["status"] == "timeout" and sandbox.run("cat", input="lines\n")["stdout"] == "lines\n"


def test_they_are_nobody_on_the_host(sandbox):
    assert sandbox.run("id -u; id -g")["stdout"] == "1000\n1000\n"


def test_commands_run_beside_each_other(sandbox):
    server = sandbox.run("while [ ! -e go ]; do sleep 0.02; done; echo went; setsid sleep 4718 & sleep 4718", background=True)
    assert (server["state"], server["background"]) == ("running", True)
    assert sandbox.run("touch go")["exit_code"] == 0
    until = time.monotonic() + 10
    while (len(pgrep("sleep 4718")) < 2 or "went" not in sandbox.command(server["id"])["stdout"]) and time.monotonic() < until:
        time.sleep(0.02)
    assert len(pgrep("sleep 4718")) == 2
    listed = sandbox.ask("GET", "/commands").json()["commands"]
    assert [found["state"] for found in listed] == ["ended", "running"]
    # ended with all that it started, and with nothing else
    other = sandbox.run("sleep 0.4; echo alive", background=True)
    assert sandbox.ask("DELETE", f"/commands/{server['id']}").status == 202
    assert sandbox.wait(server["id"])["status"] == "cancelled" and not pgrep("sleep 4718")
    assert sandbox.wait(other["id"])["stdout"] == "alive\n"


def test_events_of_a_command(sandbox):
    """Numbered, with all that was printed; who comes back goes on behind what he saw."""
    slow = sandbox.run("echo one; sleep 0.3; echo two >&2; printf '\\377'; exit 5", background=True)
    events = events_of(sandbox.ask("GET", f"/commands/{slow['id']}/events").body)
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1)) and events[-1][1] == "end"
    assert "".join(data.get("text", "") for _, name, data in events if name == "output" and data["stream"] == "stdout") == "one\n"
    assert any(data.get("base64") == "/w==" for _, name, data in events if name == "output")
    assert any(data == {"stream": "stderr", "text": "two\n"} for _, _, data in events)
    assert (events[-1][2]["exit_code"], events[-1][2]["state"]) == (5, "ended")
    again = events_of(sandbox.ask("GET", f"/commands/{slow['id']}/events", headers={"Last-Event-ID": "1"}).body)
    assert again == events[1:]
    waited = sandbox.run("true")
    assert sandbox.ask("GET", f"/commands/{waited['id']}/events").status == 409


@pytest.mark.parametrize("key, left", [("again", 1), (None, 2)])
def test_one_who_hangs_up_before_it_begins_and_asks_again(tmp_path, key, left):
    """With a key there is one command, whenever the connection was lost; without one nobody has promised that."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        body = json.dumps({"command": "sleep 4719", "background": True}).encode()
        head = f"POST {box.path('/commands')} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head += f"Idempotency-Key: {key}\r\n" if key else ""
        os.kill(daemon.process.pid, signal.SIGSTOP)  # the spawner: it begins late
        try:
            with socket.create_connection(("127.0.0.1", daemon.port)) as client:
                client.sendall(head.encode() + b"\r\n" + body)
                time.sleep(0.3)
            time.sleep(0.3)
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        answer = box.ask("POST", "/commands", body, headers={"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})})
        assert answer.status == 202, answer.body
        assert box.command(answer.json()["id"])["state"] == "running"
        until = time.monotonic() + 5
        while len(pgrep("sleep 4719", daemon.process.pid)) != left:
            assert time.monotonic() < until, box.ask("GET", "/commands").body
            time.sleep(0.05)
        time.sleep(0.2)
        assert len(pgrep("sleep 4719", daemon.process.pid)) == left


def test_what_cannot_be_asked_for_is_not_acknowledged(tmp_path):
    """Whoever holds the box takes nothing, and no more can wait for him."""
    with Daemon(tmp_path) as daemon:
        box, other = Sandbox(daemon), Sandbox(daemon)
        running = box.run("sleep 4720", background=True)
        other.run("sleep 4721", background=True)
        rest = f"/commands/{running['id']}/signal"
        head = f"POST {box.path(rest)} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            for _ in range(150):  # 4,096 wait, and what a socket holds
                clients = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(40)]
                for client in clients:
                    client.sendall(head.encode() + b'{"signal":18}')
                time.sleep(0.02)
                for client in clients:
                    client.close()
            answer = box.ask("DELETE", f"/commands/{running['id']}")
            assert other.ask("DELETE").status == 204  # it ends, if not now
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        assert answer.status >= 500, (answer.status, answer.body)
        until = time.monotonic() + 10
        while pgrep("sleep 4721", daemon.process.pid):
            assert time.monotonic() < until, "it was promised to end, and nobody has it end"
            time.sleep(0.1)
        assert box.command(running["id"])["state"] == "running"
        while (answer := box.ask("DELETE", f"/commands/{running['id']}")).status != 202:
            assert time.monotonic() < until, answer.body
            time.sleep(0.1)
        assert box.wait(running["id"])["status"] == "cancelled"


def test_a_signal_reaches_who_has_not_begun(sandbox):
    """It is the program's, and waits for it."""
    for _ in range(20):
        sleeps = sandbox.run("exec sleep 30", background=True)
        assert sandbox.ask("POST", f"/commands/{sleeps['id']}/signal", {"signal": "TERM"}).status == 202
        assert sandbox.wait(sleeps["id"])["signal"] == 15


def test_input_signals_and_terminals(sandbox):
    cat = sandbox.run("cat; echo done", background=True, keep_input=True)
    for part in (b"one ", b"two\n"):
        assert sandbox.ask("POST", f"/commands/{cat['id']}/input", part).json() == {"taken": len(part)}
    assert sandbox.ask("POST", f"/commands/{cat['id']}/input?end=true", b"").status == 200
    assert sandbox.wait(cat["id"])["stdout"] == "one two\ndone\n"
    trap = sandbox.run("trap 'echo caught; exit 4' TERM; echo ready; while :; do sleep 0.02; done", background=True)
    while "ready" not in sandbox.command(trap["id"])["stdout"]:
        time.sleep(0.02)
    assert sandbox.ask("POST", f"/commands/{trap['id']}/signal", {"signal": "TERM"}).status == 202
    ended = sandbox.wait(trap["id"])
    assert (ended["exit_code"], ended["stdout"]) == (4, "ready\ncaught\n")
    shell = sandbox.run(["sh", "-c", "tty; stty size; read x; stty size; echo got $x"], background=True, terminal=True, rows=30, columns=90)
    until = time.monotonic() + 10
    while "30 90" not in sandbox.command(shell["id"])["stdout"] and time.monotonic() < until:
        time.sleep(0.02)
    assert sandbox.ask("POST", f"/commands/{shell['id']}/size", {"rows": 40, "columns": 100}).status == 204
    sandbox.ask("POST", f"/commands/{shell['id']}/input", b"word\n")
    text = sandbox.wait(shell["id"])["stdout"]
    assert "/dev/pts/" in text and "40 100" in text and "got word" in text
    assert sandbox.ask("POST", f"/commands/{shell['id']}/input", b"x").status == 409
    assert sandbox.ask("POST", f"/commands/{cat['id']}/size", {"rows": 1, "columns": 1}).status == 409
    assert sandbox.ask("POST", f"/commands/{cat['id']}/signal", {"signal": "NOPE"}).status == 400


def test_files(sandbox):
    data = bytes(range(256)) * 4096
    assert sandbox.write("/workspace/a/b/data", data).status == 204
    assert sandbox.ask("GET", "/files?path=/workspace/a/b/data").body == data
    assert sandbox.write("/workspace/tool", b"#!/bin/sh\necho ran\n", "&executable=true").status == 204
    assert sandbox.run(["./tool"])["stdout"] == "ran\n"
    entries = {found["name"]: found for found in sandbox.ask("GET", "/files/list?path=/workspace").json()["entries"]}
    assert entries["a"]["type"] == "directory" and (entries["tool"]["type"], entries["tool"]["mode"]) == ("file", 0o755)
    found, = sandbox.ask("GET", "/files/stat?path=/workspace/a/b/data").json()["entries"]
    assert (found["size"], found["type"]) == (len(data), "file")
    assert sandbox.ask("POST", "/files/move?from=/workspace/a&to=/workspace/moved/here").status == 204
    assert sandbox.ask("POST", "/files/directory?path=/workspace/x/y/z").status == 204
    assert sandbox.run("ls -d moved/here/b x/y/z")["exit_code"] == 0
    assert sandbox.ask("DELETE", "/files?path=/workspace/moved").status == 204
    for rest, method, status in (("/files?path=/workspace/moved", "GET", 404), ("/files?path=/workspace/moved", "DELETE", 404), ("/files?path=/workspace", "GET", 409),
                                 ("/files?path=/usr/bin/env2", "PUT", 403), ("/files?path=relative", "GET", 400), ("/files", "GET", 400),
                                 ("/files/list?path=/workspace/tool", "GET", 409)):
        answer = sandbox.ask(method, rest, b"x" if method == "PUT" else None, headers={"Content-Type": "application/octet-stream"})
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json"), (rest, answer.body)


def test_work_on_files_is_bounded(daemon, sandbox):
    """A hundred at once: each is answered, and the daemon has processes left for others; one that is stopped from inside ends."""
    sandbox.run("head -c 3000000 /dev/zero >f")
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: sandbox.ask("GET", "/files?path=/workspace/f"), range(100)))
    assert {answer.status for answer in answers} <= {200, 503} and any(answer.status == 200 for answer in answers)
    assert all(answer.headers["retry-after"] for answer in answers if answer.status == 503)
    assert sandbox.ask("GET", "/files?path=/workspace/f").status == 200 and daemon.execute("print(1)").json()["output"] == "1\n"


def test_what_runs_beside_sees_nobody_else(sandbox):
    """Neither another command nor nacre-files is there for a program that looks for it: each is behind a Landlock domain of its own,
    and /proc shows what one may trace."""
    other = sandbox.run("sleep 30", background=True)
    attack = sandbox.run(r'''
import glob, time
until, seen = time.monotonic() + 3, set()
while time.monotonic() < until:
    for place in glob.glob("/proc/[0-9]*"):
        try: seen.add(open(place + "/cmdline").read().split("\0")[0])
        except OSError: pass
print(sorted(seen))
'''.join(["cat >a.py <<'E'", "E\npython3 a.py\n"]), background=True)
    while sandbox.command(attack["id"])["state"] == "running":
        assert sandbox.write("/workspace/big", bytes(4 << 20)).status == 204
    seen = ast.literal_eval(sandbox.wait(attack["id"])["stdout"])
    assert "python3" in seen and set(seen) <= {"python3", "/bin/sh"}, seen
    assert sandbox.command(other["id"])["state"] == "running"


def test_planted_things_lead_nowhere(sandbox):
    """What nacre-files meets is what the box sees: links to the host's files lead to the box's own, FIFOs are not waited for."""
    sandbox.run("ln -s /etc/shadow link; mkfifo pipe; ln -s / all; ln -s /proc/1/environ environ; ln -s loop loop")
    assert sandbox.ask("GET", "/files?path=/workspace/link").status == 404
    assert sandbox.ask("GET", "/files?path=/workspace/pipe").status == 400
    assert sandbox.ask("GET", "/files?path=/workspace/environ").status in (403, 404)
    assert sandbox.ask("GET", "/files?path=/workspace/loop").status == 400
    names = {found["name"] for found in sandbox.ask("GET", "/files/list?path=/workspace/all").json()["entries"]}
    assert "home" not in names and "workspace" in names
    # removing a link removes the link
    assert sandbox.ask("DELETE", "/files?path=/workspace/all").status == 204
    assert sandbox.run("ls /workspace/link -d")["exit_code"] == 0


def test_the_largest_file_is_listed_as_it_is(sandbox):
    """And the oldest, and names like the rest of a line: no number runs into the one behind it."""
    sandbox.run("mkdir d && cd d && truncate -s 9223372036854775807 big && touch -d @-99999999999 old && touch '100644 1.5 x'")
    entries = {found["name"]: found for found in sandbox.ask("GET", "/files/list?path=/workspace/d").json()["entries"]}
    assert set(entries) == {"big", "old", "100644 1.5 x"}
    assert entries["big"]["size"] == 2**63 - 1 and entries["big"]["mode"] == 0o644 and entries["old"]["modified"] == -99999999999


def test_a_full_disk_is_said(daemon):
    small = Sandbox(daemon, limits={"disk_mb": 2})
    assert small.write("/workspace/large", bytes(3 << 20)).status == 507
    assert small.write("/workspace/small", b"x").status == 204
    assert small.run("head -c 5000000 /dev/zero >more")["exit_code"] != 0
    small.ask("DELETE")


def test_limits_hold_for_all_commands_together(daemon):
    box = Sandbox(daemon, limits={"memory_mb": 64, "disk_mb": 1, "max_processes": 12})
    eat = "python3 -c 'import time; x = bytearray(45 << 20); print(1, flush=True); time.sleep(1.5)'"
    commands = [box.run(eat, background=True) for _ in range(3)]
    ends = [box.wait(found["id"], 20) for found in commands]
    assert any(found["status"] in ("memory_limit", "killed") for found in ends), ends
    forks = [box.run("for i in 1 2 3 4 5 6 7 8; do sleep 0.5 & done; wait", background=True) for _ in range(3)]
    assert any("fork" in box.wait(found["id"])["stderr"] for found in forks)
    box.ask("DELETE")


def test_pause_and_resume(sandbox):
    counter = sandbox.run("i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done", background=True)
    assert sandbox.ask("POST", "/pause").json()["state"] == "paused"
    time.sleep(0.2)
    before = sandbox.command(counter["id"])["stdout"]
    time.sleep(0.4)
    assert sandbox.command(counter["id"])["stdout"] == before
    assert sandbox.ask("POST", "/commands", {"command": "true"}).status == 409
    assert sandbox.ask("GET", "/stats").json()["paused"] is True
    assert sandbox.ask("POST", "/resume").json()["state"] == "running"
    time.sleep(0.4)
    assert len(sandbox.command(counter["id"])["stdout"]) > len(before)


def test_stats_and_health(daemon, sandbox):
    sandbox.run("python3 -c 'x = sum(range(3000000))'; head -c 1000000 /dev/zero >file")
    stats = sandbox.ask("GET", "/stats").json()
    assert stats["cpu_seconds"] > 0.01 and stats["disk_bytes"] >= 1000000 and stats["commands"] == 0
    assert sandbox.ask("GET", "/health").json() == {"healthy": True, "reason": None}
    assert sandbox.id in [found["id"] for found in daemon.get("/v1/sandboxes/stats").json()["stats"]]
    assert {"id": sandbox.id, "healthy": True, "reason": None} in daemon.get("/v1/sandboxes/health").json()["health"]


def test_the_network_of_a_sandbox(daemon, host):  # noqa: F811
    """Nothing unless it is asked for; what is allowed goes through the door, for every command in it."""
    closed, box = Sandbox(daemon), Sandbox(daemon, network={"allow": [host.name]})
    ask = f"curl -sS -m 5 http://{host.name}/page"
    assert closed.run(ask)["exit_code"] != 0 and closed.ask("GET", "/stats").json()["network"] is None
    assert [box.run(ask)["stdout"] for _ in range(2)] == ["a page\n"] * 2 and host.asked == ["/page"] * 2
    assert "network.not-listed" in box.run("curl -s http://example.org/")["stdout"]
    for _ in range(50):
        if (box.ask("GET", "/stats").json()["network"] or {}).get("requests") == 2:
            break
        time.sleep(0.05)
    network = box.ask("GET", "/stats").json()["network"]
    assert (network["requests"], network["denied"]) == (2, 1)
    # other terms hold for the next request; bad ones leave the old
    assert box.ask("POST", "/network", {"allow": ["example.com"]}).status == 200
    assert "network.literal" in box.run(ask)["stdout"]
    assert box.ask("POST", "/network", {"allow": ["0x7f.1"]}).status == 400 and "network.literal" in box.run(ask)["stdout"]
    assert box.ask("POST", "/network", {"allow": [host.name]}).status == 200 and box.run(ask)["stdout"] == "a page\n"
    assert closed.ask("POST", "/network", {"allow": [host.name]}).status == 409
    assert daemon.post("/v1/sandboxes", {"policy": "strict", "network": {"allow": [host.name]}}).status == 403
    for made in (closed, box):
        made.ask("DELETE")


def test_lists_and_pages(daemon):
    made = [Sandbox(daemon, labels={"page": "a" if i < 2 else "b"}) for i in range(3)]
    found = daemon.get("/v1/sandboxes?label=page%3Da").json()["sandboxes"]
    assert [value["id"] for value in found] == [box.id for box in made[:2]]
    assert made[2].id in [value["id"] for value in daemon.get(f"/v1/sandboxes?after={made[1].id}").json()["sandboxes"]]
    assert len(daemon.get("/v1/sandboxes?limit=1").json()["sandboxes"]) == 1
    assert daemon.get("/v1/sandboxes?state=paused").json() == {"sandboxes": [], "next": None}
    first = daemon.get("/v1/sandboxes?label=page%3Da&limit=1").json()
    second = daemon.get(f"/v1/sandboxes?label=page%3Da&limit=1&after={first['next']}").json()
    assert [page["sandboxes"][0]["id"] for page in (first, second)] == [box.id for box in made[:2]] and second["next"] is None
    for box in made:
        assert box.ask("DELETE").status == 204
        assert box.ask("GET").status == 404


def test_it_ends_when_its_time_is_up_or_nobody_uses_it(daemon):
    short, idle, busy = Sandbox(daemon, timeout=1), Sandbox(daemon, idle_timeout=1), Sandbox(daemon, idle_timeout=1)
    longer = Sandbox(daemon, timeout=1)
    assert longer.ask("POST", "/timeout", {"timeout": 60}).json()["seconds_left"] > 50
    running = busy.run("sleep 4; echo end", background=True)
    time.sleep(2.8)
    assert [box.ask("GET").status for box in (short, idle, busy, longer)] == [404, 404, 200, 200]
    assert busy.command(running["id"])["state"] == "running"
    for box in (busy, longer):
        box.ask("DELETE")


def test_the_end_of_a_sandbox_is_the_end_of_what_runs_in_it(daemon):
    box = Sandbox(daemon)
    box.run("setsid sleep 4711 & sleep 4712", background=True)
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(box.ask("POST", "/commands", {"command": "sleep 4713"})))
    waiter.start()
    time.sleep(0.5)
    assert box.ask("DELETE").status == 204
    waiter.join(10)
    assert answers[0].status == 200 and answers[0].json()["status"] == "cancelled"
    until = time.monotonic() + 5
    while os.popen("pgrep -fc 'sleep 471[123]$'").read().strip() != "0" and time.monotonic() < until:
        time.sleep(0.05)
    assert os.popen("pgrep -fc 'sleep 471[123]$'").read().strip() == "0"


def test_a_client_that_hangs_up_ends_its_command(daemon, sandbox):
    body = json.dumps({"command": "sleep 4714"}).encode()
    client = daemon.connect()
    client.sendall(f"POST {sandbox.path('/commands')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    time.sleep(0.5)
    client.close()
    until = time.monotonic() + 5
    while any(found["state"] == "running" for found in sandbox.ask("GET", "/commands").json()["commands"]) and time.monotonic() < until:
        time.sleep(0.05)
    assert [found["status"] for found in sandbox.ask("GET", "/commands").json()["commands"]] == ["cancelled"]


def test_a_daemon_that_stops_in_the_middle_of_it(tmp_path):
    """Commands, work on files, events and questions under way: it ends well, and nothing is left."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = box.run("echo x; sleep 4715", background=True)
        path = box.path(f"/commands/{running['id']}/events")
        clients = []
        for method, rest, body in (("GET", f"/commands/{running['id']}/events", b""), ("POST", "/commands", b'{"command": "sleep 4715"}'),
                                   ("PUT", "/files?path=/workspace/f", bytes(8 << 20)), ("GET", "/stats", b""), ("GET", "/files?path=/workspace/f", b"")):
            client = daemon.connect()
            client.sendall(f"{method} {box.path(rest)} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            clients.append(client)
        assert path
        os.kill(daemon.pid, signal.SIGTERM)
        daemon.wait_for_log("Stopping")
        os.kill(daemon.pid, signal.SIGTERM)
        assert daemon.process.wait(20) == 0
    assert os.popen("pgrep -fc 'sleep 4715$'").read().strip() == "0"


@pytest.mark.parametrize("body, field", [({"limits": {"memory_mb": 1}}, "/limits/memory_mb"), ({"timeout": 0}, "/timeout"), ({"memory": 1}, "/memory"),
                                         ({"env": {"1": "x"}}, "/env"), ({"policy": "../x"}, "/policy"), ([], "")])
def test_bad_requests(daemon, body, field):
    answer = daemon.post("/v1/sandboxes", body)
    assert answer.status == 400 and answer.json()["field"].startswith(field), answer.body


def test_bad_commands(sandbox):
    for body in ({}, {"command": ""}, {"command": []}, {"command": 1}, {"command": "x", "dir": "here"}, {"command": "x", "rows": 0}, {"command": "x", "nope": 1}):
        assert sandbox.ask("POST", "/commands", body).status == 400, body


def test_the_tier_of_a_sandbox(daemon):
    made = daemon.post("/v1/sandboxes", {"tier": "container"})
    assert made.status == 201, made.body
    assert daemon.ask("DELETE", f"/v1/sandboxes/{made.json()['id']}").status == 204
    weaker = daemon.post("/v1/sandboxes", {"tier": "process"})
    assert weaker.status == 403 and "held by less" in weaker.json()["detail"], weaker.body
    for tier in ("wasm", "docker", "microvm", "remote"):
        absent = daemon.post("/v1/sandboxes", {"tier": tier})
        assert absent.status >= 400 and f"'{tier}' cannot be had here" in absent.json()["detail"], absent.body
    assert daemon.post("/v1/sandboxes", {"tier": "contianer"}).status == 400


def test_an_image_or_policy_that_is_not_there(daemon):
    answer = daemon.post("/v1/sandboxes", {"image": "nowhere"})
    assert answer.status == 404 and "image import" in answer.json()["detail"]
    assert daemon.post("/v1/sandboxes", {"policy": "nowhere"}).status == 403


def test_the_policy_reads_commands(daemon):
    strict = Sandbox(daemon, policy="strict")
    answer = strict.ask("POST", "/commands", {"command": "rm -rf / --no-preserve-root"})
    assert answer.status == 403 and answer.json()["code"] == "policy", answer.body
    strict.ask("DELETE")


def test_a_sandbox_is_no_way_around_the_ceilings_of_a_policy(tmp_path):
    config = tmp_path / "config"
    (config / "policies").mkdir(parents=True)
    (config / "policies" / "small.yaml").write_text(
        "inherits: standard\nlimits: {memory_mb: 64, cpu_cores: 0.5, disk_mb: 8, max_processes: 2, execution_time_seconds: 1}\n")
    with Daemon(tmp_path, config=config) as daemon:
        for limits in ({"memory_mb": 65}, {"cpu_cores": 1}, {"disk_mb": 9}, {"max_processes": 33}, {"execution_time_seconds": 2}):
            answer = daemon.post("/v1/sandboxes", {"policy": "small", "limits": limits})
            assert answer.status == 403 and "at most" in answer.json()["detail"], (limits, answer.body)
        box = Sandbox(daemon, policy="small")
        assert box.value["limits"] == {"memory_mb": 64, "cpu_cores": 0.5, "disk_mb": 8, "max_processes": 32}
        assert box.run("sleep 5")["status"] == box.run("sleep 5", timeout=60)["status"] == "timeout"
        assert box.value["seconds_left"] > 200  # its life is another thing


def test_sandboxes_count_against_quotas_and_stand_in_the_journal(tmp_path):
    """Neither a way around what a tenant may have, nor around what is written down."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text("quotas:\n  executions: 2\n")
    with Daemon(tmp_path, config=config) as daemon:
        one, two = daemon.key("--tenant", "one"), daemon.key("--tenant", "two")
        boxes = [Sandbox(daemon, key=one) for _ in range(2)]
        for refused in (daemon.post("/v1/sandboxes", {}, key=one), daemon.execute("1", key=one)):
            assert refused.status == 429 and refused.headers["retry-after"], refused.body
        Sandbox(daemon, key=two)
        boxes[0].run("echo 'pearl \\\\ diver'; exit 3")
        boxes[0].run("true " + "x" * 20000)
        boxes[0].ask("DELETE")
        for _ in range(100):
            answer = daemon.post("/v1/sandboxes", {}, key=one)
            if answer.status == 201:
                break
            time.sleep(0.05)
        assert answer.status == 201
    lines = subprocess.run([str(NACRE), "audit", "log", "--kind", "audit", "--json"], env=daemon.env, capture_output=True, text=True, check=True).stdout
    entries = [json.loads(line) for line in lines.splitlines()]
    commands = [entry for entry in entries if entry.get("event") == "sandbox.command"]
    assert len(commands) == 2, entries[:3]
    text = json.dumps(commands)
    assert "pearl" in text and '"exit_code": 3' in text and boxes[0].id in text and "xxxx" not in text and text.count("sha256") == 2
    assert sum(entry.get("event") == "sandbox.created" for entry in entries) == 4


def test_tenants_reach_what_a_policy_lists(tmp_path, host):  # noqa: F811
    """Who only has a key cannot name the daemon's own neighbours: neither in executions nor in sandboxes."""
    config = tmp_path / "config"
    (config / "policies").mkdir(parents=True)
    (config / "policies" / "listed.yaml").write_text(f"inherits: standard\nnetwork:\n  allow: [{host.name}]\n")
    with Daemon(tmp_path, config=config) as daemon:
        key, admin = daemon.key("--tenant", "one"), daemon.key("--tenant", "two", "--role", "admin")
        for policy, who, good in (("standard", key, False), ("standard", admin, True), ("listed", key, True)):
            reply = daemon.execute(f"curl -s http://{host.name}/page", "shell", network={"allow": [host.name]}, policy=policy, key=who).json()
            assert (reply["status"] == "success", reply["output"]) == (good, "a page\n" if good else ""), (policy, reply["error"])
            answer = daemon.post("/v1/sandboxes", {"policy": policy, "network": {"allow": [host.name]}}, key=who)
            assert answer.status == (201 if good else 403), answer.body


def test_tenants_do_not_see_each_other(tmp_path):
    with Daemon(tmp_path) as daemon:
        keys = [daemon.key("--tenant", tenant) for tenant in ("one", "two")]
        boxes = [Sandbox(daemon, key=key) for key in keys]
        assert [box.value["tenant"] for box in boxes] == ["one", "two"]
        for box, key in zip(boxes, reversed(keys)):
            for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/stats"), ("GET", "/files?path=/workspace/x"), ("GET", "/commands")):
                assert daemon.ask(method, box.path(rest), key=key).status == 404
            assert daemon.ask("POST", box.path("/commands"), {"command": "true"}, key=key).status == 404
        assert [len(daemon.get("/v1/sandboxes", key=key).json()["sandboxes"]) for key in keys] == [1, 1]
        assert daemon.ask("DELETE", "/v1/sandboxes", key=keys[0]).json() == {"destroyed": 1}
        assert boxes[1].ask("GET").status == 200


def test_a_user_without_control_groups_has_one_command_at_a_time(programs, tmp_path_factory):
    home = tmp_path_factory.mktemp("user")
    os.chown(home, 1000, 1000)
    open_way(home)
    with Daemon(home, prefix=USER, program=programs / "nacre") as daemon:
        box = Sandbox(daemon)
        assert box.run("echo x >f; echo hi")["stdout"] == "hi\n" and box.run("cat f")["stdout"] == "x\n"
        assert box.write("/workspace/g", b"y").status == 204
        slow = box.run("sleep 1; echo end", background=True)
        answer = box.ask("POST", "/commands", {"command": "true"})
        assert answer.status == 409 and "one command at a time" in answer.json()["detail"]
        assert box.wait(slow["id"])["stdout"] == "end\n"
        assert box.run("cat g")["stdout"] == "y"
        late = box.run("setsid sleep 60 & sleep 60", timeout=0.3)
        assert late["status"] == "timeout" and box.run("ls")["stdout"] == "f\ng\n"
