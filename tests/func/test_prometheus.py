"""deploy/: each rule fires and ceases in a real Prometheus over a real daemon, and each panel of the dashboard shows something."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest

from serving import Daemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
WINDOW_S = 8  # of five minutes
PROBE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number in (101, 165, 272, 155, 161, 175):
    libc.syscall(number, 0, 0, 0, 0, 0)
"""
DASHBOARD = [target["expr"] for panel in json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())["panels"] for target in panel["targets"]]
RULES = (ROOT / "deploy/prometheus-rules.yml").read_text()
NAMES = set(re.findall(r"- alert: (\w+)", RULES))


class Prometheus:
    def __init__(self, home, daemon, key):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        rules = RULES.replace("[5m]", f"[{WINDOW_S}s]")
        rules = re.sub(r"for: \d+m", "for: 1s", rules)
        (home / "rules.yml").write_text(rules)
        (home / "prometheus.yml").write_text(
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n"
            f"rule_files: [{home}/rules.yml]\n"
            "scrape_configs:\n"
            f"  - {{job_name: nacre, authorization: {{credentials: {key}}}, static_configs: [{{targets: ['127.0.0.1:{daemon.port}']}}]}}\n")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=open(home / "prometheus.log", "w"))

    def query(self, expression):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query={urllib.parse.quote(expression)}"
        return json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]

    def firing(self):
        return {found["metric"]["alertname"] for found in self.query('ALERTS{alertstate="firing"}')}

    def wait(self, what, seconds=60):
        until = time.monotonic() + seconds
        while True:
            try:
                if what():
                    return
            except OSError:
                pass
            assert time.monotonic() < until, (self.firing(), self.query("nacre_uptime_seconds"))
            time.sleep(0.2)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    if not shutil.which("prometheus"):
        pytest.skip("no prometheus here")
    if os.geteuid() != 0:
        pytest.skip("needs root, for a file system that can be filled")
    home = tmp_path_factory.mktemp("prometheus")
    home.chmod(0o755)
    (home / "config").mkdir()
    (home / "config/serve.yaml").write_text("alerts:\n  failures: {kind: error, measure: errors, above: 0}\n")
    (home / "config").chmod(0o755)
    (home / "state").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m,mode=755", "nacre-test", home / "state"]).returncode != 0:
        pytest.skip("no file system can be mounted here")
    prometheus = None
    try:
        with Daemon(home, "--max-running", "1", "--max-queued", "200", "--no-warm", config=home / "config") as daemon:
            key = daemon.key("--tenant", "acme", "--role", "admin")
            prometheus = Prometheus(home, daemon, key)
            # what the rules are about has not happened yet, and its series are there
            prometheus.wait(lambda: prometheus.query("min_over_time(nacre_uptime_seconds[2s])"))
            time.sleep(1.5)
            assert prometheus.firing() == set()
            yield prometheus, daemon, key
    finally:
        if prometheus:
            prometheus.stop()
        subprocess.run(["umount", "-l", home / "state"])


@pytest.fixture
def fires(watched):
    """Provokes an alert that does not fire yet, waits for it and for its end."""
    prometheus = watched[0]

    def check(name, provoke, cease=lambda: None):
        prometheus.wait(lambda: name not in prometheus.firing())
        provoke()
        prometheus.wait(lambda: name in prometheus.firing())
        cease()
        prometheus.wait(lambda: name not in prometheus.firing())
        CHECKED.add(name)
    return check


CHECKED = set()


def test_wrong_keys(watched, fires):
    _, daemon, _ = watched
    fires("NacreWrongKeys", lambda: [daemon.get("/v1/jobs", key="nacre_" + "0" * 16 + "_" + "1" * 48) for _ in range(25)])


def test_threats(watched, fires):
    _, daemon, key = watched
    fires("NacreThreats", lambda: daemon.execute(PROBE, key=key))


def test_many_denials(watched, fires):
    _, daemon, key = watched
    stop = threading.Event()

    def refused():
        while not stop.is_set():
            daemon.execute(PROBE, key=key)
    thread = threading.Thread(target=refused)

    def end():
        stop.set()
        thread.join()
    fires("NacreManyDenials", thread.start, end)


