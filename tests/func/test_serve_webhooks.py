"""nacre serve: alerts told to webhooks, by a process that can do nothing else."""

import hashlib
import hmac
import http.server
import json
import pathlib
import subprocess
import threading
import time

import pytest

from conftest import open_way
from leftovers import lives
from serving import Daemon


class Receiver(http.server.ThreadingHTTPServer):
    """Takes what comes; the first answers are failures, as many as it is told."""

    def __init__(self, failures):
        receiver = self
        self.got, self.failures = [], failures

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), body))
                receiver.failures -= 1
                self.send_response(503 if receiver.failures >= 0 else 204)
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


def test_a_daemon_that_dies_loses_no_alert(tmp_path):
    """What it had told is delivered, and what the next one tells too."""
    receiver = Receiver(failures=1)
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text(f"webhooks: ['http://localhost:{receiver.server_port}/']\n"
                                       "alerts:\n  intruders: {kind: security, measure: auth_failures, above: 2}\n")
    open_way(config)
    with Daemon(tmp_path, config=config) as daemon:
        for count in (1, 3):
            for _ in range(4):
                daemon.get("/v1/version", host="evil.example")
            receiver.wait(count)  # at the first try it was refused
            daemon.die()
            receiver.wait(2)
        told = [json.loads(body) for _, _, body in receiver.got]
        assert told[0] == told[1]
        told = told[1:]
        assert [message["state"] for message in told] == ["firing", "firing"] and told[0]["id"] != told[1]["id"]
    receiver.shutdown()


@pytest.mark.parametrize("address", ["ftp://x", "example.org", "javascript:x"])
def test_addresses(nacre, tmp_path, address):
    (tmp_path / "serve.yaml").write_text(f"webhooks: ['{address}']\n")
    done = nacre("config", "check", tmp_path)
    assert done.returncode == 1 and "https://example.org/hook" in done.stdout + done.stderr
