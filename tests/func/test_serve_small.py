"""nacre serve: small promises."""

import os
import re
import signal
import subprocess
import time

import pytest

from conftest import NACRE
from serving import Daemon
from test_commands_account import cpu, journal
from test_sandboxes import Sandbox


@pytest.mark.parametrize("above", (False, True))
def test_a_closed_state_directory(tmp_path, as_root, above):
    """Who may not walk there was handed what is in it."""
    (tmp_path / "state").mkdir()
    (tmp_path if above else tmp_path / "state").chmod(0o700)
    with Daemon(tmp_path) as daemon:
        assert daemon.execute("print(1)").json()["output"] == "1\n"
        box = daemon.post("/v1/sandboxes", {}).json()["id"]
        snapshot = daemon.post(f"/v1/sandboxes/{box}/snapshots", {"name": "a"})
        assert snapshot.status in (200, 201), snapshot.body
        assert daemon.ask("DELETE", f"/v1/sandboxes/{box}").status in (200, 204)
        assert daemon.get("/readyz").status == 200
    assert daemon.code == 0


def test_what_takes_no_body_takes_an_empty_object(tmp_path):
    with Daemon(tmp_path) as daemon:
        box = daemon.post("/v1/sandboxes", {}).json()["id"]
        for path in ("pause", "resume", "pause", "resume"):
            answer = daemon.post(f"/v1/sandboxes/{box}/{path}", b" { }\n" if path == "pause" else {})
            assert answer.status in (200, 204), answer.body
        assert daemon.ask("POST", f"/v1/sandboxes/{box}/pause").status in (200, 204)
        for body in (b"{", b"[]", b"x", b'{"a": 1}', b"{} {}"):
            answer = daemon.post(f"/v1/sandboxes/{box}/resume", body)
            assert (answer.status, answer.json()["code"]) == (400, "bad_request"), body
        assert daemon.post(f"/v1/sandboxes/{box}/resume", b" " * 65).status == 413
        assert daemon.ask("DELETE", f"/v1/sandboxes/{box}", {}).status in (200, 204)


@pytest.mark.parametrize("respawn", (False, True))
def test_a_second_signal_ends_it_at_once_and_well(tmp_path, respawn):
    with Daemon(tmp_path, respawn=respawn) as daemon:
        job = daemon.post("/v1/jobs", {"language": "python", "code": "import time; time.sleep(60)"}).json()["id"]
        command = Sandbox(daemon).run("while :; do :; done", background=True)["id"]
        time.sleep(2.5)
        began = time.monotonic()
        os.kill(daemon.process.pid, signal.SIGTERM)
        daemon.wait_for_log("Stopping")
        os.kill(daemon.process.pid, signal.SIGTERM)
        assert daemon.process.wait(timeout=20) == 0
        assert time.monotonic() - began < 10
    past = subprocess.run([NACRE, "history", "show", job], env=daemon.env, capture_output=True, text=True, timeout=30)
    assert re.search(r"lost|cancelled", past.stdout), past.stdout + past.stderr
    (line,) = [line["body"] for line in journal(daemon) if line["event"] == "sandbox.command"]
    assert line["id"] == command and line["status"] in ("lost", "cancelled") and cpu(line["usage"]) > 1, line  # as it was told last
