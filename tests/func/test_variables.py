"""Variables that interpreters, loaders and tools take code from: no caller sets them where hooks are enforced."""

import json
import re

import pytest

from conftest import ROOT, open_way
from serving import Daemon

ROWS = re.findall(r'\{"([^"]+)",\s*(NULL|[A-Z]+|"[^"]*")\}', (ROOT / "src/policy/variables.c").read_text())
REFUSED = [name for name, reason in ROWS if reason != "NULL"]
HARMLESS = [name for name, reason in ROWS if reason == "NULL"]
# each undid the policy before
WARNING = "import os\nos.system('echo pwned')\nclass W(Warning):\n    pass\n"
CHILD = "console.log(require('child_process').execSync('echo pwned').toString())"
EXPLOITS = {
    "python_warnings": ("python", "print(1)", {"PYTHONPATH": "/workspace", "PYTHONWARNINGS": "error::evil.W"}, {"evil.py": WARNING}),
    "python_inspect": ("python", "x = 1", {"PYTHONINSPECT": "1"}, {}),
    "python_home": ("python", "x = 1", {"PYTHONHOME": "/workspace"}, {}),
    "interpreter": ("python", "x = 1", {"PATH": "/workspace:/usr/bin"}, {"python3": {"text": "#!/bin/sh\necho pwned", "executable": True}}),
    "node_options": ("javascript", "1", {"NODE_OPTIONS": "--allow-child-process --require=/workspace/evil.js"}, {"evil.js": CHILD}),
    "shell_trace": ("shell", "echo hi", {"SHELLOPTS": "xtrace", "PS4": "$(/bin/rm --version >/dev/null && echo pwned) "}, {}),
    "shell_path": ("shell", "ls", {"PATH": "/workspace"}, {"ls": {"text": "#!/bin/sh\necho pwned", "executable": True}}),
    "openssl": ("python", "import hashlib", {"OPENSSL_CONF": "/workspace/o.cnf"}, {"o.cnf": "engines"}),
}


def example(pattern):
    return pattern.replace("*", "X_1")


@pytest.fixture
def execute(nacre, tmp_path):
    def run(policy, language=None, code=None, env=None, files=None, **more):
        request = {"policy": policy, "language": language, "code": code, "env": env, "files": files, **more}
        (tmp_path / "request.json").write_text(json.dumps({name: value for name, value in request.items() if value is not None}))
        open_way(tmp_path)
        answer = nacre("run", "--json", "--request", tmp_path / "request.json")
        assert answer.stdout, answer.stderr
        return json.loads(answer.stdout)
    return run


def refused(reply):
    return [denial["object"] for denial in reply["denials"] if denial["id"] == "request.variable"]


@pytest.mark.parametrize("name", EXPLOITS)
def test_exploits(execute, name):
    language, code, env, files = EXPLOITS[name]
    reply = execute("strict", language, code, env, files)
    assert (reply["status"], refused(reply)) == ("blocked", list(env)), reply
    assert "pwned" not in reply["output"] + reply["stderr"] and list(env)[0] in reply["error"]
    without = execute("strict", language, code, {}, files)
    assert without["status"] == "success" and "pwned" not in without["output"], without


def test_every_row_is_refused_by_its_name(execute):
    assert len(REFUSED) > 150 and len(HARMLESS) > 10
    reply = execute("strict", "python", "print(1)", {example(name): "" for name in REFUSED})
    assert reply["status"] == "blocked" and refused(reply) == [example(name) for name in REFUSED]
    assert all(denial["message"] and denial["layer"] == "request" for denial in reply["denials"])


def test_npm_reads_its_own_in_any_case(execute):
    names = ["NPM_CONFIG_SCRIPT_SHELL", "npm_config_node_options", "Npm_Config_Script_Shell"]
    assert refused(execute("strict", "javascript", "1", {name: "/workspace/x" for name in names})) == names


def test_what_is_harmless_stays_allowed(execute):
    ours = ["A", "HOME", "LANG", "TZ", "GOOGLE_API_KEY", "PATHS", "ENVIRONMENT", "GITHUB_TOKEN", "CCX", "TMPDIR", "PROMPT", "TEXT", "XDG_DATA_HOME", "CONFIG", "path", "editor"]
    values = {"PYTHONINTMAXSTRDIGITS": "5000", "PYTHONMALLOC": "malloc", "HOME": "/tmp", "TMPDIR": "/tmp"}
    env = {example(name): values.get(name, "1") for name in HARMLESS + ours}
    reply = execute("strict", "python", "print(1)", env)
    assert (reply["status"], reply["output"], reply["denials"]) == ("success", "1\n", []), reply


def test_policies_that_only_report_refuse_none(execute):
    reply = execute("standard", "python", "import it", {"PYTHONPATH": "/workspace/lib"}, {"lib/it.py": "print('it')"})
    assert (reply["status"], reply["output"]) == ("success", "it\n"), reply


def test_steps_and_secrets(execute):
    steps = [{"language": "python", "code": "print(1)", "env": {"A": "1"}}, {"language": "shell", "code": "echo 2", "env": {"BASH_ENV": "x"}}]
    reply = execute(steps=steps, policy="strict")
    assert (reply["status"], refused(reply)) == ("blocked", ["BASH_ENV"]), reply
    # any text makes Python read its input as a program
    reply = execute(policy="strict", language="python", code="x = 1", secrets={"PYTHONINSPECT": {"value": "sesame", "host": "example.org"}})
    assert (reply["status"], refused(reply)) == ("blocked", ["PYTHONINSPECT"]), reply


@pytest.mark.parametrize("name", ["a.pth", "usercustomize.py"])
def test_the_workspace_is_no_site_of_python(execute, name):
    """site.py would run it before the program, as if it were its own."""
    places = [f".local/lib/python3.{minor}/site-packages/{name}" for minor in range(9, 16)]
    reply = execute("strict", "python", "print(1)", {}, {place: "import subprocess; print(subprocess)\n" for place in places})
    assert (reply["output"], reply["denials"]) == ("1\n", []), reply


def test_sandboxes(tmp_path):
    with Daemon(tmp_path) as daemon:
        made = daemon.post("/v1/sandboxes", {"policy": "strict", "env": {"LD_PRELOAD": "/workspace/x.so"}})
        assert made.status == 403 and "'LD_PRELOAD'" in made.json()["detail"], made.body
        made = daemon.post("/v1/sandboxes", {"policy": "strict", "env": {"A": "1"}})
        assert made.status == 201, made.body
        path = f"/v1/sandboxes/{made.json()['id']}/commands"
        answer = daemon.post(path, {"command": ["true"], "env": {"BASH_ENV": "/workspace/x"}})
        assert answer.status == 403 and "'BASH_ENV'" in answer.json()["detail"], answer.body
        answer = daemon.post(path, {"command": ["printenv", "A", "B"], "env": {"B": "2"}})
        assert answer.status in (200, 202), answer.body


def test_the_table_is_documented():
    text = (ROOT / "docs/policy.md").read_text()
    part = text[text.index("### Variables of the environment"):text.index("## What a program can do without")]
    assert set(re.findall(r"`([\w*]+)`", part)) >= {name for name, _ in ROWS}
