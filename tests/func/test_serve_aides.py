"""Those who work beside nacre serve die, under load too: each is started again, nothing is lost unsaid, nobody is left behind."""

import concurrent.futures
import http.server
import os
import pathlib
import signal
import threading
import time

import pytest

from conftest import NOBODY, open_way
from leftovers import lives
from serving import Daemon, descriptors
from test_network import host  # noqa: F401: a fixture
from test_network_terms import fetch
from test_sandboxes import Sandbox
from test_serve_bills import journal

ALL = ("recorder", "egress", "archive", "analyst", "courier", "exporter")


class Receiver(http.server.ThreadingHTTPServer):
    """Takes what is posted."""

    def __init__(self):
        self.got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                self.got.append(handler.rfile.read(int(handler.headers["Content-Length"])))
                handler.send_response(200)
                handler.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def configure(home, hook="http://127.0.0.1:9/", traces="http://127.0.0.1:9/"):
    config = home / "config"
    config.mkdir()
    (config / "serve.yaml").write_text(f"webhooks: ['{hook}']\ntracing: {{endpoint: '{traces}'}}\n"
                                       "alerts:\n  intruders: {kind: security, measure: auth_failures, above: 2}\n")
    open_way(config)
    return config


def counted(daemon):
    """What /metrics tells of them: (lives, deaths), by name."""
    lines = dict(line.rsplit(" ", 1) for line in daemon.get("/metrics").body.decode().splitlines() if line.startswith("nacre_aide"))
    return {name: (int(lines[f'nacre_aide_up{{aide="{name}"}}']), int(lines.get(f'nacre_aide_deaths_total{{aide="{name}"}}', 0)))
            for name in (*ALL, "keeper") if f'nacre_aide_up{{aide="{name}"}}' in lines}


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def kill(daemon, name):
    """kill -9, and the next one is there and was met."""
    known = len([record for record in daemon.log() if record["message"] == "An aide is there again"])
    pid = daemon.aides()[name]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: daemon.aides().get(name, pid) != pid, 60)
    wait_for(lambda: len([record for record in daemon.log() if record["message"] == "An aide is there again"]) > known)


