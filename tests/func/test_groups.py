"""Isolated networks: boxes of one group of one tenant reach each other by name, and nothing else."""

import json
import socket
import threading
import time

import pytest

from conftest import open_way
from serving import Daemon
from test_network import host  # noqa: F401: a fixture
from test_sandboxes import Sandbox

SERVER = "mkdir -p www && echo 'from {name}' > www/page && exec python3 -m http.server -d www --bind 127.0.0.1 8080"


def member(daemon, group, name, key=None):
    """A sandbox that serves a page with its name."""
    box = Sandbox(daemon, network={"mode": "isolated", "group": group, "name": name}, key=key)
    box.run(SERVER.format(name=name), background=True)
    return box


def fetch(box, target, *options):
    return box.run(f"curl -sS -m 5 {' '.join(options)} {target}")["stdout"]


def patient(box, target, *options):
    """The other's server may still be starting."""
    for _ in range(50):
        if "connect-failed" not in (got := fetch(box, target, *options)) and got:
            return got
        time.sleep(0.1)
    return got


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("groups")) as made:
        made.one, made.two = (made.key("--tenant", name) for name in ("one", "two"))
        yield made


@pytest.fixture(scope="module")
def boxes(daemon):
    made = {"alpha": member(daemon, "g", "alpha", daemon.one), "beta": member(daemon, "g", "beta", daemon.one),
            "other": member(daemon, "h", "other", daemon.one), "stranger": member(daemon, "g", "stranger", daemon.two)}
    yield made
    for box in made.values():
        box.ask("DELETE")


def test_members_reach_each_other_by_name(boxes):
    alpha, beta = boxes["alpha"], boxes["beta"]
    assert patient(alpha, "http://beta:8080/page") == "from beta\n" and patient(beta, "http://alpha:8080/page") == "from alpha\n"
    assert fetch(alpha, "http://beta:8080/page", "-p") == "from beta\n", "CONNECT"
    assert fetch(alpha, "http://beta:8080/page", "-x socks5h://127.0.0.1:888") == "from beta\n"
    assert fetch(alpha, "http://alpha:8080/page") == "from alpha\n", "itself"


def test_nobody_else_does(boxes):
    """Not another group, not another tenant's group of the same name, not under any name."""
    for asker, target in (("other", "alpha"), ("alpha", "other"), ("stranger", "alpha"), ("alpha", "stranger"), ("stranger", "beta")):
        patient(boxes[target], f"http://{target}:8080/page")
        assert "network.not-listed" in fetch(boxes[asker], f"http://{target}:8080/page"), (asker, target)
    for target in ("example.org", "alpha.g", "beta.g", "one/g"):
        assert "from" not in fetch(boxes["alpha"], f"http://{target}:8080/page")


def test_the_host_is_not_reached_that_way(boxes):
    """The name of another box leads into that box: what listens on the host's loopback is not there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(0.1)
        for target in (f"beta:{port}", f"127.0.0.1:{port}", f"localhost:{port}"):
            assert "network." in fetch(boxes["alpha"], f"http://{target}/", "-x http://127.0.0.1:888 --noproxy ''"), target
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_door_is_not_gone_through_twice(boxes):
    assert "network.not-listed" in fetch(boxes["alpha"], "http://beta:888/")


def test_a_name_is_one_box(daemon, boxes):
    wanted = {"network": {"mode": "isolated", "group": "g", "name": "beta"}}
    answer = daemon.post("/v1/sandboxes", wanted, key=daemon.one)
    assert answer.status == 403 and "'beta'" in answer.body.decode(), answer.body
    reply = daemon.execute("true", "shell", key=daemon.one, **wanted).json()
    assert reply["status"] == "blocked" and "'beta'" in reply["error"], reply
    # others may have it in groups of their own
    with_same = member(daemon, "g", "beta", daemon.two)
    assert patient(boxes["alpha"], "http://beta:8080/page") == "from beta\n"
    with_same.ask("DELETE")
    # and a name that has become free can be had
    gone = member(daemon, "g", "gamma", daemon.one)
    gone.ask("DELETE")
    again = member(daemon, "g", "gamma", daemon.one)
    assert patient(boxes["alpha"], "http://gamma:8080/page") == "from gamma\n"
    again.ask("DELETE")


def test_two_at_once_with_one_name(daemon):
    """Both were let in before either had its door: one of them gets the name."""
    answers = []
    wanted = {"network": {"mode": "isolated", "group": "race", "name": "same"}}
    threads = [threading.Thread(target=lambda: answers.append(daemon.post("/v1/sandboxes", wanted, key=daemon.one))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status == 201 for answer in answers) == [False, False, False, True], [a.body for a in answers]
    assert all("'same'" in answer.body.decode() for answer in answers if answer.status != 201)


def test_an_execution_is_a_member_too(daemon, boxes):
    patient(boxes["alpha"], "http://beta:8080/page")
    reply = daemon.execute("curl -sS http://beta:8080/page", "shell", key=daemon.one,
                           network={"mode": "isolated", "group": "g", "name": "visitor"}).json()
    assert reply["output"] == "from beta\n", reply
    assert reply["usage"]["network"]["hosts"][0]["host"] == "beta"


def test_visitors_come_and_go(boxes):
    """More of them, one after another and at once, than there are sockets for; and some where nobody listens."""
    alpha = boxes["alpha"]
    assert patient(alpha, "http://beta:8080/page") == "from beta\n"
    for _ in range(30):
        assert "network.connect-failed" in fetch(alpha, "http://beta:9/")
    got = alpha.run("for i in $(seq 40); do curl -sS -m 5 http://beta:8080/page; done")["stdout"]
    assert got == "from beta\n" * 40
    got = alpha.run("for i in $(seq 30); do curl -s -m 9 http://beta:8080/page & done; wait")["stdout"]
    assert got == "from beta\n" * 30, "who finds no room waits for it"
    assert fetch(alpha, "http://beta:8080/page") == "from beta\n"


def test_who_stays_keeps_others_out_for_a_while_only(boxes):
    """Twelve connections that say nothing: a thirteenth waits, and comes in when one of them goes."""
    alpha = boxes["alpha"]
    alpha.run("exec python3 -m http.server --bind 127.0.0.1 8181", background=True)
    hold = """
