"""kill -9 of the daemon: the spawner starts it again, and sandboxes with all that runs in them live on."""

import os
import pathlib
import random
import re
import signal
import ssl
import subprocess
import threading
import time

import pytest

from conftest import NACRE, environment, open_way
from leftovers import outlivers, our_groups
from serving import Daemon, descriptors, events_of
from test_network import host, needs_curl  # noqa: F401: a fixture
from test_sandboxes import Sandbox, USER

KILLS = int(os.environ.get("NACRE_KILLS", "10"))
COUNT = "i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); sleep 0.02; done; exit 7"


def counted(n):
    return "".join(f"line {i}\n" for i in range(n))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("adoption")) as made:
        yield made


def children(daemon):
    return subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout.split()


def test_commands_go_on_and_their_output_is_there_once(daemon):
    box = Sandbox(daemon, labels={"a": "b"}, env={"KEPT": "yes"})
    assert box.write("/workspace/file", b"content").status == 204
    ended = box.run("echo before; echo wrong >&2; exit 3")
    long = box.run(COUNT % 100, background=True)
    typing = box.run("while read x; do echo got $x; done; echo over", keep_input=True, background=True)
    assert box.ask("POST", f"/commands/{typing['id']}/input", b"one\n", headers={"Content-Type": "text/plain"}).status == 200
    terminal = box.run("read x; echo typed $x; tty", terminal=True, background=True)
    time.sleep(0.5)
    before = box.ask("GET").json()
    daemon.die()
    after = box.ask("GET").json()
    assert after["seconds_left"] < before["seconds_left"] and after["running"] == 3
    assert {**after, "seconds_left": 0} == {**before, "seconds_left": 0}
    assert box.command(ended["id"]) == {**ended, "stdout": "before\n", "stderr": "wrong\n"}
    listed = [found["id"] for found in box.ask("GET", "/commands").json()["commands"]]
    assert sorted(listed) == sorted(found["id"] for found in (ended, long, typing, terminal))
    for what, data in ((typing, b"two\n"), (terminal, b"three\n")):
        assert box.ask("POST", f"/commands/{what['id']}/input", data, headers={"Content-Type": "text/plain"}).json()["taken"] == len(data)
    assert box.ask("POST", f"/commands/{typing['id']}/input?end=true", b"", headers={"Content-Type": "text/plain"}).status == 200
    done = box.wait(long["id"])
    assert done["stdout"] == counted(100) and (done["exit_code"], done["status"]) == (7, "error")
    assert done["usage"]["output_bytes"] == len(done["stdout"]) and done["started"] == long["started"]
    assert box.wait(typing["id"])["stdout"] == "got one\ngot two\nover\n"
    assert "typed three" in box.wait(terminal["id"])["stdout"]
    assert box.run("cat file; echo $KEPT")["stdout"] == "contentyes\n"
    assert [found["id"] for found in daemon.get("/v1/sandboxes?label=a%3Db").json()["sandboxes"]] == [box.id]
    assert box.ask("DELETE").status == 204


def test_an_end_that_came_while_nobody_was_there(daemon):
    """The worker is stopped while the command ends, and dies before it has heard of it."""
    box = Sandbox(daemon)
    soon = box.run("echo a; sleep 0.3; echo b; echo c >&2; exit 9", background=True)
    os.kill(daemon.pid, signal.SIGSTOP)
    time.sleep(0.8)
    daemon.die()
    done = box.wait(soon["id"])
    assert (done["stdout"], done["stderr"], done["exit_code"]) == ("a\nb\n", "c\n", 9)
    daemon.die()
    assert box.command(soon["id"]) == done
    assert box.ask("DELETE").status == 204


def test_input_that_was_not_all_given(daemon):
    """A program must not take the end of some of its input for the end of all."""
    box = Sandbox(daemon)
    hungry = box.run("sleep 1; wc -c", input="x" * 300000, background=True)
    sated = box.run("sleep 1; wc -c", input="x" * 3000, background=True)
    time.sleep(0.3)
    daemon.die()
    done = box.wait(hungry["id"])
    assert done["status"] == "error" and "had all of its input" in done["error"] and done["stdout"] == ""
    assert box.wait(sated["id"])["stdout"] == "3000\n"
    assert box.ask("DELETE").status == 204


