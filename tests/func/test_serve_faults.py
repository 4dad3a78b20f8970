"""What the host runs out of: a clear refusal with its reason, and all is well again when there is more, without a restart."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import NACRE
from leftovers import descendants, outlivers
from serving import Daemon
from test_sandboxes import Sandbox

PIDS = "/sys/fs/cgroup/pids"
MEMORY = "/sys/fs/cgroup/memory"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def is_problem(answer, status, code, *words):
    assert answer.status == status and answer.headers["content-type"] == "application/problem+json", answer.body
    problem = answer.json()
    assert problem["status"] == status and problem["code"] == code and problem["request_id"] and problem["remedy"], problem
    assert all(word in problem["detail"] for word in words), problem
    return problem


@contextlib.contextmanager
def group(controller, name):
    """A control group of the test's own, and what starts a program in it."""
    path = f"{controller}/nacre-test-{name}-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError as error:
        pytest.skip(f"no control group: {error}")
    try:
        yield path, ["sh", "-c", f'echo $$ >{path}/cgroup.procs; exec "$@"', "sh"]
    finally:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                for below, _, _ in sorted(os.walk(path), reverse=True):
                    os.rmdir(below)
                break
            except OSError:
                time.sleep(0.1)


def all_is_well(daemon, box=None):
    assert daemon.execute("echo well", "shell").json()["output"] == "well\n"
    made = Sandbox(daemon)
    assert made.run("echo well")["stdout"] == "well\n" and made.ask("DELETE").status == 204
    if box:
        assert box.run("echo well")["stdout"] == "well\n"


@pytest.fixture
def small_disk(tmp_path):
    """A state directory with a disk of its own."""
    state = tmp_path / "state"
    state.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=755", "none", state], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount: {done.stderr}")
    yield state
    subprocess.run(["umount", "-l", state])


def fill(state, name="fill"):
    path = state / name
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 4096):
        try:
            while True:
                os.write(fd, bytes(size))
        except OSError:
            pass
    os.close(fd)
    return path


def test_a_full_disk(tmp_path, small_disk):
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = box.run("sleep 1; echo end", background=True)
        job = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 1; echo job"}).json()["id"]
        all_is_well(daemon, box)
        filled = fill(small_disk)
        for refused in (daemon.execute("echo x", "shell"), daemon.post("/v1/jobs", {"language": "shell", "code": "echo x"}),
                        daemon.post("/v1/sandboxes", {}), box.ask("POST", "/commands", {"command": "echo x"})):
            is_problem(refused, 507, "state_full", "state directory is full")
            assert refused.headers["retry-after"]
        # what had begun goes on, and is recorded as it ended
        assert box.wait(running["id"])["stdout"] == "end\n"
        done = daemon.get(f"/v1/jobs/{job}/wait?timeout=10").json()["reply"]
        assert done["output"] == "job\n" and done["receipt"]["seq"] > 0, done
        assert daemon.get("/healthz").status == 200 and daemon.get("/v1/version").status == 200
        assert daemon.get("/v1/history").status in (200, 500, 507)
        filled_again = fill(small_disk, "again")  # with what the reserve gave for those ends and they did not need
        full = subprocess.run([NACRE, "key", "create"], env=daemon.env, capture_output=True, text=True)
        assert full.returncode == 125 and "No space left" in full.stderr
        filled.unlink()
        filled_again.unlink()
        all_is_well(daemon, box)
        assert daemon.get(f"/v1/history/{job}").json()["status"] == "success"
        noted = subprocess.run([NACRE, "audit", "log"], env=daemon.env, capture_output=True, text=True).stdout
        assert running["id"] in noted
        after = daemon.execute("echo again", "shell").json()
        assert after["receipt"]["seq"] > 0 and daemon.get(f"/v1/history/{after['id']}").json()["status"] == "success"
        assert daemon.get("/v1/audit/verify").json()["ok"]


def test_a_full_disk_and_a_daemon_that_dies(tmp_path, small_disk):
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = box.run("sleep 1; echo end", background=True)
        filled = fill(small_disk)
        daemon.die()
        assert box.wait(running["id"])["stdout"] == "end\n"
        is_problem(daemon.execute("echo x", "shell"), 507, "state_full")
        filled.unlink()
        all_is_well(daemon, box)
        assert daemon.get("/v1/audit/verify").json()["ok"]


def test_no_free_pids(tmp_path):
    with group(PIDS, "pids") as (path, prefix):
        with Daemon(tmp_path, prefix=prefix) as daemon:
            box = Sandbox(daemon)
            all_is_well(daemon, box)
            with open(f"{path}/pids.max", "w") as file:
                file.write("1")
            for _ in range(300):  # until all that were prepared are used up
                answer = daemon.execute("echo x", "shell")
                if answer.status != 200:
                    break
            problem = is_problem(answer, 503, "not_executed", "The box could not be made", "temporarily unavailable")
            assert problem["reply"]["status"] == "internal_error"
            assert daemon.get(f"/v1/history/{problem['reply']['id']}").json()["status"] == "internal_error"
            is_problem(daemon.post("/v1/sandboxes", {}), 503, "busy", "temporarily unavailable")
            is_problem(box.ask("POST", "/commands", {"command": "echo x"}), 503, "busy", "temporarily unavailable")
            is_problem(box.write("/workspace/f", b"x"), 503, "busy")
            job = daemon.post("/v1/jobs", {"language": "shell", "code": "echo x"}).json()
            assert daemon.get(f"/v1/jobs/{job['id']}/wait?timeout=10").json()["status"] == "internal_error"
            time.sleep(5.1)  # it looks that often
            assert daemon.get("/readyz").status == 503
            with open(f"{path}/pids.max", "w") as file:
                file.write("max")
            all_is_well(daemon, box)
            assert box.ask("DELETE").status == 204
            time.sleep(5.1)
            assert daemon.get("/readyz").status == 200


