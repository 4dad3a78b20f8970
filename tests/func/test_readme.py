"""Every block of README.md is run: of console lines after '$' are commands, the others their output; programs as they stand."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, environment

# a line of three dots in a block stands for any lines, "..." inside a line for any text
BLOCKS = re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
PROGRAMS = dict(re.findall(r"^```(python|js|c)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S))


def steps(block):
    for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, output = step.partition("\n")
        yield command, output


def matches(expected, actual):
    pattern = re.escape(expected)
    pattern = re.sub(r"^\\\.\\\.\\\.\n", r"(?:.*\\n)*", pattern.replace("\\\n", "\n"), flags=re.M)
    return re.fullmatch(pattern.replace(r"\.\.\.", ".*"), actual) is not None


def test_the_matcher_itself():
    assert matches("a\n...\nb ... c\n", "a\nx\ny\nb 1 c\n")
    assert not matches("a\n...\nb\n", "a\nx\n")


@pytest.mark.parametrize("block", BLOCKS)
def test_block(block, tmp_path):
    if "make " in block:  # the two commands: this very suite is one of them
        assert [command for command, _ in steps(block)] == ["make run", "make test"]
        return
    env = environment(tmp_path)
    env["PATH"] = f"{BUILD}:{env['PATH']}"
    place = tmp_path / "tree"  # the commands make files
    place.mkdir()
    for entry in ("examples", "config"):
        (place / entry).symlink_to(ROOT / entry)
    if "nacre serve" in block:
        run_with_daemon(block, place, env)
        return
    for command, expected in steps(block):
        check(command, expected, place, env)


def check(command, expected, place, env):
    done = subprocess.run(["bash", "-c", command], cwd=place, env=env, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # what is done once on a machine is told while it is done
    printed = re.sub(r"^nacre run: filling the build cache of .*\.\.\.\n", "", done.stdout, flags=re.M)
    assert matches(expected, printed), f"$ {command}\n{done.stdout}"


def run_with_daemon(block, place, env):
    """As it stands, but for the port, which others may have; and the daemon ends with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (begin, nothing), *others = [(command.replace("7070", port), expected) for command, expected in steps(block)]
    assert begin == "nacre serve >serve.log 2>&1 &" and not nothing
    begin = begin.replace("serve ", f"serve --listen 127.0.0.1:{port} ", 1)
    shell = subprocess.Popen(["bash", "-c", f"{begin} until grep -q Listening serve.log; do sleep 0.1; done; echo $!; read"], cwd=place, env=env, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    daemon = int(shell.stdout.readline())
    try:
        for command, expected in others:
            check(command, expected, place, env)
    finally:
        assert daemon > 1
        os.kill(daemon, signal.SIGTERM)
        shell.communicate("\n", timeout=60)


def run_program(language, text, place):
    (place / {"python": "a.py", "js": "a.mjs", "c": "a.c"}[language]).write_text(text)
    env = {**environment(place), "NACRE_PROGRAM": str(BUILD / "nacre"), "PYTHONPATH": str(ROOT / "clients/python/src"), "LD_LIBRARY_PATH": str(BUILD)}
    if language == "js":
        (place / "node_modules").mkdir()
        (place / "node_modules/nacre").symlink_to(ROOT / "clients/typescript")
    if language == "c":
        subprocess.run(["cc", "a.c", f"-I{ROOT}/include", f"-L{BUILD}", "-lnacre", "-o", "a.out"], cwd=place, check=True)
    command = {"python": [sys.executable, "a.py"], "js": ["node", "a.mjs"], "c": ["./a.out"]}[language]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("language, printed", [("python", "42\n\n5 notes.txt\n\n"), ("js", "42\n\nhello\n\n"), ("c", '{"id":')])
def test_program(language, printed, tmp_path):
    if language == "js" and not shutil.which("node"):
        pytest.skip("no node")
    done = run_program(language, PROGRAMS[language], tmp_path)
    assert done.stdout.startswith(printed) and done.returncode == 0, done.stdout + done.stderr
    assert language != "c" or '"output":"42\\n"' in done.stdout


def test_the_demonstration(tmp_path):
    """What `make run` shows at the end."""
    done = subprocess.run([ROOT / "tools/demo", BUILD], env=environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for part in ("Hello, World!\n  success: ", "isolated by: ", "forbids this import: socket", "in a fresh sandbox of nacre serve: ", "\nNext\n"):
        assert part in done.stdout, done.stdout


def test_there_is_a_tour():
    assert len(BLOCKS) >= 4
