"""nacre serve: whoever works beside the daemon may hang (SIGSTOP): what depends on it ends in time and says so, everything else goes on."""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from serving import Daemon
from test_serve_aides import wait_for

NEEDS_NET = {"language": "shell", "code": "curl -s -m 3 http://example.org/; echo over", "network": {"allow": ["example.org"]}, "timeout": 5}


def up(daemon, name):
    return int(re.search(rf'nacre_aide_up{{aide="{name}"}} (\d)', daemon.ask("GET", "/metrics").body.decode())[1])


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, "--no-warm") as daemon:
        yield daemon


class stopped:
    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def test_the_egress(daemon):
    assert daemon.ask("POST", "/v1/execute", NEEDS_NET).json()["usage"]["network"] is not None
    with stopped(daemon.aides()["egress"]):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(daemon.ask, "POST", "/v1/execute", NEEDS_NET, timeout=60)
            while not first.done():  # nobody else waits
                assert daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 1"}, timeout=20).json()["output"] == "1\n"
        reply = first.result().json()
        assert reply["usage"]["network"] is None and reply["status"] in ("success", "timeout"), reply
        assert up(daemon, "egress") == 0
        refused = daemon.ask("POST", "/v1/execute", NEEDS_NET, timeout=20).json()
        assert refused["status"] == "blocked" and "nacre-egress" in refused["error"], refused
    wait_for(lambda: daemon.ask("GET", "/metrics") and up(daemon, "egress") == 1, 30)
    assert daemon.ask("POST", "/v1/execute", NEEDS_NET).json()["usage"]["network"] is not None


def test_the_recorder(daemon):
    with stopped(daemon.aides()["recorder"]):
        reply = daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 1"}, timeout=60).json()
        assert reply["output"] == "1\n" and "does not answer" in reply["receipt"]["error"], reply
        assert up(daemon, "recorder") == 0
        refused = daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 2"})
        assert refused.status == 503 and refused.json()["code"] == "no_recorder", refused.body
    wait_for(lambda: up(daemon, "recorder") == 1, 30)
    assert daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 3"}).json()["receipt"]["seq"]
    found = daemon.ask("GET", f"/v1/history/{reply['id']}").json()  # it wrote what it was told before
    assert found["status"] == "success" and daemon.ask("GET", "/v1/audit/verify").json()["ok"]


def children(pid):
    return [int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def test_the_analyst_and_its_children(daemon):
    analyst = daemon.aides()["analyst"]
    daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 1"})
    wait_for(lambda: len(children(analyst)) >= 2)
    for child in children(analyst):  # one that dies is replaced, and whoever asked it hears of nothing
        os.kill(child, signal.SIGKILL)
    assert daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 1"}).json()["output"] == "1\n"
    with stopped(analyst):  # those that are there go on
        assert daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 2"}).json()["output"] == "2\n"
        for child in children(analyst):
            os.kill(child, signal.SIGKILL)
        answer = daemon.ask("POST", "/v1/policy/analyse", {"language": "shell", "code": "echo"}, timeout=90)
        assert answer.status == 503 and answer.json()["code"] == "no_analysis", answer.body
        assert daemon.ask("GET", "/healthz").status == 200
    wait_for(lambda: daemon.ask("POST", "/v1/policy/analyse", {"language": "shell", "code": "echo"}, timeout=90).status == 200, 60)


def test_children_of_the_analyst_have_no_rights(daemon):
    daemon.ask("POST", "/v1/execute", {"language": "shell", "code": "echo 1"})
    analyst = daemon.aides()["analyst"]
    wait_for(lambda: len(children(analyst)) >= 2)
    for child in children(analyst):
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{child}/status").read_text().splitlines() if ":\t" in line)
        assert set(status["Uid"].split()) == {"1879048188"} and int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        held = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
        assert len(held) == 4 and len([name for name in held if name.startswith("socket:")]) == 1, held
        limits = pathlib.Path(f"/proc/{child}/limits").read_text()
        assert re.search(r"Max data size +335544320 ", limits) and re.search(r"Max core file size +1 ", limits)


def test_the_archive(daemon):
    """Its questions have two minutes: here is shown that nobody else waits for it."""
    with stopped(daemon.aides()["archive"]):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.ask, "GET", "/v1/history", timeout=60)
            for _ in range(20):
                assert daemon.ask("GET", "/healthz", timeout=5).status == 200
            os.kill(daemon.aides()["archive"], signal.SIGCONT)
            assert asked.result().status == 200