def test_much_output_keeps_its_head_and_tail(daemon):
    box = Sandbox(daemon)
    much = box.run("seq 1 400000; sleep 0.5; seq 400001 400010", background=True)
    time.sleep(0.3)
    daemon.die()
    done = box.wait(much["id"])
    whole = "".join(f"{i}\n" for i in range(1, 400011))
    assert done["truncated"] and done["usage"]["output_bytes"] == len(whole)
    head, gap, tail = re.match(r"(?s)(.*)\n\.\.\. (\d+) bytes left out \.\.\.\n(.*)", done["stdout"]).groups()
    assert whole.startswith(head) and whole.endswith(tail) and len(head) + len(tail) + int(gap) == len(whole)
    assert len(head) == 1 << 19 and len(tail) == 1 << 19
    assert box.ask("DELETE").status == 204


def test_events_go_on_with_their_numbers(daemon):
    box = Sandbox(daemon)
    path = box.path(f"/commands/{(made := box.run(COUNT % 40, background=True))['id']}/events")
    time.sleep(0.3)
    daemon.die()
    box.wait(made["id"])
    told = events_of(daemon.get(path).body)
    numbers = [number for number, name, _ in told if number]
    assert told[0][1] == "gap" and told[-1][1] == "end" and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    text = "".join(data["text"] for _, name, data in told if name == "output")
    assert counted(40).endswith(text) and told[0][2] == {"from": 1, "to": numbers[0] - 1}
    assert box.ask("DELETE").status == 204


def test_killed_at_any_moment_no_line_is_lost_or_doubled(daemon):
    box, chance = Sandbox(daemon), random.Random(4711)
    fast = [box.run("i=0; while [ $i -lt 300000 ]; do echo $i; i=$((i+1)); done", background=True, timeout=120) for _ in range(2)]
    slow = box.run("i=0; while true; do echo line $i; i=$((i+1)); sleep 0.02; done", background=True)
    for _ in range(KILLS):
        time.sleep(chance.random() * 0.3)
        daemon.die()
        lines = box.command(slow["id"])["stdout"]
        assert lines == counted(lines.count("\n"))
    whole = "".join(f"{i}\n" for i in range(300000))
    for command in fast:
        done = box.wait(command["id"], 60)
        head, gap, tail = re.match(r"(?s)(.*)\n\.\.\. (\d+) bytes left out \.\.\.\n(.*)", done["stdout"]).groups()
        assert whole.startswith(head) and whole.endswith(tail) and len(head) + len(tail) + int(gap) == len(whole)
        assert done["exit_code"] == 0
    assert box.ask("DELETE", f"/commands/{slow['id']}").status == 202
    assert box.wait(slow["id"])["status"] == "cancelled"
    assert box.ask("DELETE").status == 204


def test_pause_and_times_go_on(daemon):
    box, idle, short = Sandbox(daemon), Sandbox(daemon, idle_timeout=3), Sandbox(daemon, timeout=4)
    running = box.run(COUNT % 1000, background=True)
    assert box.ask("POST", "/pause").status == 200
    time.sleep(0.2)
    daemon.die()
    assert box.ask("GET").json()["state"] == "paused"
    there = box.command(running["id"])["stdout"]
    assert box.ask("POST", "/commands", {"command": "true"}).status == 409
    time.sleep(0.5)
    assert box.command(running["id"])["stdout"] == there
    assert box.ask("POST", "/resume").status == 200
    time.sleep(0.5)
    assert len(box.command(running["id"])["stdout"]) > len(there)
    assert box.ask("DELETE").status == 204
    until = time.monotonic() + 8
    while time.monotonic() < until and (idle.ask("GET").status, short.ask("GET").status) != (404, 404):
        time.sleep(0.1)
    assert (idle.ask("GET").status, short.ask("GET").status) == (404, 404)


