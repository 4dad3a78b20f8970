"""The groups of boxes on cgroup version 2, and on version 1 alone: the unit tests of them, in a QEMU guest."""

import subprocess
import sys

import pytest

from conftest import BUILD, NACRE, ROOT

sys.path.insert(0, str(ROOT / "tests/guest"))
import guest  # noqa: E402

TESTS = [BUILD / "tests/unit/test-cgroup-box", BUILD / "tests/unit/test-cgroup-user"]

# once at the top, once from a group that holds processes and so cannot hand controllers down; then
# with a delegated group, as a user
SCRIPT = """
export NACRE_TESTS_MUST_RUN=1
test-cgroup-box 2>&1; echo "ended with $?"; echo =
mkdir /sys/fs/cgroup/own
echo 0 >/sys/fs/cgroup/own/cgroup.procs
test-cgroup-box 2>&1; echo "ended with $?"; echo =
echo 0 >/sys/fs/cgroup/cgroup.procs
test-cgroup-user 2>&1; echo "ended with $?"; echo =
find /sys/fs/cgroup -name 'nacre-*' -o -name 'ut_*'
"""

# once with cpu and cpuacct in hierarchies of their own, once together
SCRIPT_V1 = """
export NACRE_TESTS_MUST_RUN=1
umount /sys/fs/cgroup
for controllers in memory pids freezer {cpu}; do
    mkdir /tmp/$controllers
    mount -t cgroup -o $controllers $controllers /tmp/$controllers
done
test-cgroup-box 2>&1; echo "ended with $?"; echo =
test-cgroup-user 2>&1; echo "ended with $?"; echo =
find /tmp -name 'nacre-*' -o -name 'ut_*'
"""


def run(directory, script):
    names = [test.relative_to(BUILD) for test in TESTS]
    subprocess.run(["ninja", "-C", BUILD, *names], check=True, capture_output=True)
    try:
        return guest.boot(directory, NACRE, script, programs=TESTS).split("=\n")
    except guest.Missing as reason:
        pytest.skip(str(reason))


def check(answer):
    lines = [line for line in answer.split("\n") if not line.startswith("[=====")]
    assert "ended with 0" in lines, answer


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return run(tmp_path_factory.mktemp("guest"), SCRIPT)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["at the top", "in a group with processes", "delegated to a user"])
def test_groups_of_version_2(answers, place):
    check(answers[place])


def test_nothing_is_left(answers):
    assert answers[-1] == ""


@pytest.mark.parametrize("cpu", ["cpu cpuacct", "cpu,cpuacct"])
def test_groups_of_version_1_alone(tmp_path, cpu):
    box, user, left = run(tmp_path, SCRIPT_V1.format(cpu=cpu))
    check(box)
    check(user)
    assert left == ""
