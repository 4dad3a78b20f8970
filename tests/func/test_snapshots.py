"""Snapshots of sandboxes: kept over restarts, put back, and what others begin with; within quotas, and each tenant's own."""

import json
import os
import signal
import subprocess
import threading
import time

from conftest import NACRE, open_way
from serving import Daemon
from test_sandboxes import USER, Sandbox, daemon, sandbox  # noqa: F401: fixtures


def keep(box, **body):
    answer = box.ask("POST", "/snapshots", body)
    assert answer.status == 201, answer.body
    assert answer.headers["location"] == f"/v1/snapshots/{answer.json()['id']}"
    return answer.json()


def restore(box, snapshot):
    return box.ask("POST", "/restore", {"snapshot": snapshot})


def files_of(daemon):  # noqa: F811
    return sorted(os.listdir(f"{daemon.state}/snapshots"))


def test_kept_and_put_back(daemon, sandbox):  # noqa: F811
    sandbox.run("mkdir d; echo one >d/f; ln -s d/f s; echo t >/tmp/t; chmod 700 d/f; head -c 5000000 /dev/urandom >big; sha256sum big >sum")
    kept = keep(sandbox, name="before")
    assert kept["name"] == "before" and kept["sandbox"] == sandbox.id and kept["size"] > 5000000 and kept["id"].startswith("sn_")
    assert daemon.get(f"/v1/snapshots/{kept['id']}").json() == kept
    assert kept in daemon.get("/v1/snapshots").json()["snapshots"]
    assert keep(sandbox)["id"] == kept["id"]  # equal files have one name
    sandbox.run("echo two >d/f; rm s; echo new >new; mkdir -p deep/er; echo u >/tmp/u; chmod 0 deep")
    assert restore(sandbox, kept["id"]).status == 204
    assert sandbox.run("ls; cat d/f s; ls /tmp; stat -c %a d/f; sha256sum -c sum")["stdout"] == "big\nd\ns\nsum\none\none\nt\n700\nbig: OK\n"
    # others begin with it, as many as there are
    for _ in range(2):
        other = Sandbox(daemon, snapshot=kept["id"])
        assert other.run("cat s /tmp/t; sha256sum -c sum")["stdout"] == "one\nt\nbig: OK\n"
        other.ask("DELETE")
    assert daemon.ask("DELETE", f"/v1/snapshots/{kept['id']}").status == 204
    for answer in (daemon.get(f"/v1/snapshots/{kept['id']}"), restore(sandbox, kept["id"]), daemon.post("/v1/sandboxes", {"snapshot": kept["id"]}),
                   daemon.ask("DELETE", f"/v1/snapshots/{kept['id']}"), restore(sandbox, "../../etc/passwd"), daemon.post("/v1/sandboxes", {"snapshot": "sn_"})):
        assert answer.status in (400, 404), answer.body
    assert kept["id"] not in files_of(daemon)


def test_bad_requests(daemon, sandbox):  # noqa: F811
    kept = keep(sandbox)
    for body in ({"nope": 1}, {"name": 1}, {"name": "x" * 300}, [], {"name": "a", "b": 1}):
        assert sandbox.ask("POST", "/snapshots", body).status == 400, body
    for body in ({}, {"snapshot": 1}, {"snapshot": kept["id"], "x": 1}, []):
        assert sandbox.ask("POST", "/restore", body).status == 400, body
    assert daemon.post("/v1/sandboxes", {"snapshot": 5}).status == 400
    running = sandbox.run("sleep 60", background=True)
    assert restore(sandbox, kept["id"]).status == 409
    sandbox.ask("DELETE", f"/commands/{running['id']}")
    sandbox.wait(running["id"])
    assert sandbox.ask("POST", "/pause").status == 200
    assert sandbox.ask("POST", "/snapshots", {}).status == 409 and restore(sandbox, kept["id"]).status == 409


def test_a_sandbox_that_is_too_small_for_it(daemon, sandbox):  # noqa: F811
    sandbox.run("head -c 8000000 /dev/zero >big")
    kept = keep(sandbox)
    before = len(daemon.get("/v1/sandboxes").json()["sandboxes"])
    answer = daemon.post("/v1/sandboxes", {"snapshot": kept["id"], "limits": {"disk_mb": 2}})
    assert answer.status == 507, answer.body
    time.sleep(0.3)
    assert len(daemon.get("/v1/sandboxes").json()["sandboxes"]) == before
    sandbox.run("truncate -s 9G sparse")
    answer = sandbox.ask("POST", "/snapshots", {})
    assert answer.status == 413 and "sparse" in answer.json()["detail"]
    assert not [name for name in files_of(daemon) if name.startswith("fresh")]


