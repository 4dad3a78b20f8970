"""Which sandboxes there are, on disk: written before anybody is told of one, read by the next daemon, and told of once when they are lost."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest

from conftest import NACRE
from serving import Daemon
from test_sandboxes import Sandbox
from test_serve_faults import fill, is_problem, small_disk  # noqa: F401: a fixture

KILLS = int(os.environ.get("NACRE_KILLS", "10"))
LOST = "sandboxes of the daemon before are lost: what held their boxes has died"


def records(daemon):
    """What is on disk, by id."""
    where = f"{daemon.state}/sandboxes"
    return {name: json.load(open(f"{where}/{name}")) for name in os.listdir(where) if name.startswith("sb_")}


def settled(daemon, wanted, seconds=10):
    """Whether there are these records, and no others, in a while."""
    def found():
        return {name for name in os.listdir(f"{daemon.state}/sandboxes") if name.startswith("sb_")}
    until = time.monotonic() + seconds
    while found() != wanted and time.monotonic() < until:
        time.sleep(0.02)
    return found() == wanted


def told(daemon):
    """The last lines of sandboxes in the journal, by id."""
    lines = subprocess.run([NACRE, "audit", "log", "--json"], env=daemon.env, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in map(json.loads, lines.splitlines()):
        if line.get("event") in ("sandbox.gone", "sandbox.created"):
            found.setdefault(line["body"]["id"], []).append(line)
    return found


def gone(daemon, identity):
    return [line["body"] for line in told(daemon).get(identity, []) if line["event"] == "sandbox.gone"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("registry")) as made:
        yield made


def test_what_is_written_down(daemon):
    box = Sandbox(daemon, labels={"a": "b"}, env={"KEPT": "yes"}, timeout=600, limits={"memory_mb": 128})
    found = records(daemon)[box.id]  # at once: it was there before we were told
    assert found["version"] == 1 and found["id"] == box.id and found["tenant"] == "" and found["tier"] == "container"
    assert found["holder"] == 0 and found["box"] >> 56 == 0 and found["created"] == box.value["created"]
    assert found["spec"] == {"labels": {"a": "b"}, "env": {"KEPT": "yes"}, "timeout": 600, "limits": {"memory_mb": 128}}
    assert not found["paused"] and not found["filling"] and abs(found["expires"] - time.time() - 600) < 5
    status = os.stat(f"{daemon.state}/sandboxes/{box.id}")
    assert status.st_mode & 0o777 == 0o600 and os.stat(f"{daemon.state}/sandboxes").st_mode & 0o777 == 0o700
    assert box.ask("POST", "/pause").status == 200 and box.ask("POST", "/extend", {"timeout": 5000}).status in (200, 404)
    until = time.monotonic() + 10
    while not records(daemon)[box.id]["paused"] and time.monotonic() < until:
        time.sleep(0.02)
    assert records(daemon)[box.id]["paused"]
    assert box.ask("DELETE").status == 204 and settled(daemon, set())
    assert len(gone(daemon, box.id)) == 1


def test_no_secret_is(daemon):
    value = "canary-of-a-secret-20261119"
    made = daemon.post("/v1/sandboxes", {"network": {"allow": ["nowhere.invalid"]}, "network_access": True,
                                         "secrets": {"TOKEN": {"value": value, "host": "nowhere.invalid"}}})
    for name in os.listdir(f"{daemon.state}/sandboxes"):
        assert value not in open(f"{daemon.state}/sandboxes/{name}").read()
    if made.status == 201:
        identity = made.json()["id"]
        assert records(daemon)[identity]["spec"]["secrets"]["TOKEN"]["value"] == "handed over to nacre-egress"
        daemon.ask("DELETE", f"/v1/sandboxes/{identity}")
    assert settled(daemon, set())


def test_a_worker_that_dies_leaves_them_as_they_are(daemon):
    boxes = [Sandbox(daemon, labels={"n": str(n)}) for n in range(3)]
    before = records(daemon)
    daemon.die()
    assert records(daemon) == before
    assert {box.run("echo here")["stdout"] for box in boxes} == {"here\n"}
    for box in boxes:
        assert box.ask("DELETE").status == 204
    assert settled(daemon, set()) and [len(gone(daemon, box.id)) for box in boxes] == [1, 1, 1]


def test_what_is_lost_is_told_once(tmp_path):
    """Spawner, worker and all: the next daemon finds the records, and nobody has the boxes."""
    with Daemon(tmp_path) as daemon:
        keys = [daemon.key("--tenant", name, "--role", "execute") for name in ("one", "two")]
        boxes = [Sandbox(daemon, key=key, labels={"of": key[-4:]}) for key in keys]
        for pid in (daemon.pid, daemon.process.pid):
            os.kill(pid, signal.SIGSTOP)
        for pid in (daemon.pid, daemon.process.pid):
            os.kill(pid, signal.SIGKILL)
        daemon.process.wait(20)
        assert set(records(daemon)) == {box.id for box in boxes}
    for _ in range(2):  # the second time there is nothing to tell any more
        with Daemon(tmp_path) as daemon:
            assert settled(daemon, set())
            for box, tenant in zip(boxes, ("one", "two")):
                until = time.monotonic() + 10
                while not gone(daemon, box.id) and time.monotonic() < until:
                    time.sleep(0.05)
                body, = gone(daemon, box.id)
                assert (body["state"], body["tenant"], body["error"]) == ("lost", tenant, "What held its box has died")
                assert body["labels"] == box.value["labels"] and body["created"] == box.value["created"]
                assert daemon.get(box.path(), key=box.key).status == 404
            admin = daemon.key("--role", "admin")
            assert f"nacre_sandboxes_lost_total {0 if _ else 2}\n".encode() in daemon.get("/metrics", key=admin).body
            said = [line["message"] for line in daemon.log() if LOST in line["message"]]
            assert said == ([f"2 {LOST}"] if _ == 0 else [])


def test_the_next_daemon_and_the_worker_that_is_left_tell_once(tmp_path):
    """The spawner is killed: its worker answers what is open for up to two seconds, while the next daemon begins, and both know of the sandbox."""
    with Daemon(tmp_path, respawn=True) as daemon:
        box = Sandbox(daemon)
        with daemon.connect() as client:  # an answer that never ends, so that it takes its two seconds
            made = box.run("sleep 60", background=True)
            client.sendall(f"GET {box.path('/commands/' + made['id'] + '/events')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(0.3)
            spawner, = subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout.split()
            os.kill(int(spawner), signal.SIGKILL)
            until = time.monotonic() + 20
            while sum(line["message"] == "Listening" for line in daemon.log()) < 2 and time.monotonic() < until:
                time.sleep(0.05)
            daemon.pid = [line["pid"] for line in daemon.log() if line["message"] == "Listening"][-1]
        while not gone(daemon, box.id) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)  # for a second one
        assert len(gone(daemon, box.id)) == 1 and records(daemon) == {}
        assert Sandbox(daemon).run("echo well")["stdout"] == "well\n"


def test_killed_at_any_moment(tmp_path):
    """Worker, spawner, or both, while two tenants make and destroy: each that was acknowledged has one end in the journal, no more and no less."""
    chance = random.Random(7)
    acknowledged, destroyed = {}, set()
    with Daemon(tmp_path) as daemon:
        keys = {name: daemon.key("--tenant", name, "--role", "execute") for name in ("one", "two")}
    for turn in range(KILLS):
        daemon = Daemon(tmp_path)
        children = [(name, daemon, keys[name]) for name in keys]
        pids = []
        for name, server, key in children:
            pid = os.fork()
            if pid == 0:
                with open(f"{tmp_path}/made-{turn}-{name}", "a", buffering=1) as out:
                    try:
                        while True:
                            answer = server.post("/v1/sandboxes", {}, key=key)
                            if answer.status != 201:
                                continue
                            identity = answer.json()["id"]
                            out.write(f"made {identity}\n")
                            if server.ask("DELETE", f"/v1/sandboxes/{identity}", key=key).status == 204:
                                out.write(f"gone {identity}\n")
                            server.post("/v1/sandboxes", {}, key=key)
                    except BaseException:
                        os._exit(0)
            pids.append(pid)
        time.sleep(chance.uniform(0.05, 0.8))
        victims = chance.choice([[daemon.process.pid], [daemon.pid, daemon.process.pid], [daemon.process.pid, daemon.pid]])
        for victim in victims:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        daemon.process.wait(20)
        for pid in pids:
            os.waitpid(pid, 0)
        for name in keys:
            for line in open(f"{tmp_path}/made-{turn}-{name}"):
                what, identity = line.split()
                acknowledged[identity] = name
                if what == "gone":
                    destroyed.add(identity)
    with Daemon(tmp_path) as daemon:
        assert settled(daemon, set()) and not os.listdir(f"{daemon.state}/sandboxes")
        ends = {identity: [line["body"] for line in lines if line["event"] == "sandbox.gone"] for identity, lines in told(daemon).items()}
        assert acknowledged and set(acknowledged) <= set(ends)
        for identity, tenant in acknowledged.items():
            assert len(ends[identity]) == 1 and ends[identity][0]["tenant"] == tenant, (identity, ends[identity])


def test_a_full_disk_makes_none(tmp_path, small_disk):  # noqa: F811
    """Also where the disk fills up behind the back of whoever looked whether there is room."""
    with Daemon(tmp_path) as daemon:
        where = small_disk / "sandboxes"
        shutil.rmtree(where)  # the same for whoever writes there: ENOENT
        refused = daemon.post("/v1/sandboxes", {})
        assert refused.status == 500 and "Write the sandbox down" in refused.json()["detail"]
        assert daemon.get("/v1/sandboxes").json()["sandboxes"] == []
        filled = fill(small_disk)
        is_problem(daemon.post("/v1/sandboxes", {}), 507, "state_full")
        filled.unlink()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"), reason="needs root and strace")
def test_a_slow_disk_holds_up_whoever_makes_one_and_nobody_else(tmp_path):
    with Daemon(tmp_path) as daemon:
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", tmp_path / "trace", "-e", "inject=fsync:delay_enter=1500000", "-e", "trace=fsync", "-p", str(daemon.pid)],
                                  stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        try:
            made = []
            making = threading.Thread(target=lambda: made.append(daemon.post("/v1/sandboxes", {})))
            making.start()
            began, slowest = time.monotonic(), 0
            while making.is_alive():
                asked = time.monotonic()
                assert daemon.get("/v1/version").status == 200
                slowest = max(slowest, time.monotonic() - asked)
            assert made[0].status == 201 and time.monotonic() - began > 1.4 and slowest < 0.7
        finally:
            tracer.terminate()
            tracer.wait()


def test_records_that_somebody_else_wrote(tmp_path):
    """What is none is removed and said, what is too new is left, and nothing of it does harm."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        good = records(daemon)[box.id]
    where = f"{tmp_path}/state/sandboxes"
    names = [f"sb_{n:032x}" for n in range(12)]
    texts = {
        names[0]: "", names[1]: "{", names[2]: json.dumps({**good, "id": names[3]}), names[3]: json.dumps({**good, "id": names[3], "tenant": "../x"}),
        names[4]: json.dumps({**good, "id": names[4], "more": 1}), names[5]: json.dumps({**good, "id": names[5], "version": 2, "more": 1}),
        names[6]: json.dumps({**good, "id": names[6], "version": 9}), names[7]: "[" * 100000,
        names[8]: json.dumps({**good, "id": names[8], "spec": {"what": 1}, "holder": 3, "box": 3 << 56 | 7}), "fresh_x": "half",
    }
    for name, text in texts.items():
        with open(f"{where}/{name}", "w") as file:
            file.write(text)
    os.symlink("/etc/passwd", f"{where}/{names[9]}")
    os.mkfifo(f"{where}/{names[10]}")
    with open(f"{where}/{names[11]}", "w") as file:
        file.truncate(3 << 20)
    for name in [*texts, names[10], names[11]]:
        shutil.chown(f"{where}/{name}", 1879048191, 1879048191) if os.geteuid() == 0 else None
    with Daemon(tmp_path) as daemon:
        assert sorted(os.listdir(where)) == [names[5], names[6], names[8]] and settled(daemon, {names[6], names[8]})  # the last one waits for a holder that does not come
        said = [line["message"] for line in daemon.log()]
        for number in (0, 1, 2, 3, 4, 7, 9, 10, 11):
            assert [text for text in said if names[number] in text and "is removed" in text], (number, said)
        assert [text for text in said if names[6] in text and "is left" in text]
        assert gone(daemon, names[5])[0]["state"] == "lost" and not gone(daemon, names[8])
        assert Sandbox(daemon).run("echo well")["stdout"] == "well\n"


