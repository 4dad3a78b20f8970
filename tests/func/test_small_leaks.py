"""Small things that a box could do, or that nobody saw: its place before the OOM killer, the host's name, who used the processor."""

import fcntl
import json
import os
import pathlib
import secrets
import time

import pytest

from serving import Daemon

LOWER = "for n in 0 -1 100 499; do echo $n >/proc/self/oom_score_adj; done 2>/dev/null; cat /proc/self/oom_score_adj"
ORPHAN = ("(sh -c 'sh -c \"echo \\$\\$ >pid; i=0; while [ \\$i -lt 400000 ]; do i=\\$((i+1)); done\" &'); while [ ! -s pid ]; do sleep 0.01; done; "
          "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done")


@pytest.fixture(params=["root", "user"])
def caller(request, nacre_by):
    return nacre_by(request.param)


def has_landlock(caller):
    return json.loads(caller("doctor", "--json").stdout)["strength"]["access"]["grade"] != "none"


def test_nobody_leaves_his_place_before_the_oom_killer(caller):
    if not has_landlock(caller):
        pytest.skip("nothing keeps a program from its own /proc without Landlock")
    for words in (("exec", "--"), ("exec", "--tier", "process", "--")):
        assert caller(*words, "sh", "-c", LOWER).stdout.strip() in ("500", ""), words
    assert caller("run", "--lang", "shell", "-c", LOWER).stdout == "500\n"


@pytest.mark.parametrize("tier", ["container", "process"])
def test_the_hosts_name_is_the_hosts(caller, tier):
    done = caller("exec", "--tier", tier, "--", "python3", "-c", "import os, socket; print(os.uname().nodename, socket.gethostname())")
    assert done.stdout == "nacre nacre\n" and os.uname().nodename not in done.stdout, done


@pytest.mark.parametrize("tier", ["container", "process"])
def test_who_is_nobodys_child_is_billed(caller, tier):
    """A grandchild whose parents have gone: without control groups nobody waits for it but process 1."""
    reply = json.loads(caller("exec", "--json", "--tier", tier, "--", "sh", "-c", ORPHAN).stdout)
    usage = reply["usage"]
    assert reply["status"] == "success" and usage["cpu_user_seconds"] + usage["cpu_system_seconds"] > 0.1, usage


def own_group(controller):
    """Where this process is, in the hierarchy of a controller."""
    for line in open("/proc/self/cgroup"):
        _, names, path = line.strip().split(":", 2)
        if controller in names.split(","):
            return pathlib.Path("/sys/fs/cgroup", controller) / path.lstrip("/")
        if names == "" and pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            return pathlib.Path("/sys/fs/cgroup") / path.lstrip("/")
    pytest.skip("no control groups here")


def test_groups_of_who_has_gone_without_a_trace(as_root, tmp_path):
    """A spawner whose lock somebody removed, or that had another /run: its groups go if nobody is in them, or holds them."""
    top = own_group("memory")
    made = {name: top / f"nacre-sp_{secrets.token_hex(16)}" for name in ("old", "fresh", "held", "doctors")}
    made["doctors"] = top / f"nacre-pr_{secrets.token_hex(16)}"
    held = None
    try:
        for path in made.values():
            path.mkdir()
        for name in ("old", "held", "doctors"):
            os.utime(made[name], (time.time() - 3600,) * 2)
        held = os.open(made["held"], os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_SH)
        with Daemon(tmp_path) as daemon:
            assert daemon.execute("print(1)").json()["output"] == "1\n"
            until = time.monotonic() + 20
            while made["old"].exists() and time.monotonic() < until:
                time.sleep(0.05)
            assert [name for name, path in made.items() if path.exists()] == ["fresh", "held", "doctors"]
            os.utime(made["fresh"], (time.time() - 3600,) * 2)
        (tmp_path / "next").mkdir()
        with Daemon(tmp_path / "next") as daemon:
            until = time.monotonic() + 20
            daemon.execute("print(1)")
            while made["fresh"].exists() and time.monotonic() < until:
                time.sleep(0.05)
            assert not made["fresh"].exists() and made["held"].exists()
    finally:
        if held is not None:
            os.close(held)
        for path in made.values():
            if path.exists():
                path.rmdir()


def test_a_living_spawner_is_known_by_its_group(as_root, tmp_path):
    with Daemon(tmp_path) as first:
        first.execute("print(1)")
        groups = [path for path in own_group("memory").glob("nacre-sp_*") if path.is_dir()]
        for path in groups:
            os.utime(path, (time.time() - 3600,) * 2)
        (tmp_path / "other").mkdir()
        with Daemon(tmp_path / "other") as second:
            second.execute("print(1)")
            assert first.execute("print(2)").json()["output"] == "2\n"
        assert groups
