"""nacre exec on a host with cgroup version 2 and an older kernel, which is a QEMU guest."""

import json
import sys

import pytest

from conftest import BUILD, NACRE, ROOT

sys.path.insert(0, str(ROOT / "tests/guest"))
import guest  # noqa: E402

COMMANDS = {
    "plain": "-- id -u",
    "heap": "--memory 32MB -- sh -c 'x=x; while :; do x=$x$x; done'",
    "files": "--memory 32MB --disk 200MB -- dd if=/dev/zero of=/tmp/x bs=1M count=100",
    "pids": "--pids 8 -- sh -c 'i=0; while [ $i -lt 20 ]; do sleep 1 & i=$((i + 1)); done 2>/dev/null; wait'",
    "timeout": "--timeout 500ms -- sh -c 'trap \"\" TERM; (setsid sleep 100 &); sleep 100'",
    "disk": "--disk 1MB -- dd if=/dev/zero of=/workspace/x bs=64k count=100",
    "root": "--user root -- sh -c 'id -u; touch a; chown 33 a; stat -c %u a; grep CapEff /proc/self/status; ls /proc/1 2>/dev/null || echo none; touch /usr/x 2>/dev/null || echo held'",
    "writable": "--user root --writable-root -- sh -c 'touch /usr/x; echo made' 2>/dev/null",
}
SCRIPT = "\n".join(f"nacre exec --json {command}; echo =" for command in COMMANDS.values()) + """
su nobody -s /bin/sh -c 'nacre exec --json -- id -u'; echo =
find /sys/fs/cgroup -name 'nacre-*'; ls /run/nacre/spawners | grep sp_; ls /tmp | grep nacre-[0-9]; ps | grep -c '[s]leep'
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    try:
        parts = guest.boot(tmp_path_factory.mktemp("guest"), NACRE, "mkdir -p /run\n" + SCRIPT,
                           programs=(BUILD / "nacre-spawner", BUILD / "nacre-init", BUILD / "nacre-files", BUILD / "nacre-sudo")).split("=\n")
    except guest.Missing as reason:
        pytest.skip(str(reason))
    answers = {name: json.loads(text) for name, text in zip([*COMMANDS, "nobody"], parts)}
    return {**answers, "left": parts[-1]}


def test_root_of_the_box(answers):
    """As on newer kernels; and where the file system of /usr (here one in memory) cannot show another owner, its root cannot be written to, and that is said."""
    assert answers["root"]["stdout"].split("\n")[:5] == ["0", "33", "CapEff:\t00000000000000fb", "none", "held"], answers["root"]
    refused = answers["writable"]
    assert refused.get("stdout", "") == "" and "map the owner" in json.dumps(refused), refused


@pytest.mark.parametrize("name, status", [("plain", "success"), ("nobody", "success"), ("heap", "memory_limit"),
                                          ("files", "memory_limit"), ("timeout", "timeout"), ("disk", "error")])
def test_status(answers, name, status):
    assert answers[name]["status"] == status, answers[name]


def test_sandbox_user(answers):
    assert answers["plain"]["stdout"] == answers["nobody"]["stdout"] == "1000\n"


def test_process_limit_is_hit_and_survived(answers):
    assert answers["pids"]["limits"]["hit"] == ["pids"], answers["pids"]


def test_memory_peak_is_within_the_limit(answers):
    assert 16 << 20 < answers["files"]["usage"]["memory_peak_bytes"] <= 32 << 20


def test_nothing_is_left(answers):
    assert answers["left"] == "0\n"