def test_slow_starts(watched, fires):
    _, daemon, key = watched

    def slow():
        for milliseconds in (0, 2, 4, 6, 8, 10, 12, 15, 18, 22):  # some of them in the middle of a birth
            thread = threading.Thread(target=daemon.execute, args=("print(1)",), kwargs={"key": key})
            thread.start()
            time.sleep(milliseconds / 1000)
            os.kill(daemon.process.pid, signal.SIGSTOP)  # the spawner
            time.sleep(0.7)
            os.kill(daemon.process.pid, signal.SIGCONT)
            thread.join()
    fires("NacreSlowStarts", slow)


def queue_up(daemon, key):
    def job(code):
        return daemon.post("/v1/jobs", {"language": "python", "code": code}, key=key).status
    assert job("import time; time.sleep(9)") == 202
    return [job("print(1)") for _ in range(150)]


def drain(daemon, key):
    for job in daemon.get("/v1/jobs", key=key).json()["jobs"]:
        if job["status"] in ("queued", "running"):
            daemon.ask("DELETE", f"/v1/jobs/{job['id']}", key=key)


def test_queue_and_errors(watched, fires):
    prometheus, daemon, key = watched

    def wait_and_fail():
        statuses = queue_up(daemon, key)
        assert statuses.count(202) > 101 and statuses.count(503) > 10, statuses
        prometheus.wait(lambda: {"NacreQueueGrows", "NacreServerErrors"} <= prometheus.firing())
    fires("NacreLongQueue", wait_and_fail, lambda: drain(daemon, key))
    prometheus.wait(lambda: not prometheus.firing() & {"NacreQueueGrows", "NacreServerErrors"})
    CHECKED.update({"NacreQueueGrows", "NacreServerErrors"})


def test_own_faults(watched, fires):
    """Twice, since a counter of the same value says nothing."""
    prometheus, daemon, key = watched

    def ours():
        alerts = daemon.get("/v1/alerts", key=key).json()["alerts"]
        return alerts[0]["firing"]

    def kill():
        assert daemon.post("/v1/jobs", {"language": "python", "code": "import time; time.sleep(50)"}, key=key).status == 202
        time.sleep(1)
        daemon.die()
    for times in (1, 2):
        fires("NacreOwnFaults", kill)
        assert prometheus.query('nacre_executions_failed_total{status="lost"}')[0]["value"][1] == str(times)
        prometheus.wait(ours)  # the same of serve.yaml, over the last minute


def test_disk(watched, fires):
    _, daemon, _ = watched
    state = os.statvfs(daemon.state)
    filler = pathlib.Path(daemon.state, "filler")

    def fill():
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, int(state.f_bavail * state.f_bsize - 0.06 * state.f_blocks * state.f_bsize))
    fires("NacreDiskFull", fill, filler.unlink)


def test_aides(watched, fires):
    _, daemon, _ = watched

    def kill():
        for _ in range(3):  # each time it comes back later
            until = time.monotonic() + 20
            while "archive" not in daemon.aides():
                assert time.monotonic() < until
                time.sleep(0.1)
            os.kill(daemon.aides()["archive"], signal.SIGKILL)
            time.sleep(0.5)
    fires("NacreAideDown", kill)


def test_dashboard(watched):
    """After all of the above every panel has data."""
    prometheus, daemon, key = watched
    sandbox = daemon.post("/v1/sandboxes", {}, key=key).json()["id"]
    for _ in range(3):  # a rate wants counters that have moved between two looks
        daemon.execute("print(1)", key=key)
        daemon.post(f"/v1/sandboxes/{sandbox}/commands", {"command": "echo x"}, key=key)
        time.sleep(2)
    empty = [expression for expression in DASHBOARD if all(found["value"][1] == "NaN" for found in prometheus.query(expression))]
    assert empty == []


def test_down(watched, fires):
    _, daemon, _ = watched
    fires("NacreDown", lambda: os.kill(daemon.pid, signal.SIGSTOP), lambda: os.kill(daemon.pid, signal.SIGCONT))


def test_every_rule_was_tried(watched):
    assert CHECKED == NAMES
