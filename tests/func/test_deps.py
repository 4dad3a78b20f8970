"""tools/deps, with an apt of the test's own that writes down what it is asked for."""

import os
import pathlib
import subprocess

import pytest

from conftest import ROOT

DEPS = ROOT / "tools/deps"


@pytest.fixture
def machine(tmp_path):
    """A directory of programs that plays the machine; returns a runner of tools/deps there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "awk", "dirname", "id", "cat", "mktemp", "rm", "printf"):
        real = next(path for directory in ("/usr/bin", "/bin") if (path := pathlib.Path(directory) / name).exists())
        (programs / name).symlink_to(real)
    log = tmp_path / "apt.log"
    log.touch()

    def add(name, script):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    def run(*groups):
        done = subprocess.run(["sh", DEPS, *groups], env={"PATH": str(programs), "TMPDIR": str(tmp_path), "LOG": str(log)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        done.asked = log.read_text().splitlines()
        return done

    run.add = add
    return run


def test_nothing_to_do_is_silent(machine):
    machine.add("dpkg-query", "echo installed")
    machine.add("apt-get", 'echo "$@" >>"$LOG"')
    done = machine("build", "test")
    assert (done.returncode, done.stdout, done.stderr, done.asked) == (0, "", "", [])


def test_only_what_is_missing_is_installed_without_a_question(machine):
    machine.add("dpkg-query", 'case "$*" in *meson*|*libyaml-dev*) exit 1;; esac; echo installed')
    machine.add("apt-get", 'echo "$DEBIAN_FRONTEND $@" >>"$LOG"')
    machine.add("sudo", 'shift; exec "$@"')
    done = machine("build")
    assert done.returncode == 0
    assert done.stderr == "tools/deps: installing meson libyaml-dev\n"
    assert done.asked == ["noninteractive install -y --no-install-recommends meson libyaml-dev"]


def test_lists_are_fetched_when_the_first_try_fails(machine):
    machine.add("dpkg-query", "exit 1")
    machine.add("apt-get", 'echo "$1" >>"$LOG"; [ "$1" = update ] || [ "$(cat "$LOG" | awk \'END { print NR }\')" = 3 ]')
    machine.add("sudo", 'shift; exec "$@"')
    done = machine("cover")
    assert done.returncode == 0, done.stderr
    assert done.asked == ["install", "update", "install"]


def test_failure_shows_what_apt_said(machine):
    machine.add("dpkg-query", "exit 1")
    machine.add("apt-get", 'echo "E: no network"; exit 100')
    machine.add("sudo", 'shift; exec "$@"')
    done = machine("cover")
    assert done.returncode == 1
    assert "E: no network" in done.stderr and "could not install gcovr" in done.stderr


def test_without_apt_the_list_is_printed(machine):
    done = machine("build")
    assert done.returncode == 1
    assert "this system has no apt" in done.stderr
    assert "  libjansson-dev\n" in done.stderr and "'cc' is missing" in done.stderr
    for name in ("cc", "meson", "ninja", "pkg-config"):
        machine.add(name, "true")
    assert machine("build").returncode == 0


def test_ordinary_user_without_sudo_is_told_the_command(machine):
    machine.add("dpkg-query", "exit 1")
    machine.add("apt-get", 'echo "$@" >>"$LOG"')
    (pathlib.Path(machine.add.__closure__[0].cell_contents) / "id").unlink()
    machine.add("id", "echo 1000")
    done = machine("cover")
    assert done.returncode == 1 and done.asked == []
    assert "sudo apt-get install --no-install-recommends gcovr" in done.stderr


def test_wrong_group(machine):
    assert machine("nonsense").returncode == 2
    done = machine()
    assert done.returncode == 2 and "groups: build test check cover bench " in done.stderr