def test_certificates_of_a_door_are_nobodys_files(daemon):  # noqa: F811
    """The list that a sandbox with a network trusts is the daemon's: neither kept, nor put back, nor removed."""
    box = Sandbox(daemon, network={"allow": ["example.com"]})
    had = box.run("ls -A")["stdout"]
    box.run("echo x >f")
    kept = keep(box)
    plain = Sandbox(daemon, snapshot=kept["id"])
    assert plain.run("ls -A")["stdout"] == "f\n"
    assert restore(box, kept["id"]).status == 204 and box.run("ls -A")["stdout"] == had + "f\n"


def test_kept_over_restarts(tmp_path):
    with Daemon(tmp_path) as daemon:  # noqa: F811
        box = Sandbox(daemon)
        box.run("echo pearl >f")
        kept = [keep(box)]
        box.run("echo diver >g")
        kept.append(keep(box, name="second"))
        box.run("head -c 300000000 /dev/zero >large")
        thread = threading.Thread(target=lambda: box.ask("POST", "/snapshots", {}))
        thread.start()
        until = time.monotonic() + 10
        while len(files_of(daemon)) < 3 and time.monotonic() < until:
            time.sleep(0.005)
        assert any(name.startswith("fresh") for name in files_of(daemon))
        os.kill(daemon.process.pid, signal.SIGKILL)  # of all of it, in the middle of a third
        thread.join()
        daemon.process.wait(30)
    damaged = f"{daemon.state}/snapshots/sn_{'0' * 32}"
    open(damaged, "wb").write(b"{}" + bytes(5000))
    open(f"{daemon.state}/snapshots/other", "w").close()
    with Daemon(tmp_path) as daemon:  # noqa: F811
        assert daemon.get("/v1/snapshots").json()["snapshots"] == kept
        assert files_of(daemon) == sorted(["other", f"sn_{'0' * 32}", *(found["id"] for found in kept)])
        assert Sandbox(daemon, snapshot=kept[1]["id"]).run("cat f g")["stdout"] == "pearl\ndiver\n"


