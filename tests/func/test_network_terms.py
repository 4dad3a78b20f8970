"""Terms of a network: what happens over a budget, what a policy lets lead inside, what is written down."""

import os
import re
import signal
import subprocess
import time

import pytest

from conftest import NACRE
from serving import Daemon
from test_network import Host, host  # noqa: F401: a fixture
from test_sandboxes import Sandbox


@pytest.fixture(scope="module")
def inner():
    made = Host({"/page": b"inside\n"}, "127.0.0.1")
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, inner):
    home = tmp_path_factory.mktemp("terms")
    policies = home / "config" / "policies"
    policies.mkdir(parents=True)
    port = inner.server_address[1]
    (policies / "ends.yaml").write_text("inherits: standard\nnetwork:\n  over_budget: end\n")
    (policies / "outer.yaml").write_text(f"inherits: standard\nnetwork:\n  allow: ['localhost:{port}']\n")
    (policies / "inner.yaml").write_text(f"inherits: standard\nnetwork:\n  inner: ['localhost:{port}']\n")
    with Daemon(home, config=home / "config") as made:
        yield made


def state(box):
    answer = box.ask("GET")
    return answer.json()["state"] if answer.status == 200 else answer.status


def await_state(box, wanted):
    until = time.monotonic() + 10
    while state(box) != wanted and time.monotonic() < until:
        time.sleep(0.05)
    return state(box)


def fetch(name, times=1):
    return f"for i in $(seq {times}); do curl -sS -m 5 http://{name}/page; done"


def test_a_sandbox_over_budget_is_frozen_until_somebody_raises_it(daemon, host):  # noqa: F811
    terms = {"allow": [host.name], "max_requests": 2, "over_budget": "freeze"}
    box = Sandbox(daemon, network=terms)
    assert box.run(fetch(host.name, 2))["stdout"] == "a page\n" * 2 and state(box) == "running"
    late = box.run(fetch(host.name) + "; sleep 0.3; echo went on", background=True)
    assert await_state(box, "paused") == "paused" and len(host.asked) == 2
    assert box.command(late["id"])["state"] == "running"
    assert box.ask("POST", "/network", {**terms, "max_requests": 4}).status == 200
    assert box.ask("POST", "/resume").status == 200
    assert box.wait(late["id"])["stdout"].endswith("went on\n")
    assert box.run(fetch(host.name))["stdout"] == "a page\n" and state(box) == "running"
    box.ask("DELETE")


def test_a_sandbox_over_budget_is_ended(daemon, host):  # noqa: F811
    """The policy asks for more than the request, which cannot ask for less."""
    box = Sandbox(daemon, policy="ends", network={"allow": [host.name], "max_requests": 1, "over_budget": "refuse"})
    box.run(fetch(host.name, 3) + "; sleep 60", background=True)
    assert await_state(box, 404) == 404 and len(host.asked) == 1


def test_a_sandbox_over_budget_is_refused(daemon, host):  # noqa: F811
    box = Sandbox(daemon, network={"allow": [host.name], "max_requests": 1})
    assert "network.requests" in box.run(fetch(host.name, 2))["stdout"] and state(box) == "running"
    box.ask("DELETE")


@pytest.mark.parametrize("how, did, seconds", [("end", "ended", 0), ("freeze", "froze", 3)])
def test_an_execution_over_budget(daemon, host, how, did, seconds):  # noqa: F811
    """A frozen one stands still until its time is up: nothing of it goes on, not even for the moment in which it is ended."""
    began = time.monotonic()
    many = "i=0; while [ $i -lt 12 ]; do (sleep 2; echo went on) & i=$((i+1)); done"
    reply = daemon.execute(f"{many}; {fetch(host.name, 2)}; wait; echo went on", "shell", timeout=4,
                           network={"allow": [host.name], "max_requests": 1, "over_budget": how}).json()
    assert reply["status"] == "blocked" and f"{did} it" in reply["error"] and "[network.requests]" in reply["error"], reply
    assert "went on" not in reply["output"] and time.monotonic() - began >= seconds


def test_inner_hosts_of_a_policy(daemon, inner):
    """A name that leads to this host is refused unless the policy lists it as inner; a request within that may name it."""
    name = f"localhost:{inner.server_address[1]}"
    code = f"curl -sS -m 5 -x http://127.0.0.1:888 --noproxy '' http://{name}/page"
    for policy, wanted, good in (("outer", {"network_access": True}, False), ("outer", {"network": {"allow": [name]}}, False),
                                 ("inner", {"network_access": True}, True), ("inner", {"network": {"allow": [name]}}, True)):
        reply = daemon.execute(code, "shell", policy=policy, **wanted).json()
        assert ("inside" in reply["output"], "network.private" in reply["output"]) == (good, not good), (policy, wanted, reply)
    reply = daemon.execute("true", "shell", policy="inner", network={"allow": ["localhost:1"]}).json()
    assert reply["status"] == "blocked" and "network.allow" in reply["error"]