@needs_curl
def test_the_network_stays_as_it_was(daemon, host):  # noqa: F811
    ask = f"curl -s -m 5 http://{host.name}/page"
    closed, box = Sandbox(daemon), Sandbox(daemon, network={"allow": [host.name]})
    changed = Sandbox(daemon, network={"allow": [host.name]})
    dead = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 60", "network": {"allow": [host.name]}}).json()
    assert box.run(ask)["stdout"] == "a page\n"
    assert changed.ask("POST", "/network", {"allow": ["example.com"]}).status == 200
    long = box.run(f"sleep 0.5; {ask}", background=True)
    time.sleep(0.2)
    daemon.die()
    assert box.wait(long["id"])["stdout"] == "a page\n"
    assert box.run(ask)["stdout"] == "a page\n" and "network.not-listed" in box.run("curl -s http://example.org/")["stdout"]
    assert "network.literal" in changed.run(ask)["stdout"] and closed.run(ask)["exit_code"] != 0
    until = time.monotonic() + 5
    while time.monotonic() < until and (box.ask("GET", "/stats").json()["network"] or {}).get("requests") != 3:
        time.sleep(0.05)
    network = box.ask("GET", "/stats").json()["network"]
    assert (network["requests"], network["denied"]) == (3, 1)
    assert box.ask("POST", "/network", {"allow": ["example.com"]}).status == 200 and "network.literal" in box.run(ask)["stdout"]
    assert box.ask("POST", "/network", {"allow": [host.name]}).status == 200 and box.run(ask)["stdout"] == "a page\n"
    assert daemon.get(f"/v1/jobs/{dead['id']}").json()["status"] == "lost"
    for made in (closed, box, changed):
        assert made.ask("DELETE").status == 204


def test_secrets_stay_what_programs_know_them_by(daemon, host):  # noqa: F811
    box = Sandbox(daemon, network={"allow": [host.name]},
                  secrets={"TOKEN": {"value": "s3cret", "host": host.name, "header": "Authorization", "plain": True}})
    before = box.run("echo $TOKEN")["stdout"]
    daemon.die()
    assert box.run("echo $TOKEN")["stdout"] == before and before.startswith("sk_")
    assert box.ask("DELETE").status == 204


