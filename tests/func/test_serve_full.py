"""A full disk below the state directory: what was begun is recorded as it ended, and nothing new is begun."""

import contextlib
import errno
import os
import subprocess
import time

import pytest

from conftest import NACRE, environment
from serving import Daemon

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")


class Small(Daemon):
    """A daemon whose state is on a file system of 24 MiB."""

    def __init__(self, home):
        os.makedirs(f"{home}/state", exist_ok=True)
        script = 'mount -t tmpfs -o size=24m,mode=755 tmpfs "$0" && exec "$@"'
        super().__init__(home, "--no-warm", prefix=["unshare", "-m", "sh", "-c", script, f"{home}/state"])
        self.disk = f"/proc/{self.process.pid}/root{self.state}"

    def fill(self):
        with open(f"{self.disk}/fill", "ab", buffering=0) as file:
            size = 1 << 20
            while size:
                try:
                    file.write(b"x" * size)
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    size //= 2

    def empty(self):
        os.unlink(f"{self.disk}/fill")

    def begin(self, seconds=2, **more):
        answer = self.post("/v1/jobs", {"language": "python", "code": f"import time; time.sleep({seconds}); print('done')", **more})
        assert answer.status == 202, answer.body
        identity = answer.json()["id"]
        until = time.monotonic() + 20
        while self.get(f"/v1/jobs/{identity}").json()["state"] != "running":
            assert time.monotonic() < until
            time.sleep(0.05)
        return identity

    def wait(self, identity):
        return self.get(f"/v1/jobs/{identity}/wait").json()["reply"]

    def recorded(self, identity, status, seconds=20):
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(KeyError):
                found = self.get(f"/v1/history/{identity}").json()["status"]
                if found == status:
                    return
            assert time.monotonic() < until, found
            time.sleep(0.1)


@pytest.fixture
def small(tmp_path):
    with Small(str(tmp_path)) as made:
        assert made.execute("print(1)").json()["status"] == "success"
        yield made


def test_the_command_line_begins_nothing(tmp_path):
    """`nacre run` too: before, the program ran and its end was lost."""
    state = tmp_path / "state"
    state.mkdir()
    script = f"""mount -t tmpfs -o size=24m,mode=755 tmpfs {state} && cd {tmp_path} || exit 9
{NACRE} run --lang shell -c 'echo ran'
head -c 30M /dev/zero >{state}/fill
{NACRE} run --lang shell -c 'echo ran' >out 2>err; echo $? >code
rm {state}/fill
{NACRE} run --lang shell -c 'echo ran'
"""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], env={**environment(tmp_path), "NACRE_STATE": str(state)}, capture_output=True, text=True, timeout=120)
    assert done.stdout == "ran\nran\n", done
    assert "disk of the state directory is full" in (tmp_path / "err").read_text()
    assert (tmp_path / "out").read_text() == "" and int((tmp_path / "code").read_text()) not in (0, 9)


def test_what_was_begun_is_recorded(small):
    jobs = [small.begin(labels={"n": str(n)}) for n in range(4)]
    small.fill()
    for identity in jobs:
        reply = small.wait(identity)
        assert reply["status"] == "success" and "error" not in reply["receipt"] and reply["receipt"]["seq"] > 0, reply["receipt"]
    refused = small.execute("print(2)")
    assert refused.status == 507 and refused.json()["code"] == "state_full" and "retry-after" in refused.headers
    assert small.post("/v1/sandboxes", {}).status == 507
    small.empty()
    for identity in jobs:
        small.recorded(identity, "success")
    assert small.execute("print(3)").json()["receipt"]["seq"] > 0
    # the reserve is whole again, for the next time
    assert os.path.getsize(f"{small.disk}/history/reserve") == 2 << 20


def test_without_reserve_it_is_said_and_tried_again(small):
    identity = small.begin()
    small.fill()
    os.truncate(f"{small.disk}/history/reserve", 0)
    small.fill()
    reply = small.wait(identity)
    assert reply["status"] == "success" and reply["receipt"]["error"], reply["receipt"]
    assert small.wait_for_log("Execution is not recorded")["execution"] == identity
    assert small.get(f"/v1/history/{identity}").json().get("status") != "success"
    small.empty()
    small.recorded(identity, "success")
    assert small.execute("print(3)").json()["receipt"]["seq"] > 0


def test_the_chain_is_whole_after_it(small):
    identity = small.begin(seconds=1)
    small.fill()
    small.wait(identity)
    small.empty()
    small.recorded(identity, "success")
    assert small.get("/v1/audit/verify").json()["ok"]
