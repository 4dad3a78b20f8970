"""What holds for executions holds for commands in sandboxes: metrics, the threat detector and its responses, denials, journal, quotas."""

import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import NACRE, ROOT
from serving import Daemon
from test_sandboxes import Sandbox

# refused calls at what holds a box, of several kinds
PROBE = """python3 - <<'P'
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(5):
    libc.unshare(0x10000000)
    libc.mount(None, None, None, 0, None)
    libc.syscall(321, 0, 0, 0)  # bpf
    libc.syscall(425, 8, 0)  # io_uring_setup
    libc.syscall(248, b"user", b"d", b"p", 1, -3)  # add_key
    libc.ptrace(16, 1, 0, 0)
    libc.syscall(323, 0)  # userfaultfd
P"""
BURN = "python3 -c 'import time\nwhile time.process_time() < 1.2: pass'"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    home = tmp_path_factory.mktemp("account")
    policies = home / "config" / "policies"
    policies.mkdir(parents=True)
    (policies / "ends.yaml").write_text("inherits: standard\nalerts:\n  output_mb_per_second: 1\nrespond:\n  low: end\n")
    (policies / "freezes.yaml").write_text("inherits: standard\nalerts:\n  output_mb_per_second: 1\nrespond:\n  low: freeze\n")
    (policies / "audits.yaml").write_text("inherits: standard\nmode: audit\nalerts:\n  output_mb_per_second: 1\nrespond:\n  low: end\n")
    (policies / "forks.yaml").write_text("inherits: standard\nalerts:\n  forks_per_second: 100\n")
    with Daemon(home, config=home / "config") as made:
        yield made


FORKS = "python3 -c 'import os, time\nend = time.monotonic() + 4\nwhile time.monotonic() < end:\n    if os.fork() == 0: os._exit(0)\n    os.wait()'"


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    made.ask("DELETE")


def metrics(daemon, key=None):
    """Each series by its name and labels."""
    found = {}
    for line in daemon.get("/metrics", key=key).body.decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def moved(daemon, before):
    now = metrics(daemon)
    return {name: round(now[name] - before.get(name, 0), 9) for name in now if now[name] != before.get(name, 0)}


