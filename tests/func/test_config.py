"""nacre config, and where configuration comes from."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import NACRE, NOBODY, ROOT, environment, open_way

BAD = sorted((pathlib.Path(__file__).parent / "config-bad").iterdir())

SEED_POLICIES = """\
python:
  forbidden_imports:
    - os
    - subprocess
    - sys
    - socket
  forbidden_functions:
    - eval
    - exec
    - compile
  forbidden_patterns:
    - "__import__"
    - "globals()"
    - "locals()"

javascript:
  forbidden_patterns:
    - "require('fs')"
    - "require('child_process')"
    - "process.exit"
    - "eval("

shell:
  forbidden_commands:
    - rm
    - sudo
    - chmod
    - chown
  forbidden_patterns:
    - ">/dev/"
    - "curl"
    - "wget"
"""

SEED_LIMITS = """\
default_limits:
  memory_mb: 512
  cpu_cores: 1
  execution_time_seconds: 30
  max_processes: 5
  disk_mb: 100

language_specific:
  python:
    memory_mb: 512
    execution_time_seconds: 30
  javascript:
    memory_mb: 256
    execution_time_seconds: 15
  shell:
    memory_mb: 128
    execution_time_seconds: 10
"""


def show(nacre, *args, **options):
    done = nacre(*args, "config", "show", "--json", **options)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return answer, {(value["file"], value["key"]): value for value in answer["values"]}


def test_no_file_is_needed(nacre):
    done = nacre("config", "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Configuration is good: built-in values\n", "")
    answer, values = show(nacre)
    assert answer["dir"] is None
    assert values["resource_limits.yaml", "default_limits.memory_mb"] == {
        "file": "resource_limits.yaml", "key": "default_limits.memory_mb", "value": 512,
        "dir": None, "line": 0, "inherited": False}


def test_the_ordered_files_load_exactly_as_printed(nacre, tmp_path):
    (tmp_path / "security_policies.yaml").write_text(SEED_POLICIES)
    (tmp_path / "resource_limits.yaml").write_text(SEED_LIMITS)
    assert nacre("config", "check", tmp_path).returncode == 0
    _, values = show(nacre, "--config", tmp_path)

    def policy(key):
        return values["security_policies.yaml", key]["value"]

    assert policy("python.forbidden_imports") == ["os", "subprocess", "sys", "socket"]
    assert policy("python.forbidden_functions") == ["eval", "exec", "compile"]
    assert policy("python.forbidden_patterns") == ["__import__", "globals()", "locals()"]
    assert policy("javascript.forbidden_patterns") == [
        "require('fs')", "require('child_process')", "process.exit", "eval("]
    assert policy("shell.forbidden_commands") == ["rm", "sudo", "chmod", "chown"]
    assert policy("shell.forbidden_patterns") == [">/dev/", "curl", "wget"]

    def limit(key):
        return values["resource_limits.yaml", key]["value"]

    assert [limit(f"default_limits.{name}") for name in
            ("memory_mb", "cpu_cores", "execution_time_seconds", "max_processes", "disk_mb")] == [512, 1, 30, 5, 100]
    for language, memory, seconds in (("python", 512, 30), ("javascript", 256, 15), ("shell", 128, 10)):
        assert limit(f"language_specific.{language}.memory_mb") == memory
        assert limit(f"language_specific.{language}.execution_time_seconds") == seconds


def test_shipped_files_are_the_ordered_ones_and_load(nacre):
    assert (ROOT / "config/security_policies.yaml").read_text() == SEED_POLICIES
    assert (ROOT / "config/resource_limits.yaml").read_text() == SEED_LIMITS
    done = nacre("config", "check", ROOT / "config")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^  \S+ +read$", done.stdout, re.M)) == 4


def test_shipped_main_file_states_the_built_in_values(nacre):
    _, built_in = show(nacre)
    _, shipped = show(nacre, "--config", ROOT / "config")
    for key, value in built_in.items():
        if key[0] == "nacre.yaml":
            assert shipped[key]["value"] == value["value"]
            assert shipped[key]["line"] > 0 or value["value"] is None  # no path is built in


def test_show_says_where_each_value_came_from(nacre, tmp_path):
    (tmp_path / "resource_limits.yaml").write_text("default_limits:\n  cpu_cores: 0.5\n")
    answer, values = show(nacre, "--config", tmp_path)
    assert answer["dir"] == str(tmp_path)
    value = values["resource_limits.yaml", "default_limits.cpu_cores"]
    assert (value["value"], value["line"], value["dir"], value["inherited"]) == (0.5, 2, str(tmp_path), False)
    value = values["resource_limits.yaml", "language_specific.go.cpu_cores"]
    assert (value["value"], value["line"], value["inherited"]) == (0.5, 2, True)
    text = nacre("--config", tmp_path, "config", "show").stdout
    assert re.search(r"default_limits.cpu_cores +0.5 +line 2$", text, re.M)
    assert re.search(r"language_specific.go.cpu_cores +0.5 +line 2, from default_limits$", text, re.M)
    assert re.search(r"default_limits.memory_mb +512 +built in$", text, re.M)
    assert f"{tmp_path}/resource_limits.yaml\n" in text
    assert "nacre.yaml (not there, built-in values)\n" in text


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_bad_configuration_has_its_message(nacre, case):
    done = nacre("config", "check", case)
    expected = (case / "expected").read_text().replace("DIR", str(case))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    faults = json.loads(nacre("config", "check", "--json", case).stdout)
    assert faults["ok"] is False and "\n".join(faults["faults"]) + "\n" == expected
    # the same message stops every verb that works with the configuration
    done = nacre("--config", case, "config", "show")
    assert done.returncode == 125 and expected.splitlines()[0] in done.stderr


def test_there_are_enough_bad_configurations():
    assert len(BAD) >= 25


def test_one_fault_per_file_is_reported(nacre, tmp_path):
    (tmp_path / "nacre.yaml").write_text("colour: auto\n")
    (tmp_path / "resource_limits.yaml").write_text("limits: 1\n")
    done = nacre("config", "check", tmp_path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 2


def test_unreadable_things(nacre, tmp_path):
    target = tmp_path / "nacre.yaml"
    target.mkdir()
    assert f"{target}: found something that is no regular file" in nacre("config", "check", tmp_path).stderr
    target.rmdir()
    os.mkfifo(target)  # must not wait for a writer
    assert "no regular file" in nacre("config", "check", tmp_path).stderr
    target.unlink()
    target.write_text("color: auto\n")
    target.chmod(0o646)
    assert f"{target}: found a file that everybody may write (mode 0646)" in nacre("config", "check", tmp_path).stderr
    target.chmod(0o644)
    assert nacre("config", "check", tmp_path).returncode == 0
    target.write_text("# " + "x" * (256 * 1024))
    assert f"{target}: found more than 256 KiB" in nacre("config", "check", tmp_path).stderr
    target.write_bytes(b"color: \xff\n")
    assert f"{target}:1: not valid YAML" in nacre("config", "check", tmp_path).stderr
    done = nacre("config", "check", tmp_path / "missing")
    assert done.returncode == 1
    assert done.stderr == f"Configuration directory '{tmp_path}/missing': no such directory\n"


def test_unreadable_file_is_an_error_not_a_default(reachable_copy, tmp_path):
    tmp_path.chmod(0o755)
    open_way(tmp_path)
    (tmp_path / "nacre.yaml").write_text("color: never\n")
    (tmp_path / "nacre.yaml").chmod(0o600)
    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", reachable_copy,
                           "config", "check", tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/nacre.yaml: Permission denied\n"


def test_user_directory(nacre, tmp_path):
    below_home = tmp_path / ".config" / "nacre"
    below_xdg = tmp_path / "xdg" / "nacre"
    for directory, color in ((below_home, "never"), (below_xdg, "always")):
        directory.mkdir(parents=True)
        (directory / "nacre.yaml").write_text(f"color: {color}\n")
    if os.path.isdir("/etc/nacre"):
        pytest.skip("/etc/nacre exists here and comes first")
    assert show(nacre)[1]["nacre.yaml", "color"]["value"] == "never"
    xdg = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert show(nacre, env=xdg)[1]["nacre.yaml", "color"]["value"] == "always"
    # a relative path there counts as none
    assert show(nacre, env={"XDG_CONFIG_HOME": "xdg"}, cwd=tmp_path)[1]["nacre.yaml", "color"]["value"] == "never"
    # --config is the whole configuration: nothing is mixed in
    (tmp_path / "empty").mkdir()
    assert show(nacre, "--config", tmp_path / "empty")[1]["nacre.yaml", "color"]["value"] == "auto"


def test_system_directory_comes_before_the_users(as_root, tmp_path):
    user = tmp_path / ".config" / "nacre"
    user.mkdir(parents=True)
    (user / "nacre.yaml").write_text("color: never\n")
    script = """
        cp -a /etc "$HOME/etc" && mount --bind "$HOME/etc" /etc &&
        mkdir /etc/nacre && echo 'color: always' >/etc/nacre/nacre.yaml &&
        "$1" config show && "$1" --config "$2" config show"""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", NACRE, user], text=True,
                          capture_output=True, env=environment(tmp_path), timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^  color +(\w+)", done.stdout, re.M) == ["always", "never"]


def test_log_level_and_format(nacre, tmp_path):
    (tmp_path / "nacre.yaml").write_text("log:\n  level: debug\n  format: json\n")
    done = nacre("--config", tmp_path, "doctor")
    assert done.returncode == 0
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert {record["message"] for record in records} == {"Probed"}
    assert all(record["level"] == "debug" and record["microseconds"] >= 0 for record in records)
    (tmp_path / "nacre.yaml").write_text("log: {level: debug, format: text}\n")
    assert nacre("--config", tmp_path, "doctor").stderr.startswith('debug: Probed group="namespaces" microseconds=')
    assert nacre("doctor").stderr == ""