def test_tenants_quotas_and_the_journal(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text("quotas:\n  storage_mb: 3\ntenants:\n  two: {storage_mb: 0}\n")
    with Daemon(tmp_path, config=config) as daemon:  # noqa: F811
        one, two, admin = (daemon.key("--tenant", name, "--role", role) for name, role in (("one", "execute"), ("two", "execute"), ("all", "admin")))
        reader = daemon.key("--tenant", "one", "--role", "read")
        boxes = [Sandbox(daemon, key=key) for key in (one, two)]
        for box in boxes:
            box.run("echo pearl >f; touch -d @0 f . /tmp")
        kept = [keep(box) for box in boxes]
        assert kept[0]["sha256"] == kept[1]["sha256"] and kept[0]["id"] != kept[1]["id"]
        assert [[found["id"] for found in daemon.get("/v1/snapshots", key=key).json()["snapshots"]] for key in (one, two, admin)] == \
            [[kept[0]["id"]], [kept[1]["id"]], [found["id"] for found in kept]]
        other = f"/v1/snapshots/{kept[1]['id']}"
        assert [daemon.get(other, key=one).status, daemon.ask("DELETE", other, key=one).status, restore(boxes[0], kept[1]["id"]).status,
                daemon.post("/v1/sandboxes", {"snapshot": kept[1]["id"]}, key=one).status] == [404] * 4
        assert daemon.post(boxes[1].path("/restore"), {"snapshot": kept[0]["id"]}, key=one).status == 404
        assert daemon.post(boxes[1].path("/snapshots"), {}, key=one).status == 404
        assert daemon.post(boxes[0].path("/snapshots"), {}, key=reader).status == daemon.ask("DELETE", f"/v1/snapshots/{kept[0]['id']}", key=reader).status == 403
        # what a tenant may keep
        for box in boxes:
            box.run("head -c 2000000 /dev/urandom >big")
            keep(box)
            box.run("head -c 2000000 /dev/urandom >big")
        refused = boxes[0].ask("POST", "/snapshots", {})
        assert refused.status == 429 and refused.json()["field"] == "storage_mb" and "retry-after" not in refused.headers
        keep(boxes[1])
        for found in daemon.get("/v1/snapshots", key=one).json()["snapshots"]:
            assert daemon.ask("DELETE", f"/v1/snapshots/{found['id']}", key=one).status == 204
        last = keep(boxes[0])
        assert restore(boxes[0], last["id"]).status == 204
        assert sorted(files_of(daemon)) == sorted(found["id"] for found in daemon.get("/v1/snapshots", key=admin).json()["snapshots"])
    lines = subprocess.run([str(NACRE), "audit", "log", "--kind", "audit", "--json"], env=daemon.env, capture_output=True, text=True, check=True).stdout
    events = [json.loads(line).get("event") for line in lines.splitlines()]
    assert [events.count(f"s{name}") for name in ("napshot.created", "napshot.deleted", "andbox.restored")] == [6, 2, 1]


def test_so_many_and_no_more(tmp_path):
    with Daemon(tmp_path) as daemon:  # noqa: F811
        box = Sandbox(daemon)
        for i in range(100):
            assert box.ask("PUT", "/files?path=/workspace/f", str(i).encode(), headers={"Content-Type": "text/plain"}).status == 204
            keep(box)
        box.run("echo more >f")
        refused = box.ask("POST", "/snapshots", {})
        assert refused.status == 429 and (refused.json()["code"], refused.json()["field"]) == ("quota", "snapshots"), refused.body


def test_clients_that_hang_up(daemon, sandbox):  # noqa: F811
    sandbox.run("head -c 300000000 /dev/zero >large")
    before, boxes = files_of(daemon), len(daemon.get("/v1/sandboxes").json()["sandboxes"])
    client = daemon.connect()
    client.sendall(f"POST {sandbox.path('/snapshots')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n".encode())
    time.sleep(0.1)
    client.close()
    time.sleep(1)
    assert files_of(daemon) == before
    kept = keep(sandbox)
    body = json.dumps({"snapshot": kept["id"]}).encode()
    client = daemon.connect()
    client.sendall(f"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    time.sleep(0.15)
    client.close()
    time.sleep(1)
    assert len(daemon.get("/v1/sandboxes").json()["sandboxes"]) == boxes
    assert daemon.ask("DELETE", f"/v1/snapshots/{kept['id']}").status == 204


def test_an_ordinary_users_daemon(programs, tmp_path_factory):
    home = tmp_path_factory.mktemp("user")
    os.chown(home, 1000, 1000)
    open_way(home)
    with Daemon(home, prefix=USER, program=programs / "nacre") as daemon:  # noqa: F811
        box = Sandbox(daemon)
        box.run("echo pearl >f")
        kept = keep(box)
        box.run("rm f")
        assert restore(box, kept["id"]).status == 204 and box.run("cat f")["stdout"] == "pearl\n"
        assert Sandbox(daemon, snapshot=kept["id"]).run("cat f")["stdout"] == "pearl\n"
        assert os.stat(f"{daemon.state}/snapshots/{kept['id']}").st_mode & 0o777 == 0o600


def test_a_daemon_that_dies_while_a_sandbox_is_filled(tmp_path):
    """Nobody was told of it: it is no sandbox with half of its files. Snapshots are all there."""
    with Daemon(tmp_path) as daemon:  # noqa: F811
        box = Sandbox(daemon)
        box.run("head -c 300000000 /dev/zero >large")
        kept = keep(box)
        thread = threading.Thread(target=lambda: daemon.post("/v1/sandboxes", {"snapshot": kept["id"]}))
        thread.start()
        until = time.monotonic() + 10
        while len(daemon.get("/v1/sandboxes").json()["sandboxes"]) < 2 and time.monotonic() < until:
            time.sleep(0.002)
        daemon.die()
        thread.join()
        until = time.monotonic() + 5
        while len(daemon.get("/v1/sandboxes").json()["sandboxes"]) > 1 and time.monotonic() < until:
            time.sleep(0.05)
        assert [found["id"] for found in daemon.get("/v1/sandboxes").json()["sandboxes"]] == [box.id]
        whole = Sandbox(daemon, snapshot=kept["id"])
        daemon.die()
        assert whole.run("stat -c %s large")["stdout"] == "300000000\n" and daemon.get("/v1/snapshots").json()["snapshots"] == [kept]


def test_a_slow_disk_holds_nobody_up(tmp_path):
    """fdatasync() is a thread's, which is locked in like the others; who hangs up meanwhile leaves nothing."""
    with Daemon(tmp_path) as own:
        for task in os.listdir(f"/proc/{own.pid}/task"):
            status = open(f"/proc/{own.pid}/task/{task}/status").read()
            assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
            assert "Seccomp:\t2" in status or b"__asan_init" in NACRE.read_bytes()  # which loads none
        box = Sandbox(own)
        box.run("echo one >f")
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", tmp_path / "trace", "-e", "inject=fdatasync:delay_enter=1500000", "-e", "trace=fdatasync",
                                   "-p", str(own.pid)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        try:
            kept = {}
            saving = threading.Thread(target=lambda: kept.update(keep(box)))
            saving.start()
            slowest = 0
            while saving.is_alive():
                began = time.monotonic()
                assert own.get("/v1/version").status == 200
                slowest = max(slowest, time.monotonic() - began)
            assert kept["id"] in files_of(own) and slowest < 0.7, slowest
            assert "fdatasync" in (tmp_path / "trace").read_text()
            box.run("echo two >f")
            with own.connect() as client:
                client.sendall(f"POST {box.path('/snapshots')} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               "Content-Length: 2\r\n\r\n{}".encode())
                time.sleep(0.7)
            until = time.monotonic() + 10
            while files_of(own) != [kept["id"]]:
                assert time.monotonic() < until, files_of(own)
                time.sleep(0.05)
        finally:
            tracer.terminate()
            tracer.wait()
