"""--floor: the least strength. It raises what Nacre wants anyway, never lowers it, and names what is missing."""

import json
import subprocess

import pytest

from conftest import NOBODY, environment

PROPERTIES = ("filesystem", "identity", "processes", "network", "ipc", "syscalls", "access", "memory", "cpu", "pids", "disk", "io", "kill",
              "hypervisor")
PREFIX = {"root": [], "user": ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]}
GRADES = ("none", "reduced", "full")


@pytest.fixture(params=PREFIX)
def box(request, programs, tmp_path):
    def run(*args):
        return subprocess.run([*PREFIX[request.param], programs / "nacre", "exec", *args], env=environment(tmp_path), cwd="/", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30)

    run.mode = request.param
    return run


@pytest.mark.parametrize("tier", ["container", "process"])
def test_each_property_at_each_grade(box, tier):
    """What a result says of itself is what a floor may ask for: at it or below it runs, above it is refused by name."""
    strength = json.loads(box("--json", "--tier", tier, "--", "true").stdout)["strength"]
    assert set(strength) == set(PROPERTIES)
    for name in PROPERTIES:
        for grade in GRADES:
            done = box("--tier", tier, "--floor", f"{name}={grade}", "--", "echo", "ran")
            if GRADES.index(grade) <= GRADES.index(strength[name]):
                assert (done.returncode, done.stdout) == (0, "ran\n"), (name, grade, done.stderr)
            else:
                assert (done.returncode, done.stdout) == (125, ""), (name, grade)
                assert f"The floor wants {name}={grade}, and a {tier} box here has it {strength[name]}" in done.stderr, done.stderr


def test_a_lower_one_does_not_lower(box):
    """The higher of two counts, whatever their order; none takes nothing away."""
    for floors in (["hypervisor=full", "hypervisor=none"], ["hypervisor=none", "hypervisor=full"], ["hypervisor=full", "none"], ["none", "hypervisor=full"]):
        done = box(*(word for floor in floors for word in ("--floor", floor)), "--", "echo", "ran")
        assert done.returncode == 125 and done.stdout == "" and "hypervisor=full" in done.stderr, floors
    for floor in ("none", *(f"{name}=none" for name in PROPERTIES)):
        strength = json.loads(box("--json", "--floor", floor, "--", "true").stdout)["strength"]
        assert strength == json.loads(box("--json", "--", "true").stdout)["strength"], floor


def test_full_for_all(box):
    """Everything that a box of ours can have in full: for root that is all but a hypervisor and disk bandwidth."""
    done = box("--floor", "full", "--", "echo", "ran")
    strength = json.loads(box("--json", "--", "true").stdout)["strength"]
    lacking = [name for name in PROPERTIES if strength[name] != "full" and name not in ("hypervisor", "io")]
    if lacking:
        assert done.returncode == 125 and done.stdout == "" and f"The floor wants {lacking[0]}=full" in done.stderr, done
    else:
        assert done.stdout == "ran\n", done.stderr
    assert (box.mode == "root") == (not lacking), lacking


@pytest.mark.parametrize("floor", ["", "=", "full=", "=full", "memory", "memory=", "memory=Full", "Memory=full", "memory=full=full", "memory = full",
                                   "all=full", "memor=full", "memoryx=full", "3", "full,", "memory=full,cpu=full", "max", "memory=3"])
def test_bad_values(box, floor):
    done = box("--floor", floor, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (125, "") and "Option '--floor'" in done.stderr, done
