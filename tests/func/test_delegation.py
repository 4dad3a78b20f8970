"""Control groups that an administrator has handed to an ordinary user hold that user's boxes."""

import json
import os
import pathlib
import subprocess

import pytest

USER = 1000
CONTROLLERS = ("memory", "pids", "cpu", "cpuacct", "freezer")


def own_group(controller):
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return pathlib.Path("/sys/fs/cgroup") / controller / path.lstrip("/")
    return None


@pytest.fixture
def delegated(as_root):
    """A group of version 1 in each hierarchy, the user's own; yields what puts a process there."""
    groups = [own_group(controller) for controller in CONTROLLERS]
    if not all(group and group.is_dir() for group in groups):
        pytest.skip("no controllers of version 1 here; version 2 is tested in a guest")
    made = [group / f"nacre-test-{os.getpid()}" for group in groups]
    for group in made:
        group.mkdir()
        for path in (group, *group.iterdir()):
            os.chown(path, USER, USER)

    def join():
        for group in made:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    yield join
    for group in made:
        left = [path.name for path in group.iterdir() if path.is_dir()]
        group.rmdir()
        assert not left, f"groups are left behind: {left}"


def run(programs, *args, join=None):
    words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", programs / "nacre", "exec", *args]
    return subprocess.run(words, preexec_fn=join, capture_output=True, text=True, timeout=60, cwd="/",
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})


def test_limits_of_an_ordinary_user_hold(delegated, programs):
    done = run(programs, "--memory", "64MB", "--cpus", "0.5", "--pids", "20", "--json", "--", "python3", "-c",
               "held = bytearray(100 << 20)", join=delegated)
    answer = json.loads(done.stdout)
    assert answer["status"] == "memory_limit", done.stderr
    assert [answer["strength"][name] for name in ("memory", "cpu", "pids")] == ["full"] * 3


def test_without_delegation_a_named_limit_is_refused(programs):
    done = run(programs, "--memory", "64MB", "--", "true")
    assert done.returncode == 125 and "Option '--memory': no control group can hold this limit" in done.stderr


def test_groups_that_are_mounted_elsewhere(as_root, programs, tmp_path):
    """They are looked for where everybody has them, and then among all mounts."""
    words = ["exec", "--memory", "32MB", "--json", "--", "python3", "-c", "held = bytearray(100 << 20)"]
    script = 'mount --move /sys/fs/cgroup "$1" && shift && exec "$@"'
    usual = subprocess.run([programs / "nacre", *words], capture_output=True, text=True, timeout=60)
    moved = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", tmp_path, programs / "nacre", *words],
                           capture_output=True, text=True, timeout=60)
    answers = [json.loads(done.stdout) for done in (usual, moved)]
    assert [answer["status"] for answer in answers] == ["memory_limit"] * 2, (usual, moved)
    assert answers[0]["strength"] == answers[1]["strength"]
