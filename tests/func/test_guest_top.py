"""nacre top and the monitor on cgroup version 2, and on version 1 alone: in a QEMU guest."""

import json
import subprocess
import sys

import pytest

from conftest import BUILD, NACRE, ROOT

sys.path.insert(0, str(ROOT / "tests/guest"))
import guest  # noqa: E402

TEST = BUILD / "tests/unit/test-monitor"

V1 = """
umount /sys/fs/cgroup
for controllers in memory pids freezer cpu,cpuacct; do
    mkdir /tmp/$controllers
    mount -t cgroup -o $controllers $controllers /tmp/$controllers
done
"""
SCRIPT = """
export NACRE_TESTS_MUST_RUN=1
mkdir -p /run
test-monitor 2>&1; echo "ended with $?"; echo =
nacre exec --memory 64MB -- sh -c 'sleep 100; : limited' &
su nobody -s /bin/sh -c 'nacre exec --floor none -- sh -c "sleep 100; : by-nobody"' &
i=0
while [ $i -lt 50 ] && ! { ps | grep -q '[:] limited' && ps | grep -q '[:] by-nobody'; }; do
    sleep 0.2
    i=$((i + 1))
done
sleep 1
nacre top --json --once
"""


@pytest.fixture(scope="module", params=["", V1], ids=["v2", "v1"])
def answers(request, tmp_path_factory):
    subprocess.run(["ninja", "-C", BUILD, TEST.relative_to(BUILD)], check=True, capture_output=True)
    try:
        return guest.boot(tmp_path_factory.mktemp("guest"), NACRE, request.param + SCRIPT,
                          programs=(BUILD / "nacre-spawner", BUILD / "nacre-init", BUILD / "nacre-files", TEST)).split("=\n")
    except guest.Missing as reason:
        pytest.skip(str(reason))


def test_monitor(answers):
    """The mark that divides the answers also ends some of cmocka's lines."""
    assert "ended with 0" in "".join(answers[:-1]).split("\n"), answers


def test_boxes(answers):
    boxes = {box["command"].split()[-1]: box for box in json.loads(answers[-1])["boxes"] if box["state"] == "running"}
    assert set(boxes) == {"limited", "by-nobody"}, boxes
    limited = boxes["limited"]
    assert limited["spawner"].startswith("sp_") and limited["box"].startswith("bx_")
    assert limited["memory_limit_bytes"] == 64 << 20
    assert 0 < limited["memory_bytes"] <= limited["memory_peak_bytes"]
    assert limited["threads"] >= 1
