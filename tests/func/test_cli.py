"""The command line: help, versions, wrong calls, completion, broken outputs."""

import json
import os
import re
import subprocess

import pytest

from conftest import NACRE

VERBS = ["doctor", "exec", "check", "policy", "policy list", "policy show", "policy check", "policy diff", "policy test", "image", "image import", "image list", "image remove", "config", "config check", "config show", "completion"]


def test_version(nacre):
    """A build that leaves locks out, for sanitizers or counters, cannot be taken for another."""
    program = NACRE.read_bytes()
    unsafe = r"\+unsafe\.for\.tests" if b"__asan_init" in program or b"__gcov_init" in program else ""
    for option in ("--version", "-V"):
        done = nacre(option)
        assert done.returncode == 0
        assert re.fullmatch(rf"nacre \d+\.\d+\.\d+{unsafe}\n", done.stdout)
        assert done.stderr == ""


@pytest.mark.parametrize("verb", [""] + VERBS)
def test_help_has_usage_options_and_an_example(nacre, verb):
    done = nacre(*verb.split(), "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith(f"Usage: nacre {verb}".rstrip() + " [OPTION...]")
    for heading in ("\nOptions:\n", "\nExample:\n  ", "--help", "--config DIR"):
        assert heading in done.stdout
    assert done.stdout == nacre(*verb.split(), "-h").stdout
    assert max(map(len, done.stdout.splitlines())) <= 90


def test_root_help_names_every_verb(nacre):
    text = nacre("--help").stdout
    for verb in VERBS:
        if " " not in verb:
            assert re.search(rf"^  {verb} +[A-Z]", text, re.M)


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "nacre: Name a verb\nTry: nacre --help\n"),
        (["config"], "nacre config: Name a verb\nTry: nacre config --help\n"),
        (["dcotor"], "nacre: Unknown verb 'dcotor', did you mean 'doctor'?\nTry: nacre --help\n"),
        (["xyzzy"], "nacre: Unknown verb 'xyzzy'\nTry: nacre --help\n"),
        (["config", "chekc"], "nacre config: Unknown verb 'chekc', did you mean 'check'?\nTry: nacre config --help\n"),
        (["doctor", "--jsno"], "nacre doctor: Unknown option '--jsno', did you mean '--json'?\nTry: nacre doctor --help\n"),
        (["doctor", "--quux"], "nacre doctor: Unknown option '--quux'\nTry: nacre doctor --help\n"),
        (["doctor", "-x"], "nacre doctor: Unknown option '-x'\nTry: nacre doctor --help\n"),
        (["doctor", "-hV"], "nacre doctor: Unknown option '-hV'\nTry: nacre doctor --help\n"),
        (["--json", "doctor"], "nacre: Unknown option '--json'\nTry: nacre --help\n"),
        (["doctor", "--json=yes"], "nacre doctor: Option '--json' takes no value\nTry: nacre doctor --help\n"),
        (["doctor", "--config"], "nacre doctor: Option '--config' needs a value: --config DIR\nTry: nacre doctor --help\n"),
        (["doctor", "now"], "nacre doctor: Unexpected argument 'now'\nTry: nacre doctor --help\n"),
        (["doctor", "--", "--json"], "nacre doctor: Unexpected argument '--json'\nTry: nacre doctor --help\n"),
        (["config", "check", "a", "b"], "nacre config check: Unexpected argument 'b'\nTry: nacre config check --help\n"),
        (["completion"], "nacre completion: Name the shell: nacre completion bash\nTry: nacre completion --help\n"),
        (["completion", "fish"], "nacre completion: No completion for 'fish', only for bash\nTry: nacre completion --help\n"),
        (["a\x1b[31m\n"], "nacre: Unknown verb 'a\\x1b[31m\\x0a'\nTry: nacre --help\n"),
    ],
)
def test_wrong_calls_exit_125_and_say_what_to_do(nacre, args, message):
    done = nacre(*args)
    assert (done.returncode, done.stderr) == (125, message)
    assert done.stdout == "" or args[0] == "--json" and json.loads(done.stdout)["exit_status"] == 125


def test_arguments_that_are_not_utf8(nacre):
    done = subprocess.run([bytes(NACRE), b"\xff\xfe"], capture_output=True, timeout=60)
    assert done.returncode == 125
    assert done.stderr.startswith(b"nacre: Unknown verb '\\xff\\xfe'")


def test_endless_argument_is_cut(nacre):
    done = nacre("x" * 100000)
    assert done.returncode == 125
    assert "...'" in done.stderr and len(done.stderr) < 400


def test_option_value_in_both_forms(nacre, tmp_path):
    for form in (["--config", tmp_path], [f"--config={tmp_path}"]):
        done = nacre(*form, "config", "show")
        assert done.returncode == 0


@pytest.mark.parametrize("args", [["doctor"], ["doctor", "--json"], ["config", "show"], ["config", "show", "--json"],
                                  ["--help"], ["--version"], ["completion", "bash"]])
def test_full_disk_behind_stdout_is_an_error(nacre, args):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = nacre(*args, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 125


def test_closed_descriptors_do_no_harm(nacre):
    done = subprocess.run(["sh", "-c", f"exec {NACRE} --version <&- 2>&-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("nacre ")


def complete(script, *words):
    """What bash would offer for the last of the words."""
    ask = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nacre; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", ask, "bash", script, *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completion(nacre, tmp_path):
    script = tmp_path / "nacre.bash"
    script.write_text(nacre("completion", "bash").stdout)
    assert complete(script, "nacre", "") == ["doctor", "exec", "env", "check", "policy", "history", "audit", "image", "key", "run", "serve", "ps", "logs", "kill", "shell", "cp", "top", "config", "completion", "engine",
                                             "--config", "--help", "--server", "--version"]
    assert complete(script, "nacre", "do") == ["doctor"]
    assert complete(script, "nacre", "config", "") == ["check", "show", "--config", "--help", "--server", "--version"]
    assert complete(script, "nacre", "config", "show", "--j") == ["--json"]
    assert complete(script, "nacre", "doctor", "--pr") == ["--probes"]
    (tmp_path / "somewhere").mkdir()
    assert complete(script, "nacre", "--config", f"{tmp_path}/some") == [f"{tmp_path}/somewhere"]


def colors(nacre, tmp_path, terminal=True, env=None, setting=None):
    """Whether doctor prints colours on a terminal, or elsewhere."""
    args = []
    if setting:
        (tmp_path / "nacre.yaml").write_text(f"color: {setting}\n")
        args = ["--config", tmp_path]
    if not terminal:
        return "\x1b[" in nacre(*args, "doctor", env=env).stdout
    ours, theirs = os.openpty()
    done = nacre(*args, "doctor", env={"TERM": "xterm", **(env or {})}, capture_output=False, stdout=theirs)
    assert done.returncode == 0
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:  # the terminal says EIO at its end
        pass
    os.close(ours)
    return b"\x1b[" in text


def test_colours_only_on_a_terminal_and_never_with_no_color(nacre, tmp_path):
    assert colors(nacre, tmp_path)
    assert not colors(nacre, tmp_path, env={"NO_COLOR": "1"})
    assert colors(nacre, tmp_path, env={"NO_COLOR": ""})
    assert not colors(nacre, tmp_path, env={"TERM": "dumb"})
    assert not colors(nacre, tmp_path, terminal=False)
    assert not colors(nacre, tmp_path, setting="never")
    assert colors(nacre, tmp_path, terminal=False, setting="always")
    assert not colors(nacre, tmp_path, terminal=False, setting="always", env={"NO_COLOR": "1"})