@pytest.mark.parametrize("who", ["root", "user"])
def test_each_is_started_again(tmp_path, programs, who):
    options = {}
    if who == "user":
        open_way(tmp_path)
        os.chown(tmp_path, NOBODY, NOBODY)
        options = {"prefix": ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"], "program": programs / "nacre"}
    with Daemon(tmp_path, config=configure(tmp_path), **options) as daemon:
        assert set(daemon.aides()) == {*ALL, "keeper"}
        for name in ALL:
            before = pathlib.Path(f"/proc/{daemon.aides()[name]}/status").read_text()
            kill(daemon, name)
            after = pathlib.Path(f"/proc/{daemon.aides()[name]}/status").read_text()
            for field in ("Uid", "Gid", "Groups", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp"):  # no right more than the first
                assert [line for line in before.splitlines() if line.startswith(f"{field}:")] == \
                    [line for line in after.splitlines() if line.startswith(f"{field}:")], (name, field)
            assert daemon.execute("print(1)").json()["output"] == "1\n"
            assert daemon.get("/v1/history?limit=1").status == 200
        assert counted(daemon) == {**{name: (1, 1) for name in ALL}, "keeper": (1, 0)}
        died = [record for record in daemon.log() if record["message"] == "An aide has died and is started again"]
        assert [record["aide"] for record in died] == list(ALL) and {record["reason"] for record in died} == {"Killed"}
        assert daemon.get("/v1/audit/verify").json()["ok"]
        daemon.die()  # the next worker counts on, and meets them all
        assert daemon.execute("print(2)").json()["receipt"]
        assert counted(daemon)["recorder"] == (1, 1)
        left = list(daemon.aides().values())
    wait_for(lambda: not [pid for pid in left if lives(pid)])


def test_nothing_is_lost_while_the_recorder_dies(tmp_path):
    """Five times under load: what was answered is in the history, and what could not be recorded was refused."""
    refused, answered, wrong = [], [], []
    ends = threading.Event()

    def client(daemon, number):
        while not ends.is_set():
            answer = daemon.execute(f"sleep 0.0{number}; echo {number}", "shell")
            if answer.status == 200 and answer.json()["output"] == f"{number}\n" and answer.json()["receipt"]:
                answered.append(answer.json()["id"])
            elif answer.status == 503 and answer.json()["code"] == "no_recorder" and answer.headers["retry-after"]:
                refused.append(answer)
                time.sleep(0.1)
            else:
                wrong.append(answer.body[:300])

    with Daemon(tmp_path) as daemon, concurrent.futures.ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(client, daemon, number) for number in range(8)]
        for _ in range(5):
            time.sleep(0.5)
            kill(daemon, "recorder")
        ends.set()
        for one in clients:
            one.result(60)
        assert not wrong, wrong[:3]
        assert len(answered) > 20, (len(refused), len(answered))
        known = set()
        rows = daemon.get("/v1/history?limit=1000").json()["executions"]
        while rows:
            assert not {row["id"] for row in rows} & known  # each of them once
            known |= {row["id"] for row in rows}
            assert "lost" not in {row["status"] for row in rows}
            rows = daemon.get(f"/v1/history?limit=1000&before={rows[-1]['seq']}").json()["executions"]
        assert not set(answered) - known
        assert daemon.get("/v1/audit/verify").json()["ok"]


def test_what_the_recorder_had_not_read_is_recorded_once(tmp_path):
    """It is killed with mail in its socket, and while something runs: the next one has all of it, and nothing twice or as lost."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        runs = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 4"}).json()["id"]
        ends = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 1"}).json()["id"]
        commands = [box.run(f"sleep 0.{n}; exit {n}", background=True)["id"] for n in range(1, 8)]
        time.sleep(0.3)
        victim = daemon.aides()["recorder"]
        os.kill(victim, signal.SIGSTOP)
        told = [box.wait(command) for command in commands]
        time.sleep(1)  # the execution has ended as well, and waits for its receipt
        os.kill(victim, signal.SIGKILL)
        assert [one["exit_code"] for one in told] == list(range(1, 8))
        for job in (ends, runs):
            reply = daemon.get(f"/v1/jobs/{job}/wait?timeout=40", timeout=60).json()["reply"]
            assert reply["status"] == "success" and reply["receipt"]["seq"], reply
        rows = daemon.get("/v1/history").json()["executions"]
        assert sorted((row["id"], row["status"]) for row in rows) == sorted([(ends, "success"), (runs, "success")])
        lines = journal(daemon)
        assert sorted(line["body"]["id"] for line in lines if line["event"] == "sandbox.command") == sorted(commands)
        assert len([line for line in lines if line["event"] in ("finish", "lost")]) == 2 and daemon.get("/v1/audit/verify").json()["ok"]


def test_nothing_is_begun_without_a_recorder(tmp_path):
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        os.kill(daemon.aides()["keeper"], signal.SIGSTOP)  # who would start it again
        os.kill(daemon.aides()["recorder"], signal.SIGKILL)
        time.sleep(0.2)
        for answer in (daemon.execute("print(1)"), daemon.post("/v1/jobs", {"language": "shell", "code": "true"}), daemon.post("/v1/sandboxes", {}),
                       box.ask("POST", "/commands", {"command": "true"})):
            assert answer.status == 503 and answer.json()["code"] == "no_recorder" and answer.headers["retry-after"] == "1", answer.body
        os.kill(daemon.aides()["keeper"], signal.SIGCONT)
        wait_for(lambda: daemon.execute("print(1)").status == 200)
        assert box.run("echo on")["stdout"] == "on\n"


def test_the_history_cannot_be_read_for_a_moment(tmp_path):
    with Daemon(tmp_path) as daemon:
        daemon.execute("print(1)")
        os.kill(daemon.aides()["keeper"], signal.SIGSTOP)
        os.kill(daemon.aides()["archive"], signal.SIGKILL)
        time.sleep(0.2)
        answer = daemon.get("/v1/history")
        assert answer.status == 503 and "history" in answer.json()["detail"], answer.body
        os.kill(daemon.aides()["keeper"], signal.SIGCONT)
        wait_for(lambda: daemon.get("/v1/history").status == 200)


def test_boxes_have_a_network_again(tmp_path, host):  # noqa: F811
    with Daemon(tmp_path) as daemon:
        old = Sandbox(daemon, network={"allow": [host.name]})
        assert old.run(fetch(host.name))["stdout"] == "a page\n"
        kill(daemon, "egress")
        assert old.run(fetch(host.name))["exit_code"] != 0  # its door is gone for good, and it can be told
        assert old.ask("PUT", "/network", {"allow": [host.name]}).status >= 400
        fresh = Sandbox(daemon, network={"allow": [host.name]})
        assert fresh.run(fetch(host.name))["stdout"] == "a page\n"
        reply = daemon.execute(fetch(host.name), "shell", network={"allow": [host.name]}).json()
        assert reply["output"] == "a page\n", reply
        assert daemon.execute("echo here", "shell").json()["output"] == "here\n"


def test_alerts_and_traces_are_told_by_the_next_ones(tmp_path):
    hook, traces = Receiver(), Receiver()
    config = configure(tmp_path, f"http://127.0.0.1:{hook.server_port}/", f"http://127.0.0.1:{traces.server_port}/")
    with Daemon(tmp_path, config=config) as daemon:
        kill(daemon, "courier")
        kill(daemon, "exporter")
        for _ in range(4):
            daemon.get("/v1/version", host="evil.example")
        daemon.execute("print(1)")
        wait_for(lambda: hook.got and traces.got)
    hook.shutdown()
    traces.shutdown()


def test_who_dies_again_and_again_is_started_later_each_time(tmp_path):
    with Daemon(tmp_path) as daemon:
        for _ in range(3):
            kill(daemon, "archive")
        waits = [record["milliseconds"] for record in daemon.log() if record["message"] == "An aide has died and is started again"]
        assert waits == [100, 2000, 4000]
        assert daemon.get("/v1/history").status == 200


def test_the_keepers_own_death_is_said(tmp_path):
    with Daemon(tmp_path) as daemon:
        left = list(daemon.aides().values())
        os.kill(daemon.aides()["keeper"], signal.SIGKILL)
        daemon.wait_for_log("nacre-keeper has died: who works beside the daemon is not started again")
        assert counted(daemon)["keeper"] == (0, 0)
        assert daemon.execute("print(1)").json()["receipt"]  # the others live on
    wait_for(lambda: not [pid for pid in left if lives(pid)])


def test_the_keeper_has_little(tmp_path):
    with Daemon(tmp_path) as daemon:
        pid = daemon.aides()["keeper"]
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        # CAP_DAC_OVERRIDE, CAP_SETGID, CAP_SETUID, CAP_SETPCAP
        assert "NoNewPrivs:\t1" in status and "CapEff:\t00000000000001c2" in status and "CapBnd:\t0000000000000000" in status
        sockets = descriptors(pid).values()
        assert len([name for name in sockets if name.startswith("socket:")]) == 5  # four places and the witness: nothing that listens


def test_a_recorder_that_hangs_holds_up_nobody_else(tmp_path):
    """As one whose disk does not answer: a flood is refused when nothing more fits, and all that was taken is recorded in the end."""
    with Daemon(tmp_path) as daemon:
        os.kill(daemon.aides()["recorder"], signal.SIGSTOP)
        taken, refused, slowest = [], 0, 0
        while refused < 20:
            answer = daemon.post("/v1/jobs", {"language": "shell", "code": ":(){ :|:& };:"})
            began = time.monotonic()
            assert daemon.get("/healthz").status == 200
            slowest = max(slowest, time.monotonic() - began)
            if answer.status == 202:
                taken.append(answer.json()["id"])
                assert len(taken) < 4000
            else:
                assert answer.status == 503 and answer.json()["code"] == "busy" and answer.headers["retry-after"], answer.body
                refused += 1
        assert slowest < 2 and taken, slowest
        os.kill(daemon.aides()["recorder"], signal.SIGCONT)
        for identity in taken[-3:]:
            assert daemon.get(f"/v1/jobs/{identity}/wait?timeout=30").json()["reply"]["receipt"]
        known, before = set(), ""
        while before is not None:
            page = daemon.get(f"/v1/history?limit=1000{before and f'&before={before}'}").json()
            known |= {row["id"] for row in page["executions"]}
            before = page["next"]
        assert set(taken) <= known
        assert counted(daemon)["recorder"] == (1, 0)