def test_no_memory(tmp_path):
    """The group that all of it is in has less than a box may take: the box ends, and nobody else."""
    with group(MEMORY, "memory") as (path, prefix):
        with Daemon(tmp_path, prefix=prefix) as daemon:
            box = Sandbox(daemon, limits={"memory_mb": 256, "disk_mb": 64})
            all_is_well(daemon, box)
            with open(f"{path}/memory.limit_in_bytes", "w") as file:
                file.write(str(int(open(f"{path}/memory.usage_in_bytes").read()) + (24 << 20)))
            pid = daemon.pid
            reply = daemon.execute("x = bytearray(200 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('done')", limits={"memory_mb": 256})
            assert reply.status in (200, 503), reply.body
            told = reply.json().get("reply", reply.json())
            assert told["status"] in ("memory_limit", "killed", "internal_error") and told["error"], told
            assert "done" not in told["output"]
            hungry = box.ask("POST", "/commands", {"command": "python3 -c 'x = b\"x\" * (150 << 20); print(1)'"})
            assert hungry.status in (200, 503) and hungry.json().get("stdout", "") == "", hungry.body
            with open(f"{path}/memory.limit_in_bytes", "w") as file:
                file.write("-1")
            all_is_well(daemon)
            assert daemon.pid == pid and os.path.exists(f"/proc/{pid}")


def test_no_descriptors_are_left(tmp_path):
    """Neither for pipes nor for boxes: what does not fit is refused, and leaves nothing behind."""
    limits, held = {"memory_mb": 32, "disk_mb": 4, "open_files": 64}, []
    with Daemon(tmp_path, prefix=["prlimit", "--nofile=200:200"]) as daemon:
        for _ in range(3):
            made, answer = 0, None
            while made < 60:
                answer = daemon.post("/v1/sandboxes", {"limits": limits})
                if answer.status != 201:
                    break
                made += 1
            assert made > 0
            is_problem(answer, 503, "no_descriptors", "Too many open files")
            # what was made last may let go of some that it needed for its birth: that is room for one more
            more = [daemon.post("/v1/sandboxes", {"limits": limits}).status for _ in range(20)]
            made += more.count(201)
            assert more.count(503) >= 17 and more[-1] == 503, more
            assert daemon.ask("DELETE", "/v1/sandboxes").json()["destroyed"] == made
            time.sleep(1)
            held.append(len(os.listdir(f"/proc/{daemon.process.pid}/fd")))
        assert held[2] <= held[0] + 5, held
        assert Sandbox(daemon, limits=limits).run("echo well")["stdout"] == "well\n"


def test_the_spawner_is_killed(tmp_path):
    """Whoever waits is told why, and all goes on without being started again; three times."""
    told = []
    with Daemon(tmp_path, respawn=True) as daemon:
        for round_ in range(3):
            waiting = [threading.Thread(target=lambda: told.append(daemon.execute("sleep 60", "shell"))) for _ in range(4)]
            for one in waiting:
                one.start()
            until = time.monotonic() + 10
            while b"\nnacre_executions_running 4\n" not in daemon.get("/metrics").body:
                assert time.monotonic() < until
                time.sleep(0.02)
            spawner, = subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout.split()
            os.kill(int(spawner), signal.SIGKILL)
            for one in waiting:
                one.join(20)
            assert len(told) == 4 * (round_ + 1)
            assert {(answer.status, answer.json()["code"], answer.json()["detail"]) for answer in told} == {(503, "lost", "The process that holds the boxes has died")}
            refused = 0
            while True:
                answer = daemon.execute("echo on", "shell")  # no connection is refused meanwhile
                if answer.status == 200:
                    break
                assert answer.status == 503 and answer.headers["retry-after"], answer.body
                refused += 1
                assert refused < 400
                time.sleep(0.05)
            assert answer.json()["output"] == "on\n" and daemon.get("/readyz").status == 200
            daemon.pid = [record["pid"] for record in daemon.log() if record["message"] == "Listening"][-1]
        assert len([record for record in daemon.log() if record["message"] == "The spawner has died and is started again"]) == 3
        rows = daemon.get("/v1/history?limit=100").json()["executions"]
        assert {answer.json()["reply"]["id"] for answer in told} <= {row["id"] for row in rows}
        assert daemon.get("/v1/audit/verify").json()["ok"]
        left = descendants(daemon.process.pid)
        os.kill(daemon.process.pid, signal.SIGTERM)  # passed on
        assert daemon.process.wait(30) == 0
    assert not outlivers(left)


def test_whose_parent_is_killed_ends_well(tmp_path):
    with Daemon(tmp_path, respawn=True) as daemon:
        left = descendants(daemon.process.pid)
        daemon.process.kill()
        daemon.process.wait()
        assert not outlivers(left)
        assert [record for record in daemon.log() if record["message"] == "Stopping"]


def test_the_next_one_waits_for_who_was_killed(tmp_path):
    """The first process of a daemon is killed, and the next daemon is begun at once, on the same address."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = Daemon(tmp_path / "one", "--no-warm", respawn=True)
    os.kill(one.process.pid, signal.SIGKILL)
    with Daemon(tmp_path / "two", "--no-warm", listen=f"127.0.0.1:{one.port}") as two:
        assert two.port == one.port and two.get("/healthz").status == 200
    assert one.process.wait(timeout=20) == -signal.SIGKILL


def test_an_address_that_stays_in_use_is_an_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([NACRE, "serve", "--listen", address], env={**os.environ, "NACRE_STATE": str(tmp_path / "state")},
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "Address already in use" in done.stderr and "waiting" in done.stderr