def test_what_was_executed_is_in_the_history(daemon):
    """Jobs that ran or waited are told that they are lost; what had ended is there."""
    done = daemon.execute("echo there", "shell").json()
    jobs = [daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 4731"}).json()["id"] for _ in range(12)]
    daemon.die()
    assert daemon.get(f"/v1/history/{done['id']}").json()["status"] == "success"
    for job in jobs:
        told = daemon.get(f"/v1/jobs/{job}").json()
        assert (told["state"], told["status"], told["reply"]) == ("done", "lost", None)
        assert daemon.get(f"/v1/jobs/{job}/wait?timeout=1").json() == told
        past = daemon.get(f"/v1/history/{job}").json()
        assert past["status"] == "lost" and "died before it had ended" in past["error"]
    assert daemon.get("/v1/jobs/ex_none").status == 404
    assert subprocess.run(["pgrep", "-xf", "sleep 4731"], capture_output=True).returncode == 1
    assert daemon.execute("print(6 * 7)").json()["output"] == "42\n"


def boxes(daemon):
    return len(subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-f", "^nacre-init"], capture_output=True, text=True).stdout.split())


def test_what_was_in_the_middle_of_being_made(daemon):
    """Sandboxes and commands that nobody was told of do not stay."""
    before = boxes(daemon)
    assert before > 0
    clients = []
    for _ in range(6):
        client = daemon.connect()
        client.sendall(f"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        clients.append(client)
    daemon.die()
    told = 0
    for client in clients:
        client.settimeout(10)
        try:
            told += b" 201 " in client.recv(4096)
        except ConnectionResetError:
            pass
    assert len(daemon.get("/v1/sandboxes").json()["sandboxes"]) >= told
    daemon.ask("DELETE", "/v1/sandboxes")
    until = time.monotonic() + 15
    while time.monotonic() < until and boxes(daemon) > before + 2:
        time.sleep(0.05)
    assert boxes(daemon) <= before + 2  # what is kept ready may be a few more by now


def test_tenants_and_quotas_hold(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text("tenants:\n  one:\n    executions: 2\n")
    open_way(config)
    with Daemon(tmp_path, config=config) as daemon:
        one, two = (daemon.key("--tenant", name, "--role", "execute") for name in ("one", "two"))
        boxes = [Sandbox(daemon, key=one), Sandbox(daemon, key=one)]
        assert daemon.post("/v1/sandboxes", {}, key=one).status == 429
        lost = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 4731"}, key=two).json()["id"]
        daemon.die()
        assert boxes[0].ask("GET").status == 200 and daemon.get(boxes[0].path(), key=two).status == 404
        assert daemon.get(boxes[0].path()).status == 401
        assert daemon.post("/v1/sandboxes", {}, key=one).status == 429
        assert daemon.get(f"/v1/jobs/{lost}", key=two).json()["status"] == "lost" and daemon.get(f"/v1/jobs/{lost}", key=one).status == 404
        assert boxes[1].ask("DELETE").status == 204
        time.sleep(0.3)
        assert daemon.post("/v1/sandboxes", {}, key=one).status == 201


def test_a_configuration_that_has_become_bad_is_said(tmp_path):
    """The next worker reads the files again, as a reload does."""
    config = tmp_path / "config"
    (config / "policies").mkdir(parents=True)
    (config / "policies" / "mine.yaml").write_text("inherits: standard\nlimits:\n  memory_mb: 64\n")
    open_way(config / "policies")
    with Daemon(tmp_path, config=config) as daemon:
        box = Sandbox(daemon, policy="mine", limits={"memory_mb": 32})
        (config / "policies" / "mine.yaml").write_text("inherits: standard\nlimits:\n  memory_mb: 16\n")
        daemon.die()
        assert box.ask("GET").status == 404  # it has more than it may have now
        assert any("sandbox of the daemon before is ended" in record["message"] for record in daemon.log())
        assert daemon.post("/v1/sandboxes", {"policy": "mine", "limits": {"memory_mb": 32}}).status == 403


def test_a_configuration_that_has_gone_is_not_done_without(tmp_path):
    """It would look like one without rules."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text("tenants:\n  one:\n    executions: 1\n")
    open_way(config)
    with Daemon(tmp_path, config=config) as daemon:
        Sandbox(daemon).run("sleep 4732", background=True)
        (config / "serve.yaml").unlink()
        os.kill(daemon.pid, signal.SIGKILL)
        assert daemon.process.wait(20) == 125
    assert "serve.yaml has gone from the configuration" in open(daemon.log_path).read()
    assert subprocess.run(["pgrep", "-xf", "sleep 4732"], capture_output=True).returncode == 1


def test_tls_goes_on_though_the_key_is_gone(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    os.chmod(tmp_path / "key.pem", 0o600)
    with Daemon(tmp_path, "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")) as daemon:
        os.unlink(tmp_path / "key.pem")
        daemon.die()
        with context.wrap_socket(daemon.connect(), server_hostname="localhost") as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_user_without_control_groups(programs, tmp_path_factory):
    home = tmp_path_factory.mktemp("user")
    os.chown(home, 1000, 1000)
    open_way(home)
    with Daemon(home, prefix=USER, program=programs / "nacre") as daemon:
        box, busy = Sandbox(daemon), Sandbox(daemon)
        assert box.write("/workspace/f", b"x").status == 204
        long = box.run(COUNT % 60, background=True)
        client = daemon.connect()  # work on files that is under way
        client.sendall(f"PUT {busy.path('/files?path=/workspace/g')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Type: text/plain\r\n"
                       f"Content-Length: 8388608\r\n\r\n".encode() + bytes(8 << 20))
        time.sleep(0.3)
        daemon.die()
        assert box.ask("POST", "/commands", {"command": "true"}).status == 409
        done = box.wait(long["id"])
        assert done["stdout"] == counted(60) and done["exit_code"] == 7
        assert box.run("cat f")["stdout"] == "x"
        until = time.monotonic() + 10
        while time.monotonic() < until and busy.ask("POST", "/commands", {"command": "true"}).status != 200:
            time.sleep(0.1)
        assert busy.run("echo on")["stdout"] == "on\n"


def test_many_at_once(tmp_path):
    """More boxes than the socket to the worker has room for messages."""
    with Daemon(tmp_path) as daemon:
        boxes = [Sandbox(daemon, limits={"memory_mb": 32, "disk_mb": 4}) for _ in range(40)]
        for box in boxes:
            for _ in range(5):
                box.run("sleep 300", background=True)
        daemon.die()
        found = daemon.get("/v1/sandboxes?limit=1000").json()["sandboxes"]
        assert (len(found), sum(one["running"] for one in found)) == (40, 200)
        assert [one["id"] for one in found] == [box.id for box in boxes]
        assert daemon.ask("DELETE", "/v1/sandboxes").json()["destroyed"] == 40


@pytest.mark.parametrize("name", ["recorder", "egress", "archive", "keeper"])
def test_who_works_beside_it_may_have_died_too(tmp_path, name):
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        os.kill(daemon.aides()[name], signal.SIGKILL)
        time.sleep(0.2)
        daemon.die()
        assert box.run("echo on")["stdout"] == "on\n" and daemon.execute("print(1)").json()["output"] == "1\n"


def test_a_worker_that_dies_at_once_again_and_again(tmp_path):
    with Daemon(tmp_path) as daemon:
        Sandbox(daemon).run("sleep 4716", background=True)
        for _ in range(6):
            os.kill(daemon.pid, signal.SIGKILL)
            until = time.monotonic() + 5
            while time.monotonic() < until and daemon.process.poll() is None and \
                    daemon.pid == (pid := [record["pid"] for record in daemon.log() if record["message"] == "Listening"][-1]):
                time.sleep(0.005)
            daemon.pid = pid
        assert daemon.process.wait(20) == 125
    assert "The worker died too often" in open(daemon.log_path).read()
    assert subprocess.run(["pgrep", "-xf", "sleep 4716"], capture_output=True).returncode == 1


def test_the_spawners_death_is_the_end_of_all(tmp_path):
    """No orphan, and a daemon starts afresh on the same state."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        box.run("sleep 4717", background=True)
        job = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 4717"}).json()["id"]
        time.sleep(0.3)
        beside = [int(pid) for pid in children(daemon)]
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait(20)
        assert not outlivers(beside)
    assert subprocess.run(["pgrep", "-xf", "sleep 4717"], capture_output=True).returncode == 1
    with Daemon(tmp_path) as daemon:
        assert daemon.get(box.path()).status == 404 and daemon.get(f"/v1/history/{job}").json()["status"] == "lost"
        assert Sandbox(daemon).run("echo afresh")["stdout"] == "afresh\n"
    subprocess.run([NACRE, "exec", "--", "true"], env=environment(tmp_path), check=True, capture_output=True)  # sweeps


def test_what_a_killed_daemon_leaves_is_swept_by_whoever_comes(tmp_path):
    """Also by one that has no use for half of those hierarchies itself."""
    with Daemon(tmp_path) as daemon:
        Sandbox(daemon).run("true")
        found = re.search(r"nacre-(sp_\w+)", "".join(pathlib.Path(f"/proc/{pid}/cgroup").read_text() for pid in children(daemon)))
        if not found:
            pytest.skip("no control groups here")
        assert [path for path in our_groups() if path.endswith(found.group(0))]
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait(20)
        subprocess.run([NACRE, "exec", "--", "true"], env=environment(tmp_path), check=True, capture_output=True)
        assert [path for path in our_groups() if found.group(1) in path] == []


def test_a_ledger_that_a_hostile_worker_wrote(tmp_path):
    """The next worker takes nothing in it on trust: it comes up, answers, and makes sandboxes."""
    chance, page = random.Random(42), 8 << 20
    with Daemon(tmp_path) as daemon:
        for box in (Sandbox(daemon), Sandbox(daemon)):
            box.run("echo x")
            box.run("sleep 4719", background=True)
        for _ in range(5):
            number, = [number for number, link in descriptors(daemon.pid).items() if "nacre-ledger" in link]
            fd = os.open(f"/proc/{daemon.pid}/fd/{number}", os.O_RDWR)
            for _ in range(20):
                place = chance.choice([0, 4, 64, 72, 4096, 4096 + (2 << 20)]) + chance.choice([0, chance.randrange(400)])
                os.pwrite(fd, chance.choice([chance.randbytes(8), b"\xff" * 8, b"9" * 12, b'"', b"null"]), chance.randrange(8) * page + place)
            os.close(fd)
            daemon.die()
            for found in daemon.get("/v1/sandboxes").json()["sandboxes"]:
                commands = daemon.get(f"/v1/sandboxes/{found['id']}/commands")
                for command in commands.json()["commands"] if commands.status == 200 else []:
                    assert daemon.get(f"/v1/sandboxes/{found['id']}/commands/{command['id']}").status in (200, 404)
        assert Sandbox(daemon).run("echo well")["stdout"] == "well\n"
    assert subprocess.run(["pgrep", "-xf", "sleep 4719"], capture_output=True).returncode == 1


class Load(threading.Thread):
    """Executes and runs commands until it is told to stop; what was acknowledged is remembered."""

    def __init__(self, daemon, box):
        super().__init__(daemon=True)
        self.server, self.box, self.acknowledged, self.wrong, self.stop = daemon, box, [], [], False

    def run(self):
        n = 0
        while not self.stop:
            n += 1
            try:
                reply = self.server.execute(f"echo {n}", "shell")
                if reply.status == 200:
                    self.acknowledged.append(reply.json()["id"])
                    if reply.json()["output"] != f"{n}\n":
                        self.wrong.append(reply.body)
                job = self.server.post("/v1/jobs", {"language": "shell", "code": "echo job"})
                if job.status == 202:
                    self.acknowledged.append(job.json()["id"])
                done = self.box.ask("POST", "/commands", {"command": f"echo {n}"})
                if done.status == 200 and done.json()["stdout"] != f"{n}\n":
                    self.wrong.append(done.body)
            except (OSError, ValueError):  # it died in the middle, and nothing was acknowledged
                time.sleep(0.02)


def test_under_load_nothing_acknowledged_is_missing(tmp_path):
    """NACRE_KILLS is how often; 50 take two minutes."""
    with Daemon(tmp_path) as daemon:
        boxes = [Sandbox(daemon, timeout=3600) for _ in range(4)]
        loads = [Load(daemon, box) for box in boxes]
        for load in loads:
            load.start()
        chance = random.Random(815)
        for _ in range(KILLS):
            time.sleep(0.2 + chance.random() * 0.5)
            daemon.die()
        for load in loads:
            load.stop = True
        for load in loads:
            load.join(60)
        assert not [wrong for load in loads for wrong in load.wrong]
        acknowledged = {identity for load in loads for identity in load.acknowledged}
        history, before = set(), 0
        while True:
            page = daemon.get(f"/v1/history?limit=1000&before={before}").json()
            history |= {row["id"] for row in page["executions"]}
            before = page["next"]
            if not before:
                break
        assert len(acknowledged) > 10 * KILLS and not acknowledged - history
        assert {found["id"] for found in daemon.get("/v1/sandboxes").json()["sandboxes"]} == {box.id for box in boxes}
        assert daemon.get("/v1/audit/verify").json()["ok"]