def journal(daemon, kind=None):
    lines = subprocess.run([str(NACRE), "audit", "log", "--json", *(["--kind", kind] if kind else [])], env=daemon.env,
                           capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def body(entry):
    return entry.get("body", entry)


def lines_of(daemon, command, count=1, seconds=10):
    """The lines of a command, by kind; the recorder writes them when it comes to it."""
    until = time.monotonic() + seconds
    while True:
        found = [entry for entry in journal(daemon) if body(entry).get("id") == command]
        if len(found) >= count or time.monotonic() > until:
            return found
        time.sleep(0.1)


def cpu(usage):
    return usage["cpu_user_seconds"] + usage["cpu_system_seconds"]


def test_probes_are_seen(daemon, sandbox):
    before = metrics(daemon)
    ended = sandbox.run(PROBE)
    assert ended["status"] == "success" and ended["denials"], ended
    assert {"wall_calls", "wall_kinds"} <= {alert["id"] for alert in ended["alerts"]}, ended
    change = moved(daemon, before)
    for alert in ended["alerts"]:
        assert change[f'nacre_threats_total{{signal="{alert["id"]}"}}'] == 1
    for denial in ended["denials"]:
        assert change[f'nacre_denials_total{{rule="{denial["rule"]}",layer="{denial["layer"]}"}}'] >= 1, denial
    assert change['nacre_commands_total{status="success"}'] == 1
    assert not [name for name in change if name.startswith("nacre_execution")]
    found = lines_of(daemon, ended["id"], 2)
    assert sorted((entry["kind"], entry["event"]) for entry in found) == [("audit", "sandbox.command"), ("security", "alert")], found
    security = next(body(entry) for entry in found if entry["kind"] == "security")
    assert security["alerts"] == ended["alerts"] and security["denials"] == ended["denials"]
    assert security["sandbox"] == sandbox.id and security["tenant"] == ""


def test_the_same_probes_are_told_the_same(daemon, sandbox):
    """One code path: an execution and a command that do the same have the same denials and alerts."""
    ran, command = daemon.execute(PROBE, "shell").json(), sandbox.run(PROBE)
    assert {(d["rule"], d["count"]) for d in ran["denials"] if d["layer"] == "system"} == {(d["rule"], d["count"]) for d in command["denials"] if d["layer"] == "system"}
    assert [(a["id"], a["value"]) for a in ran["alerts"]] == [(a["id"], a["value"]) for a in command["alerts"]]


def test_cpu_time_and_memory(daemon, sandbox):
    before = metrics(daemon)
    ended = sandbox.run(BURN)
    change = moved(daemon, before)
    assert change["nacre_command_cpu_seconds_total"] == pytest.approx(cpu(ended["usage"]), abs=1e-6) and cpu(ended["usage"]) > 1.1
    assert change["nacre_command_duration_seconds_sum"] == pytest.approx(ended["usage"]["wall_seconds"], abs=1e-6)
    assert change["nacre_command_memory_peak_bytes_sum"] == ended["usage"]["memory_peak_bytes"]
    assert change['nacre_commands_by_risk_total{risk="low"}'] == 1 == change["nacre_command_duration_seconds_count"]
    line = body(lines_of(daemon, ended["id"])[0])
    assert line["usage"] == ended["usage"]


def test_what_there_is(daemon, sandbox):
    running = sandbox.run("sleep 60", background=True)["id"]
    now = metrics(daemon)
    assert now["nacre_sandboxes"] == 1 == now["nacre_commands_running"]
    assert now["nacre_sandboxes_allowed_memory_bytes"] == sandbox.value["limits"]["memory_mb"] << 20
    assert now["nacre_sandboxes_allowed_cpu_cores"] == sandbox.value["limits"]["cpu_cores"]
    sandbox.ask("DELETE", f"/commands/{running}")
    assert sandbox.wait(running)["status"] == "cancelled"
    assert metrics(daemon)["nacre_commands_running"] == 0


def test_what_the_policy_refuses(daemon):
    """403, and told of as an execution is that was blocked."""
    box = Sandbox(daemon, policy="strict")
    before = metrics(daemon)
    refused = box.ask("POST", "/commands", {"command": "curl https://example.com | sh"})
    assert refused.status == 403 and refused.json()["code"] == "policy", refused.body
    change = moved(daemon, before)
    assert change['nacre_commands_total{status="blocked"}'] == 1
    assert sum(value for name, value in change.items() if name.startswith("nacre_denials_total")) >= 1
    assert box.ask("GET", "/commands").json()["commands"] == []
    found = [entry for entry in journal(daemon) if body(entry).get("sandbox") == box.id]
    assert sorted((entry["kind"], entry["event"]) for entry in found) == [("audit", "sandbox.command"), ("security", "blocked")], found
    line = next(body(entry) for entry in found if entry["kind"] == "audit")
    assert line["status"] == "blocked" and line["denials"] and line["command"] == "curl https://example.com | sh" and "usage" not in line
    box.ask("DELETE")


FLOOD = "head -c 40000000 /dev/zero | while head -c 2000000 | tr '\\0' x; do sleep 0.2; done; sleep 30"


def test_the_policy_ends_a_command(daemon):
    """respond: the command ends, the sandbox stays."""
    box = Sandbox(daemon, policy="ends")
    other = box.run("sleep 30", background=True)["id"]
    ended = box.run(FLOOD)
    assert ended["status"] == "blocked" and "output_mb_per_second" in ended["error"] and ended["exit_code"] is None, ended
    assert ended["usage"]["wall_seconds"] < 25 and [alert["id"] for alert in ended["alerts"]] == ["output_mb_per_second"]
    assert {entry["event"] for entry in lines_of(daemon, ended["id"], 2)} == {"alert", "sandbox.command"}
    assert box.command(other)["state"] == "running" and box.run("true")["status"] == "success"
    box.ask("DELETE")
    audited = Sandbox(daemon, policy="audits")
    ended = audited.run(FLOOD, timeout=6)
    assert ended["status"] in ("timeout", "output_limit") and ended["alerts"], ended
    audited.ask("DELETE")


def test_the_policy_freezes_a_sandbox(daemon):
    box = Sandbox(daemon, policy="freezes")
    runs = box.run(FLOOD, background=True)["id"]
    until = time.monotonic() + 20
    while box.ask("GET").json()["state"] != "paused" and time.monotonic() < until:
        time.sleep(0.2)
    assert box.ask("GET").json()["state"] == "paused" and box.command(runs)["state"] == "running"
    assert box.ask("POST", "/resume", b"").status == 200
    time.sleep(2.5)
    assert box.ask("GET").json()["state"] == "running"  # whoever lets it go on does
    box.ask("DELETE")


def test_a_sandbox_that_goes_takes_no_bill_with_it(daemon):
    until = time.monotonic() + 10
    while (before := metrics(daemon))["nacre_sandboxes"] > 0 and time.monotonic() < until:
        time.sleep(0.1)  # those of the tests before
    box = Sandbox(daemon)
    running = box.run(BURN.replace("1.2", "60"), background=True)["id"]
    time.sleep(2)
    box.ask("DELETE")
    found = lines_of(daemon, running)
    assert len(found) == 1 and body(found[0])["status"] == "cancelled", found
    used = cpu(body(found[0])["usage"])
    assert used > 0.05
    assert moved(daemon, before)["nacre_command_cpu_seconds_total"] == pytest.approx(used, abs=1e-6)


def test_what_ends_without_a_recorder(daemon, sandbox):
    """What ends while the recorder is dead is in the journal when there is the next one."""
    running = [sandbox.run("sleep 1.5; exit 7", background=True)["id"] for _ in range(3)]
    time.sleep(1)
    for _ in range(3):  # until it takes longer to come back
        pid = daemon.aides().get("recorder")
        if pid:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.25)
    for command in running:
        assert sandbox.wait(command)["exit_code"] == 7
    for command in running:
        found = lines_of(daemon, command, seconds=20)
        assert [body(entry)["exit_code"] for entry in found] == [7], found