def test_whose_holder_may_still_come_is_waited_for(tmp_path):
    """The record of a box of another holder, which has not come back yet: its owner sees it, and nobody else."""
    with Daemon(tmp_path) as daemon:
        keys = {name: daemon.key("--tenant", name, "--role", "execute") for name in ("one", "two")}
        box = Sandbox(daemon, key=keys["one"], labels={"a": "b"})
        good = records(daemon)[box.id]
    identity = f"sb_{5:032x}"
    path = f"{tmp_path}/state/sandboxes/{identity}"
    with open(path, "w") as file:
        json.dump({**good, "id": identity, "holder": 1, "box": 1 << 56 | 5, "expires": int(time.time()) + 300}, file)
    if os.geteuid() == 0:
        shutil.chown(path, 1879048191, 1879048191)
    with Daemon(tmp_path) as daemon:
        is_problem(daemon.get(f"/v1/sandboxes/{identity}", key=keys["one"]), 503, "unavailable", "has not come back yet")
        assert daemon.get(f"/v1/sandboxes/{identity}", key=keys["two"]).status == 404
        is_problem(daemon.post(f"/v1/sandboxes/{identity}/commands", {"command": "true"}, key=keys["one"]), 503, "unavailable")
        assert list(records(daemon)) == [identity]
        until = time.monotonic() + 40
        while daemon.get(f"/v1/sandboxes/{identity}", key=keys["one"]).status == 503 and time.monotonic() < until:
            time.sleep(0.3)
        assert daemon.get(f"/v1/sandboxes/{identity}", key=keys["one"]).status == 404
        assert records(daemon) == {} and [body["state"] for body in gone(daemon, identity)] == ["lost"]


def test_two_daemons_do_not_share_a_state(tmp_path):
    with Daemon(tmp_path) as daemon:
        done = subprocess.run([NACRE, "serve", "--listen", "127.0.0.1:0"], env=daemon.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 125 and "Another daemon has this state directory" in done.stderr
        assert daemon.get("/healthz").status == 200
