"""Every console block of README.md is run: lines after '$' are commands, the others their output."""

import re
import subprocess

import pytest

from conftest import BUILD, ROOT, environment

# a line of three dots in a block stands for any lines, "..." inside a line for any text
BLOCKS = re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


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
    for command, expected in steps(block):
        done = subprocess.run(["bash", "-c", command], cwd=place, env=env, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        # what is done once on a machine is told while it is done
        printed = re.sub(r"^nacre run: filling the build cache of .*\.\.\.\n", "", done.stdout, flags=re.M)
        assert matches(expected, printed), f"$ {command}\n{done.stdout}"


def test_there_is_a_tour():
    assert len(BLOCKS) >= 4