def test_the_next_daemon_tells_the_same(tmp_path):
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        ended = box.run(PROBE)
        running = box.run(f"{PROBE}\nsleep 3", background=True)["id"]
        time.sleep(1.5)
        daemon.die()
        told = box.command(ended["id"])
        assert all(told[key] == ended[key] for key in ("alerts", "denials", "risk", "usage", "status")), told
        later = box.wait(running)
        assert [alert["id"] for alert in later["alerts"]] == [alert["id"] for alert in ended["alerts"]]
        now = metrics(daemon)
        assert now['nacre_commands_total{status="success"}'] == 1
        assert len(lines_of(daemon, running, 2)) == 2 == len(lines_of(daemon, ended["id"], 2))


def test_what_ends_between_two_daemons(tmp_path):
    """Nobody was there to count it: the next one does, once."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = [box.run(f"sleep 0.3; exit {i}", background=True)["id"] for i in range(1, 6)]
        os.kill(daemon.pid, signal.SIGSTOP)
        time.sleep(1.5)
        daemon.die()
        ended = [box.wait(one) for one in running]
        assert [one["exit_code"] for one in ended] == [1, 2, 3, 4, 5]
        now = metrics(daemon)
        assert now['nacre_commands_total{status="error"}'] == 5
        assert now["nacre_command_cpu_seconds_total"] == pytest.approx(sum(cpu(one["usage"]) for one in ended), abs=1e-6)
        assert [len(lines_of(daemon, one)) for one in running] == [1] * 5


@pytest.mark.parametrize("waits", (False, True))
def test_a_daemon_that_stops_settles_commands(tmp_path, waits):
    """They are recorded as they ended, with what the spawner says that they used; those of a client that waits have their time first."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "serve.yaml").write_text("drain_seconds: 2\n")
    with Daemon(tmp_path, config=tmp_path / "config") as daemon:
        boxes = [Sandbox(daemon) for _ in range(3)]
        running = [box.run(f"{PROBE}\nwhile :; do :; done", background=True)["id"] for box in boxes]
        if waits:
            reply = threading.Thread(target=lambda: replies.append(boxes[0].run("while :; do :; done")))
            replies = []
            reply.start()
        time.sleep(1.5)
        began = time.monotonic()
        os.kill(daemon.pid, signal.SIGTERM)
        assert daemon.process.wait(timeout=30) == 0
        assert (2 if waits else 0) <= time.monotonic() - began < (8 if waits else 2)
        if waits:
            reply.join()
            assert replies[0]["status"] == "cancelled" and cpu(replies[0]["usage"]) > 0.1, replies
    lines = journal(daemon)
    died = [(line["body"]["wall_ns"], line["body"]["cpu_us"]) for line in lines if line["event"] == "died"]
    for command in running:
        (line,) = [line["body"] for line in lines if line["event"] == "sandbox.command" and line["body"]["id"] == command]
        assert line["status"] == "cancelled" and cpu(line["usage"]) > 0.1 and line["alerts"], line
        assert (round(line["usage"]["wall_seconds"] * 1e9), round(cpu(line["usage"]) * 1e6)) in died
        assert [line["event"] for line in lines if line["kind"] == "security" and line["body"]["id"] == command] == ["alert"]
    assert {line["body"]["id"] for line in lines if line["event"] == "sandbox.gone"} == {box.id for box in boxes}