import socket, sys, time
held = []
for i in range(12):
    c = socket.create_connection(("127.0.0.1", 888)); c.sendall(b"CONNECT alpha:8181 HTTP/1.1\\r\\nHost: alpha:8181\\r\\n\\r\\n")
    assert b" 200 " in c.recv(999); held.append(c)
late = socket.create_connection(("127.0.0.1", 888)); late.sendall(b"CONNECT alpha:8181 HTTP/1.1\\r\\nHost: alpha:8181\\r\\n\\r\\n")
late.settimeout(1)
try: print(late.recv(999))
except TimeoutError: print("waits")
held.pop().close()
late.settimeout(5)
print(late.recv(999).split(b"\\r")[0].decode())
last = socket.create_connection(("127.0.0.1", 888)); last.sendall(b"CONNECT alpha:8181 HTTP/1.1\\r\\nHost: alpha:8181\\r\\n\\r\\n")
last.settimeout(20)
print(last.recv(999).split(b"\\r")[0].decode())
"""
    assert patient(alpha, "http://alpha:8181/")
    assert boxes["beta"].run(["python3", "-c", hold.replace("\\\\", "\\")])["stdout"] == "waits\nHTTP/1.1 200 Connection established\nHTTP/1.1 502 Bad Gateway\n"


def test_when_a_member_is_gone(daemon, boxes):
    late = member(daemon, "g", "late", daemon.one)
    assert patient(boxes["alpha"], "http://late:8080/page") == "from late\n"
    late.ask("DELETE")
    for _ in range(50):
        if "network.not-listed" in fetch(boxes["alpha"], "http://late:8080/page"):
            return
        time.sleep(0.1)
    raise AssertionError("it can still be reached")


@pytest.mark.parametrize("network, why", [
    ({"mode": "isolated"}, "group"), ({"mode": "isolated", "group": "g"}, "name"), ({"mode": "isolated", "name": "n"}, "group"),
    ({"group": "g", "name": "n"}, "isolated"), ({"mode": "isolated", "group": "g", "name": "n", "allow": ["example.org"]}, "allow"),
    ({"mode": "none", "allow": ["example.org"]}, "none"), ({"mode": "isolated", "group": "g/h", "name": "n"}, "group"),
    ({"mode": "isolated", "group": "g", "name": "a.b"}, "name"), ({"mode": "isolated", "group": "g", "name": "localhost"}, "name"),
    ({"mode": "isolated", "group": "g", "name": "Beta"}, "name"), ({"mode": "isolated", "group": "g", "name": "127"}, "name"),
    ({"mode": "bridge"}, "allowlist"), ({"over_budget": "explode", "allow": ["example.org"]}, "freeze")])
def test_what_is_no_network(daemon, network, why):
    answer = daemon.post("/v1/sandboxes", {"network": network}, key=daemon.one)
    assert answer.status == 400 and why in answer.body.decode(), answer.body


def test_the_mode_stays(daemon, boxes):
    """Of a sandbox that runs only the limits can be changed; and it can lose nothing by trying."""
    alpha = boxes["alpha"]
    own = {"mode": "isolated", "group": "g", "name": "alpha"}
    for change in ({"allow": ["example.org"]}, {**own, "name": "delta"}, {**own, "group": "h"}, {"mode": "none"}):
        assert alpha.ask("POST", "/network", change).status in (400, 403), change
    assert patient(alpha, "http://beta:8080/page") == "from beta\n"
    assert alpha.ask("POST", "/network", {**own, "mbps": 100}).status == 200
    assert fetch(alpha, "http://beta:8080/page") == "from beta\n" and patient(boxes["beta"], "http://alpha:8080/page") == "from alpha\n"


def test_mode_none_is_none(daemon):
    reply = daemon.execute("curl -sS -m 2 http://127.0.0.1:888/", "shell", key=daemon.one, network={"mode": "none"}).json()
    assert reply["usage"]["network"] is None and reply["status"] == "error"


def test_names_and_doors_outlive_a_daemon(tmp_path):
    """The daemon that is started again knows whose names are taken; members still reach each other, and budgets hold."""
    with Daemon(tmp_path) as daemon:
        alpha, beta = member(daemon, "g", "alpha"), member(daemon, "g", "beta")
        assert patient(alpha, "http://beta:8080/page") == "from beta\n"
        daemon.die()
        assert patient(alpha, "http://beta:8080/page") == "from beta\n"
        answer = daemon.post("/v1/sandboxes", {"network": {"mode": "isolated", "group": "g", "name": "beta"}})
        assert answer.status == 403 and "'beta'" in answer.body.decode(), answer.body
        own = {"mode": "isolated", "group": "g", "name": "alpha", "max_requests": 1, "over_budget": "freeze"}
        assert alpha.ask("POST", "/network", own).status == 200
        alpha.run("curl -s -m 5 http://beta:8080/page", background=True)
        for _ in range(100):
            if alpha.ask("GET").json()["state"] == "paused":
                break
            time.sleep(0.05)
        assert alpha.ask("GET").json()["state"] == "paused"
        beta.ask("DELETE")
        again = member(daemon, "g", "beta")
        assert patient(again, "http://beta:8080/page") == "from beta\n"