def test_decisions_are_written_down(daemon, host):  # noqa: F811
    reply = daemon.execute(fetch(host.name, 3) + "; curl -s http://example.org/; curl -s http://example.org/", "shell",
                           network={"allow": [host.name]}).json()
    record = daemon.get(f"/v1/history/{reply['receipt']['id']}").json()
    found = record["decisions"]
    assert found["uncounted"] == 0
    assert [(d["host"], d["decision"], d["count"]) for d in found["destinations"]] == [
        ("127.0.0.2", "network.allowed", 3), ("example.org", "network.not-listed", 2)]
    assert found["destinations"][0]["rule"] == host.name and found["destinations"][0]["address"] == "127.0.0.2"
    assert "decisions" not in daemon.get("/v1/history/" + daemon.execute("true", "shell").json()["receipt"]["id"]).json()


def test_many_decisions_are_bounded(daemon, host):  # noqa: F811
    reply = daemon.execute("for i in $(seq 60); do curl -s http://h$i.example.org/ >/dev/null; done", "shell", network={"allow": [host.name]}).json()
    found = daemon.get(f"/v1/history/{reply['receipt']['id']}").json()["decisions"]
    assert len(found["destinations"]) == 32 and found["uncounted"] == 28
    assert len([d for d in reply["denials"] if d["layer"] == "egress"]) == 32


def test_decisions_of_a_sandbox_are_written_down(tmp_path, host):  # noqa: F811
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon, network={"allow": [host.name]})
        box.run(fetch(host.name) + "; curl -s http://example.org/")
        box.ask("DELETE")
        assert await_state(box, 404) == 404
        time.sleep(0.5)
    lines = subprocess.run([str(NACRE), "audit", "log", "--kind", "audit", "--json"], env=daemon.env, capture_output=True, text=True, check=True).stdout
    gone = [line for line in lines.splitlines() if "sandbox.gone" in line]
    assert len(gone) == 1 and "network.not-listed" in gone[0] and "127.0.0.2" in gone[0], lines


def test_without_nacre_egress_there_is_no_network(tmp_path, host):  # noqa: F811
    """Its death is no way out: what runs loses its network, and nobody gets one until there is another."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon, network={"allow": [host.name]})
        assert box.run(fetch(host.name))["stdout"] == "a page\n"
        os.kill(daemon.aides()["keeper"], signal.SIGSTOP)  # who would start it again
        os.kill(daemon.aides()["egress"], signal.SIGKILL)
        time.sleep(0.3)
        assert box.run(fetch(host.name) + " || curl -sS -m 2 -x '' http://" + host.name + "/page")["exit_code"] != 0 and len(host.asked) == 1
        reply = daemon.execute(fetch(host.name), "shell", network={"allow": [host.name]}).json()
        assert reply["status"] == "blocked" and "nacre-egress" in reply["error"] and len(host.asked) == 1, reply
        assert daemon.execute("echo still here", "shell").json()["output"] == "still here\n"
        os.kill(daemon.aides()["keeper"], signal.SIGCONT)


def test_a_failed_reload_keeps_the_old_policy(tmp_path, host):  # noqa: F811
    policy = tmp_path / "config" / "policies" / "mine.yaml"
    policy.parent.mkdir(parents=True)
    policy.write_text(f"inherits: standard\nnetwork:\n  allow: ['{host.name}']\n")
    with Daemon(tmp_path, config=tmp_path / "config") as daemon:
        def ask():
            return daemon.execute(fetch(host.name) + "; curl -s http://example.org/", "shell", policy="mine", network_access=True).json()

        assert ask()["output"].startswith("a page\n")
        policy.write_text("inherits: standard\nnetwork:\n  allow: ['0x7f.1', example.org]\n")
        os.kill(daemon.pid, signal.SIGHUP)
        bad = daemon.wait_for_log("The configuration is bad, keeping the old one")
        assert "mine.yaml:3" in bad["reason"]
        reply = ask()
        assert reply["output"].startswith("a page\n") and "network.not-listed" in reply["output"], reply
        policy.write_text("inherits: standard\nnetwork:\n  allow: [example.org]\n")
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("The configuration was read again")
        assert "network.literal" in ask()["output"]


def test_metrics_have_what_went_through(tmp_path, host):  # noqa: F811
    def value(name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", daemon.get("/metrics").body.decode(), re.M)
        return float(found[1]) if found else None

    with Daemon(tmp_path) as daemon:
        assert value('nacre_network_requests_total{outcome="let_through"}') == 0
        box = Sandbox(daemon, network={"allow": [host.name]})
        box.run(fetch(host.name, 2) + "; curl -s http://example.org/")
        daemon.execute(fetch(host.name), "shell", network={"allow": [host.name]})
        until = time.monotonic() + 5
        while value('nacre_network_requests_total{outcome="let_through"}') < 3 and time.monotonic() < until:
            time.sleep(0.05)  # a door that is open is asked by who looks, and has answered when he looks again
        assert value('nacre_network_requests_total{outcome="let_through"}') == 3
        assert value('nacre_network_requests_total{outcome="denied"}') == 1 and value("nacre_network_connections_total") == 4
        assert value('nacre_network_bytes_total{direction="down"}') > 3 * len("a page\n")
        box.ask("DELETE")
        time.sleep(0.3)
        assert value('nacre_network_requests_total{outcome="let_through"}') == 3, "nothing counts twice"
