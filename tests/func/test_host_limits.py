"""Hosts whose own limits are below ours: what is named is refused, what is not is what there is, and readiness tries what clients get."""

import json
import subprocess

import pytest

from conftest import NACRE, environment
from serving import Daemon

CASES = {"files": "--nofile=1000:1000", "few_files": "--nofile=256:256", "core": "--core=0:0", "locked": "--memlock=4096:4096", "signals": "--sigpending=200:200",
         "stack": "--stack=4194304:4194304"}


@pytest.fixture
def below(as_root, tmp_path):
    def run(limit, *args):
        return subprocess.run(["prlimit", limit, NACRE, *args], env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    return run


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tier", ["container", "process"])
def test_defaults_are_what_there_is(below, name, tier):
    done = below(CASES[name], "exec", "--json", "--tier", tier, "--", "true")
    assert done.returncode == 0 and json.loads(done.stdout)["status"] == "success", done


def test_by_a_user(nacre_by, programs, tmp_path):
    nacre_by("user")
    piped = open("/proc/sys/kernel/core_pattern").read().startswith("|")
    for name, limit in CASES.items():
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", limit, programs / "nacre", "exec", "--", "true"],
                              env=environment(tmp_path), cwd="/", capture_output=True, text=True, timeout=60)
        # nothing runs whose crash would start the host's handler, and it is said
        assert done.returncode == 0 or (name == "core" and piped and "ulimit -Hc" in done.stderr), (name, done)


def test_what_is_told_is_what_is_held(below):
    reply = json.loads(below("--nofile=1000:1000", "exec", "--json", "--", "sh", "-c", "ulimit -Hn").stdout)
    assert reply["stdout"] == "1000\n"
    done = below("--nofile=1000:1000", "run", "--json", "--lang", "shell", "-c", "ulimit -Hn")
    reply = json.loads(done.stdout)
    assert reply["output"] == "1000\n" and reply["limits"]["open_files"] == 1000, reply


def test_what_is_named_is_refused(below):
    done = below("--nofile=1000:1000", "exec", "--files", "1001", "--", "true")
    assert done.returncode == 125 and "at most" in done.stderr and "1000" in done.stderr, done
    assert below("--nofile=1000:1000", "exec", "--files", "1000", "--", "true").returncode == 0


def test_the_daemon(as_root, tmp_path):
    with Daemon(tmp_path, prefix=["prlimit", "--nofile=1000:1000"]) as daemon:
        assert daemon.get("/readyz").status == 200
        assert daemon.execute("print(1)").json()["output"] == "1\n"
        refused = daemon.execute("print(1)", limits={"open_files": 1024})
        assert refused.json()["status"] == "blocked" and "at most 1000" in refused.json()["error"], refused.body
        made = daemon.post("/v1/sandboxes", {"limits": {"open_files": 2000}})
        assert made.status == 403 and "at most 1000" in made.json()["detail"], made.body
        assert daemon.post("/v1/sandboxes", {}).status == 201
