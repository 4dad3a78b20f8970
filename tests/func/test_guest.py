"""The doctor on a host with cgroup version 2 and an older kernel, which is a QEMU guest."""

import json
import sys

import jsonschema
import pytest

from conftest import NACRE, ROOT

sys.path.insert(0, str(ROOT / "tests/guest"))
import guest  # noqa: E402

SCHEMA = json.loads((ROOT / "docs/doctor.schema.json").read_text())

SCRIPT = """
cat /sys/fs/cgroup/cgroup.subtree_control; echo =
nacre doctor --json; echo =
find /sys/fs/cgroup -name 'nacre-*'; cat /sys/fs/cgroup/cgroup.subtree_control; echo =
mkdir /sys/fs/cgroup/own
echo 0 >/sys/fs/cgroup/own/cgroup.procs
nacre doctor --json; echo =
su nobody -s /bin/sh -c 'nacre doctor --json'
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    try:
        parts = guest.boot(tmp_path_factory.mktemp("guest"), NACRE, SCRIPT).split("=\n")
    except guest.Missing as reason:
        pytest.skip(str(reason))
    before, top, after, own, nobody = parts
    answers = {name: json.loads(text) for name, text in (("top", top), ("own", own), ("nobody", nobody))}
    for answer in answers.values():
        jsonschema.validate(answer, SCHEMA)
        answer["probes"] = {probe["name"]: probe for probe in answer["probes"]}
    return {**answers, "before": before, "after": after}


def test_controllers_of_version_2(answers):
    answer = answers["top"]
    assert answer["host"]["cgroup"] == "v2"
    for name in ("memory", "cpu", "pids"):
        assert answer["strength"][name]["grade"] == "full", name
    for name in ("cgroup_memory", "cgroup_swap", "cgroup_cpu", "cgroup_pids"):
        assert answer["probes"][name]["ok"], name
    assert answer["probes"]["cgroup_kill"]["value"] == 2


def test_a_group_that_holds_processes_is_no_obstacle_for_root(answers):
    assert answers["own"]["probes"]["cgroup_memory"]["ok"]


def test_ordinary_user_has_no_groups_there_either(answers):
    answer = answers["nobody"]
    assert answer["host"]["user"] == "nobody"
    assert answer["strength"]["memory"]["grade"] == "reduced"
    assert answer["strength"]["filesystem"]["grade"] == "full"


def test_the_groups_are_as_they_were(answers):
    """Neither a group nor a controller that was handed down stays."""
    assert answers["after"] == answers["before"]


def test_older_landlock_is_reduced(answers):
    assert answers["top"]["host"]["kernel"].startswith("6.1.")
    assert answers["top"]["probes"]["landlock"]["value"] == 2
    assert answers["top"]["strength"]["access"]["grade"] == "reduced"


def test_no_disk_no_bandwidth_limit_and_no_kvm(answers):
    assert answers["top"]["strength"]["io"]["grade"] == "none"
    assert answers["top"]["strength"]["hypervisor"]["grade"] == "none"
    assert answers["top"]["tiers"]["container"]["grade"] == "full"