def test_the_spawner(daemon):
    """What boxes are asked for waits in a queue, and the loop does not."""
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        with stopped(daemon.process.pid):
            asked = [pool.submit(daemon.ask, "POST", "/v1/execute", {"language": "shell", "code": f"echo {i}", "args": ["x" * 15000]}, timeout=90) for i in range(40)]
            until = time.monotonic() + 3
            while time.monotonic() < until:
                began = time.monotonic()
                assert daemon.ask("GET", "/healthz", timeout=5).status == 200
                assert time.monotonic() - began < 2
        outputs = sorted(answer.result().json()["output"] for answer in asked)
    assert outputs == sorted(f"{i}\n" for i in range(40))


def test_what_is_acknowledged_is_begun(daemon):
    """A command in the background is acknowledged when the spawner has its order, so that it runs though the daemon dies."""
    box = daemon.ask("POST", "/v1/sandboxes", {}).json()["id"]
    order = {"command": ["sh", "-c", "sleep 300", *["x" * 1000] * 23], "background": True}  # few fit into a socket
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        with stopped(daemon.process.pid):
            asked = [pool.submit(daemon.ask, "POST", f"/v1/sandboxes/{box}/commands", order, timeout=60) for _ in range(30)]
            time.sleep(2)
            told = [answer.result().status for answer in asked if answer.done()]
            assert told.count(202) < 30, "all were acknowledged, though not all can have been taken"
        assert [answer.result().status for answer in asked] == [202] * 30
    daemon.die()
    assert daemon.ask("GET", f"/v1/sandboxes/{box}").json()["running"] == 30


def test_what_is_acknowledged_is_told_to_boxes(daemon):
    """Signals, ends and pauses as well; and whether a sandbox is paused is the same for the next daemon and for its box."""
    box = daemon.ask("POST", "/v1/sandboxes", {}).json()["id"]
    base = f"/v1/sandboxes/{box}"
    ids = [daemon.ask("POST", f"{base}/commands", {"command": "exec sleep 300", "background": True}).json()["id"] for _ in range(2)]
    order = {"command": ["sh", "-c", "sleep 300", *["x" * 1000] * 23], "background": True}  # few fit into a socket
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        with stopped(daemon.process.pid):
            fill = [pool.submit(daemon.ask, "POST", f"{base}/commands", order, timeout=60) for _ in range(30)]
            time.sleep(2)
            assert not all(answer.done() for answer in fill)
            acts = [pool.submit(daemon.ask, "POST", f"{base}/commands/{ids[0]}/signal", {"signal": "TERM"}, timeout=60),
                    pool.submit(daemon.ask, "DELETE", f"{base}/commands/{ids[1]}", timeout=60),
                    pool.submit(daemon.ask, "POST", f"{base}/pause", {}, timeout=60)]
            time.sleep(1)
            assert not any(answer.done() for answer in acts), "it was acknowledged, though nobody has been told"
            os.kill(daemon.pid, signal.SIGKILL)
        assert all(answer.result().status == 0 for answer in acts)
    wait_for(lambda: len([record for record in daemon.log() if record["message"] == "Listening"]) == 2, 20)
    daemon.pid = [record["pid"] for record in daemon.log() if record["message"] == "Listening"][-1]
    state = daemon.ask("GET", base).json()["state"]
    assert daemon.ask("GET", f"{base}/stats").json()["paused"] == (state == "paused")
    assert daemon.ask("POST", f"{base}/resume", {}).json()["state"] == "running"
    for act in (daemon.ask("POST", f"{base}/commands/{ids[0]}/signal", {"signal": "TERM"}), daemon.ask("DELETE", f"{base}/commands/{ids[1]}")):
        assert act.status == 202
    wait_for(lambda: not any(daemon.ask("GET", f"{base}/commands/{i}").json()["state"] == "running" for i in ids), 20)
