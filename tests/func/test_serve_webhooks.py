"""nacre serve: alerts told to webhooks, by a process that can do nothing else."""

import hashlib
import hmac
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from conftest import ROOT, open_way
from leftovers import lives
from serving import Daemon


class Receiver(http.server.ThreadingHTTPServer):
    """Takes what comes; the first answers are failures, as many as it is told."""

    def __init__(self, failures):
        receiver = self
        self.got, self.failures, self.says = [], failures, {}  # path -> status

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), body))
                receiver.failures -= 1
                self.send_response(receiver.says.get(self.path, 503 if receiver.failures >= 0 else 204))
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def wait(self, count, seconds=30):
        until = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < until, self.got
            time.sleep(0.1)


def test_alerts_are_told(tmp_path):
    receiver = Receiver(failures=2)
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text(
        f"webhooks: ['http://localhost:{receiver.server_port}/hook?a=1', 'http://127.0.0.1:1/nobody']\n"
        "alerts:\n  intruders: {kind: security, measure: auth_failures, above: 2}\n")
    with Daemon(tmp_path, config=config) as daemon:
        for _ in range(4):
            daemon.get("/v1/version", host="evil.example")
        receiver.wait(3)  # twice refused, then taken
        time.sleep(2)
        assert len(receiver.got) == 3  # and told once
        paths, headers, bodies = zip(*receiver.got)
        assert set(paths) == {"/hook?a=1"} and len(set(bodies)) == 1
        message = json.loads(bodies[0])
        assert (message["alert"], message["kind"], message["state"], message["value"]) == ("intruders", "security", "firing", 4)
        key = bytes.fromhex((tmp_path / "state/serve/webhook.key").read_text())
        assert headers[0]["X-Nacre-Signature"] == "sha256=" + hmac.new(key, bodies[0], hashlib.sha256).hexdigest()
        assert {head["Idempotency-Key"] for head in headers} == {message["id"]}
        courier = [daemon.aides()["courier"]]
        status = pathlib.Path(f"/proc/{courier[0]}/status").read_text()
        assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
    until = time.monotonic() + 40
    while lives(courier[0]):  # it ends with the daemon
        assert time.monotonic() < until
        time.sleep(0.1)
    receiver.shutdown()


def intrude(daemon):
    for _ in range(4):
        daemon.get("/v1/version", host="evil.example")


def configured(tmp_path, *addresses, above=2):
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text(f"webhooks: [{', '.join(repr(address) for address in addresses)}]\n"
                                       f"alerts:\n  intruders: {{kind: security, measure: auth_failures, above: {above}}}\n")
    open_way(config)
    return config


def test_a_daemon_that_dies_loses_no_alert(tmp_path):
    """What it had told is delivered, what fired is over with the next one, and that tells as well."""
    receiver = Receiver(failures=1)
    config = configured(tmp_path, f"http://localhost:{receiver.server_port}/")
    with Daemon(tmp_path, config=config) as daemon:
        intrude(daemon)
        receiver.wait(1)  # at the first try it was refused
        daemon.die()
        receiver.wait(3)
        intrude(daemon)
        receiver.wait(4)
        told = [json.loads(body) for _, _, body in receiver.got]
        assert told[0] == told[1]
        told = told[1:]
        assert [message["state"] for message in told] == ["firing", "over", "firing"] and len({message["id"] for message in told}) == 3
    with Daemon(tmp_path, config=config) as daemon:  # all of it was stopped, and is started again
        receiver.wait(5)
        assert json.loads(receiver.got[4][2])["state"] == "over"
        time.sleep(7)
        assert len(receiver.got) == 5  # once
    receiver.shutdown()


def test_one_that_hangs_delays_nobody(tmp_path):
    receiver = Receiver(failures=0)
    with socket.socket() as hangs:
        hangs.bind(("127.0.0.1", 0))
        hangs.listen()  # and never accepts
        config = configured(tmp_path, f"http://127.0.0.1:{hangs.getsockname()[1]}/", f"http://127.0.0.1:{receiver.server_port}/", "http://127.0.0.1:1/")
        with Daemon(tmp_path, config=config) as daemon:
            intrude(daemon)
            began = time.monotonic()
            receiver.wait(1)
            daemon.die()
            receiver.wait(2)
            assert time.monotonic() - began < 25
            assert [json.loads(body)["state"] for _, _, body in receiver.got] == ["firing", "over"]
            pids = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(daemon.aides()["courier"])], capture_output=True, text=True).stdout.split()]
            assert len(pids) == 3
            for pid in pids:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status and "Seccomp:\t2" in status
            os.kill(pids[1], signal.SIGKILL)  # all of them are started again with the next message
            intrude(daemon)
            daemon.wait_for_log("An aide has died and is started again", 30)
        hangs.close()  # what it was told at last is tried once
    until = time.monotonic() + 40
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.1)
    receiver.shutdown()


def test_what_is_refused_for_good_is_not_tried_again(tmp_path):
    """An answer 4xx ends the tries, but for 408 and 429."""
    receiver = Receiver(failures=0)
    receiver.says = {"/400": 400, "/404": 404, "/408": 408, "/429": 429}
    config = configured(tmp_path, *(f"http://127.0.0.1:{receiver.server_port}{path}" for path in receiver.says))
    with Daemon(tmp_path, config=config) as daemon:
        intrude(daemon)
        until = time.monotonic() + 20
        while [path for path, _, _ in receiver.got].count("/429") < 3:  # after 1 and 2 s more
            assert time.monotonic() < until, receiver.got
            time.sleep(0.1)
        paths = [path for path, _, _ in receiver.got]
        assert paths.count("/400") == paths.count("/404") == 1 and paths.count("/408") >= 2, paths
    receiver.shutdown()


@pytest.mark.parametrize("program", (["python3", "examples/webhook.py"], ["node", "examples/webhook.js"]), ids=("python", "node"))
def test_the_examples_verify(tmp_path, program):
    if not shutil.which(program[0]):
        pytest.skip(f"no {program[0]} here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Daemon(tmp_path, config=configured(tmp_path, f"http://127.0.0.1:{port}/hook")) as daemon:
        receiver = subprocess.Popen([program[0], ROOT / program[1], tmp_path / "state/serve/webhook.key", str(port)], stdout=subprocess.PIPE, text=True)
        try:
            intrude(daemon)
            assert receiver.stdout.readline() == "intruders firing 4.0\n".replace(".0", "" if program[0] == "node" else ".0")
            forged = urllib.request.Request(f"http://127.0.0.1:{port}/", data=b"{}", headers={"X-Nacre-Signature": "sha256=" + "0" * 64})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(forged, timeout=10)
        finally:
            receiver.terminate()
            receiver.wait(timeout=10)


@pytest.mark.parametrize("address", ["ftp://x", "example.org", "javascript:x"])
def test_addresses(nacre, tmp_path, address):
    (tmp_path / "serve.yaml").write_text(f"webhooks: ['{address}']\n")
    done = nacre("config", "check", tmp_path)
    assert done.returncode == 1 and "https://example.org/hook" in done.stdout + done.stderr
