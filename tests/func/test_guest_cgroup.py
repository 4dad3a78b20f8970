"""The groups of boxes on cgroup version 2: the unit test of them, in a QEMU guest."""

import subprocess
import sys

import pytest

from conftest import BUILD, NACRE, ROOT

sys.path.insert(0, str(ROOT / "tests/guest"))
import guest  # noqa: E402

TEST = BUILD / "tests/unit/test-cgroup-box"

# once at the top, once from a group that holds processes and so cannot hand controllers down
SCRIPT = """
export NACRE_TESTS_MUST_RUN=1
test-cgroup-box 2>&1; echo "ended with $?"; echo =
mkdir /sys/fs/cgroup/own
echo 0 >/sys/fs/cgroup/own/cgroup.procs
test-cgroup-box 2>&1; echo "ended with $?"; echo =
find /sys/fs/cgroup -name 'nacre-*'
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    if not TEST.exists():
        subprocess.run(["ninja", "-C", BUILD, TEST.relative_to(BUILD)], check=True, capture_output=True)
    try:
        return guest.boot(tmp_path_factory.mktemp("guest"), NACRE, SCRIPT, programs=[TEST]).split("=\n")
    except guest.Missing as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("place", [0, 1], ids=["at the top", "in a group with processes"])
def test_groups_of_version_2(answers, place):
    lines = [line for line in answers[place].split("\n") if not line.startswith("[=====")]
    assert "ended with 0" in lines, answers[place]


def test_nothing_is_left(answers):
    assert answers[-1] == ""