def test_a_spawner_that_is_killed_lets_no_command_off(tmp_path):
    """Nobody tells their end: what was told of them last is the bill."""
    with Daemon(tmp_path, respawn=True) as daemon:
        box = Sandbox(daemon)
        running = box.run(f"{PROBE}\nwhile :; do :; done", background=True)["id"]
        time.sleep(3)
        spawner = int(re.search(r"^PPid:\s+(\d+)", open(f"/proc/{daemon.pid}/status").read(), re.M).group(1))
        os.kill(spawner, signal.SIGKILL)
        found = lines_of(daemon, running, 2, seconds=20)
        assert sorted(entry["event"] for entry in found) == ["alert", "sandbox.command"], found
        line = next(body(entry) for entry in found if entry["event"] == "sandbox.command")
        assert line["status"] == "lost" and cpu(line["usage"]) > 1 and line["usage"]["wall_seconds"] > 2.5, line
        assert {alert["id"] for alert in line["alerts"]} >= {"wall_kinds"} and line["denials"]
        until = time.monotonic() + 10  # its line comes behind that of the command
        while not (gone := [body(entry)["id"] for entry in journal(daemon) if entry["event"] == "sandbox.gone"]) and time.monotonic() < until:
            time.sleep(0.05)
        assert gone == [box.id]


def test_a_cached_reply_is_paid_once(daemon):
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(1)"
    before = metrics(daemon)
    first, second = (daemon.execute(burn, cache=True).json() for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    change = moved(daemon, before)
    assert change["nacre_execution_cpu_seconds_total"] == pytest.approx(cpu(first["usage"]), abs=1e-6)
    assert change['nacre_executions_total{language="python",tier="container",status="success"}'] == 2
    assert change['nacre_execution_duration_seconds_count{language="python"}'] == 1


def test_metrics_are_described(daemon):
    documented = (ROOT / "docs" / "api.md").read_text()
    names = set(re.findall(r"^# TYPE (nacre_(?:command|sandbox)\S*)", daemon.get("/metrics").body.decode(), re.M))
    assert names and not [name for name in names if name not in documented]


def test_forks_beside_a_command_are_not_its_own(daemon):
    """Numbers of processes are those of the whole sandbox: the one that forks is noticed, the one beside it is not."""
    box = Sandbox(daemon, policy="forks")
    busy = box.run(FORKS, background=True)
    calm = box.run("for i in $(seq 12); do sleep 0.3; done", background=True)
    kinds = {name: {alert["id"] for alert in box.wait(one["id"])["alerts"]} for name, one in (("busy", busy), ("calm", calm))}
    alone = {alert["id"] for alert in box.run(FORKS, timeout=30)["alerts"]}
    box.ask("DELETE")
    assert not any("fork" in kind for kind in kinds["calm"]) and any("fork" in kind for kind in alone), (kinds, alone)


def test_refusals_of_the_network(daemon):
    """They are the next ending command's: in its reply, the metrics and a line of kind security, once."""
    before = metrics(daemon)
    box = Sandbox(daemon, network={"allow": ["nowhere.invalid"]})
    ask = "curl -s -o /dev/null http://other.invalid/; "
    refused = [denial for denial in box.run(ask * 3 + "sleep 0.3")["denials"] if denial["layer"] == "egress"]
    assert [(denial["id"], denial["object"], denial["count"]) for denial in refused] == [("network.not-listed", "other.invalid:80", 3)], refused
    assert box.run("true")["denials"] == []
    again = box.run(ask + "sleep 0.3")
    assert [denial["count"] for denial in again["denials"]] == [1], again
    lines = [entry for entry in journal(daemon) if entry["kind"] == "security" and entry["body"].get("id") == again["id"]]
    box.ask("DELETE")
    key = f'nacre_denials_total{{rule="{refused[0]["rule"]}",layer="egress"}}'
    assert moved(daemon, before)[key] == 2 and len(lines) == 1, lines
