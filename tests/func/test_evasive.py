"""The evasive samples of tests/policy: what each is stopped by, as the table in docs/policy.md has it."""

import json
import re
import subprocess

import pytest

from conftest import ROOT

CORPUS = ROOT / "tests/policy/evasive"
SAMPLES = sorted(path for path in CORPUS.rglob("*.*"))
ROWS = dict(re.findall(r"^\| (evasive/\w+/\w+) \| ((?:language|kernel) \| [\w.-]+) \|$", (ROOT / "docs/policy.md").read_text(), re.M))


def node_version():
    """Of the Node that boxes see."""
    said = subprocess.run(["/usr/bin/node", "--version"], capture_output=True, text=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:2]))


def name_of(path):
    return f"evasive/{path.parts[-2]}/{path.stem}"


def read(path):
    return dict(re.findall(r"^(?:#|//) (nacre|policy|input): (.*)$", path.read_text(), re.M))


def test_every_evasive_sample_is_documented():
    assert ROWS == {name_of(path): read(path)["nacre"].replace(" ", " | ") for path in SAMPLES}
    assert len(ROWS) >= 20


@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_sample_is_stopped(nacre, path):
    said = read(path)
    if path.suffix == ".js" and node_version() < (20, 11):
        pytest.skip("this Node has no permission model that can keep quiet")
    layer, rule = said["nacre"].split()
    done = nacre("run", "--json", "--policy", said["policy"], "--timeout", "20s", "--input", said["input"], path)
    reply = json.loads(done.stdout)
    # static analysis alone would have let it pass
    assert reply["status"] != "blocked", reply["error"]
    layers = ["language"] if layer == "language" else ["seccomp", "limit"]
    stopped = [denial for denial in reply["denials"] if denial["layer"] in layers]
    assert rule in [denial["rule"] for denial in stopped], (reply["denials"], reply["output"], reply["stderr"])
    assert "uid=" not in reply["output"]
