"""Policies: nacre policy, --policy of nacre run and nacre check, the names that requests may give."""

import json
import pathlib

import pytest

from conftest import ROOT
from frames import Engine

BAD = sorted((pathlib.Path(__file__).parent / "policy-bad").glob("*.yaml"))
SEED = ROOT / "config/security_policies.yaml"

MINE = """\
inherits: standard
python:
  allowed_imports: [json]
severities:
  policy.import: critical
risk:
  low: container
limits:
  memory_mb: 128
  execution_time_seconds: 5
network:
  allow: [example.org, "*.example.org:443"]
tenants:
  acme:
    mode: audit
    limits: {memory_mb: 64}
"""


@pytest.fixture
def site(tmp_path):
    """A configuration directory with a policy of its own."""
    (tmp_path / "site/policies").mkdir(parents=True)
    (tmp_path / "site/policies/mine.yaml").write_text(MINE)
    return tmp_path / "site"


def run_json(nacre, *args, **options):
    done = nacre(*args, "--json", **options)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.stem)
def test_bad_policies_have_their_messages(nacre, case):
    expected = f"{case}:{case.read_text().splitlines()[0].removeprefix('# ')}"
    done = nacre("policy", "check", case)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected + "\n")
    assert json.loads(nacre("policy", "check", "--json", case).stdout) == {"ok": False, "faults": [expected]}
    # and none of them is ever taken for a policy
    for args in (["check", "--policy", case, SEED, "--lang", "shell"], ["policy", "show", case],
                 ["run", "--policy", case, "-c", "print(1)"]):
        done = nacre(*args)
        assert (done.returncode, done.stdout) == (125, "") and expected in done.stderr


def test_there_are_enough_bad_policies():
    assert len(BAD) >= 40


def test_the_seeds_file_is_a_policy_that_does_what_it_says(nacre, tmp_path):
    assert nacre("policy", "check", SEED).stdout == f"{SEED}: good\n"
    (tmp_path / "a.py").write_text("import socket\n")
    (tmp_path / "b.js").write_text("require('fs')\n")
    (tmp_path / "c.sh").write_text("sudo ls\n")
    (tmp_path / "d.py").write_text("print(1)\n")
    for name, code in (("a.py", 1), ("b.js", 1), ("c.sh", 1), ("d.py", 0)):
        assert nacre("policy", "test", SEED, tmp_path / name).returncode == code
        assert nacre("check", "--policy", SEED, tmp_path / name).returncode == code
    assert nacre("policy", "diff", "strict", SEED).stdout == ""


def test_check_names_every_bad_file(nacre, site):
    done = nacre("policy", "check", BAD[0], site / "policies/mine.yaml", BAD[1], "/nonexistent.yaml")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 3
    assert "mine.yaml: good" in done.stdout
    assert nacre("policy", "check").returncode == 125
    assert json.loads(nacre("policy", "check", "--json", SEED).stdout) == {"ok": True, "faults": []}


def test_a_policy_that_everybody_may_write_decides_nothing(nacre, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("mode: audit\n")
    file.chmod(0o666)
    done = nacre("policy", "check", file)
    assert done.returncode == 1 and "everybody may write" in done.stderr


def test_list(nacre, site):
    (site / "policies/broken.yaml").write_text("mode: x\n")
    (site / "policies/strict.yaml").write_text("mode: audit\n")
    (site / "policies/notes.txt").write_text("not a policy\n")
    answer = run_json(nacre, "--config", site, "policy", "list")
    origins = {policy["name"]: policy["origin"] for policy in answer["policies"]}
    assert (answer["schema"], answer["usual"]) == ("nacre.policies/1", "standard")
    assert origins["mine"] == str(site / "policies/mine.yaml") and origins["broken"] == "cannot be read"
    assert [policy["origin"] for policy in answer["policies"] if policy["name"] == "strict"] == [
        "built in", "not used: the name is taken"]
    assert "notes" not in origins and "notes.txt" not in origins
    text = nacre("--config", site, "policy", "list").stdout
    assert "inherits standard; sets python, severities, risk, limits, network, tenants" in text


def test_show_tells_where_each_value_is_from(nacre, site):
    answer = run_json(nacre, "--config", site, "policy", "show", "mine", "--tenant", "acme")
    values = {value["key"]: (value["value"], value["file"], value["line"]) for value in answer["values"]}
    file = str(site / "policies/mine.yaml")
    assert (answer["policy"], answer["inherits"], answer["tenant"]) == ("mine", "standard", "acme")
    assert values["mode"] == ("audit", file, 15)
    assert values["limits.memory_mb"] == (64, file, 16)
    assert values["limits.execution_time_seconds"] == (5, file, 10)
    assert values["severities.policy.import"] == ("critical", file, 5)
    assert values["severities.process.run"] == ("low", None, 0)
    assert values["network.allow"][0] == ["example.org", "*.example.org:443"]
    text = nacre("--config", site, "policy", "show", "mine").stdout
    assert f"{file}:9" in text and "built in" in text
    assert run_json(nacre, "policy", "show")["policy"] == "standard"
    assert nacre("--config", site, "policy", "show", "mime").stderr.startswith(
        "nacre policy show: Unknown policy 'mime': there are standard, strict, audit\n")


def test_diff(nacre, site):
    done = nacre("--config", site, "policy", "diff", "standard", "mine")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "python.allowed_imports: not set -> [json]", "severities.policy.import: medium -> critical",
        "risk.low: process -> container", "limits.memory_mb: not set -> 128",
        "limits.execution_time_seconds: not set -> 5", "network.allow: not set -> [example.org, *.example.org:443]"]
    answer = run_json(nacre, "--config", site, "policy", "diff", "--tenant", "acme", "mine", "standard")
    assert {"key": "mode", "left": "audit", "right": "enforce"} in answer["differences"]
    assert {"key": "limits.memory_mb", "left": 64, "right": None} in answer["differences"]
    assert nacre("policy", "diff", "audit", "audit").returncode == 0
    assert nacre("policy", "diff", "audit").returncode == 125


def test_test_judges_samples(nacre, site, tmp_path):
    (tmp_path / "good.py").write_text("import json\nprint(json.dumps(1))\n")
    (tmp_path / "bad.py").write_text("import math\n")
    done = nacre("--config", site, "policy", "test", "mine", tmp_path / "good.py", tmp_path / "bad.py")
    assert done.returncode == 1 and "good.py: allowed in the container tier" in done.stdout and "bad.py: refused" in done.stdout
    answer = run_json(nacre, "--config", site, "policy", "test", "mine", "--tenant", "acme", tmp_path / "bad.py")
    assert (answer["policy"], answer["tenant"], answer["refused"]) == ("mine", "acme", False)
    assert answer["files"][0]["recommendation"] == "microvm"
    assert nacre("policy", "test", "strict").returncode == 125


def test_the_site_decides_for_all(nacre, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "security_policies.yaml").write_text("inherits: strict\nmode: enforce\n")
    (tmp_path / "a.py").write_text("import os\n")
    (tmp_path / "b.sh").write_text("rm -rf /\n")
    assert nacre("--config", site, "check", tmp_path / "a.py").returncode == 1
    assert nacre("--config", site, "check", "--policy", "standard", tmp_path / "a.py").returncode == 0
    # who names audit is held all the same where the site enforces
    assert nacre("--config", site, "check", "--policy", "audit", tmp_path / "b.sh").returncode == 1
    done = nacre("--config", site, "run", "-c", "import os")
    assert done.returncode == 126 and "The policy 'strict' refuses it" in done.stderr


def test_run_is_held_by_the_policy(nacre, site):
    mine = ["--config", site, "run", "--policy", "mine"]
    reply = run_json(nacre, *mine, "-c", "print(1)")
    assert (reply["status"], reply["output"], reply["policy"]) == ("success", "1\n", "mine")
    assert reply["limits"]["memory_bytes"] == 128 << 20 and reply["limits"]["execution_time_seconds"] == 5
    # less is possible, more is not
    assert run_json(nacre, *mine, "--timeout", "2s", "-c", "print(1)")["limits"]["execution_time_seconds"] == 2
    done = nacre(*mine, "--timeout", "6s", "-c", "print(1)")
    assert done.returncode == 126
    assert "limits.execution_time_seconds: 6 is more than the policy 'mine' allows: at most 5" in done.stderr
    done = nacre(*mine, "-c", "import math")
    assert done.returncode == 126 and "The policy 'mine' refuses it: line 1" in done.stderr
    # its risk asks for a container even where there is no risk
    reply = run_json(nacre, *mine, "--tier", "process", "-c", "print(1)")
    assert (reply["tier"], "risk asks for more" in reply["tier_reason"]) == ("container", True)


def test_run_takes_a_file_and_a_request_does_not(nacre, site, tmp_path):
    file = site / "policies/mine.yaml"
    assert run_json(nacre, "run", "--policy", file, "-c", "print(1)")["policy"] == str(file)
    done = nacre("run", "--policy", file, "-c", "import math")
    assert done.returncode == 126 and "refuses it" in done.stderr

    def send(config, **fields):
        return nacre("--config", config, "run", "--json", "--request", "-", input=json.dumps({"code": "import math", **fields}))

    done = send(site, policy=str(file))
    assert done.returncode == 125 and "expected the name of a policy" in done.stderr
    assert json.loads(send(site, policy="mine").stdout)["status"] == "blocked"
    assert json.loads(send(site, policy="mine", tenant="acme").stdout)["status"] == "success"
    assert json.loads(send(site, policy="mine", tenant="other").stdout)["status"] == "blocked"
    done = send(site, policy="yours")
    assert done.returncode == 125 and "Unknown policy 'yours'" in done.stderr


def test_a_floor_can_only_be_raised(nacre, tmp_path):
    low, high = tmp_path / "low.yaml", tmp_path / "high.yaml"
    low.write_text("inherits: standard\nfloor: {filesystem: none, processes: none, access: none}\n")
    high.write_text("inherits: standard\nfloor: {hypervisor: full}\n")
    assert run_json(nacre, "run", "--policy", low, "-c", "print(1)")["strength"]["filesystem"] == "full"
    done = nacre("run", "--policy", high, "-c", "print(1)")
    assert done.returncode == 126 and "The floor wants hypervisor=full" in done.stderr


def test_denials_of_every_layer_have_one_form(nacre, site):
    keys = {"id", "layer", "rule", "object", "line", "count", "message", "allow_with", "instead"}

    def denials(*args, **options):
        reply = run_json(nacre, *args, **options)
        assert all(set(denial) == keys and denial["message"] and denial["instead"] for denial in reply["denials"])
        return {denial["id"]: denial for denial in reply["denials"]}

    assert denials("run", "-c", "print(1)") == {}
    found = denials("run", "--policy", "strict", "-c", "import os\nimport sys\nimport os")
    assert list(found) == ["static.policy.import"] and found["static.policy.import"]["object"] == "sys"
    assert json.loads(nacre("run", "--json", "--policy", "strict", "-c", "import os\nimport sys\nimport os").stdout)["denials"][0] == {
        "id": "static.policy.import", "layer": "static", "rule": "policy.import", "object": "os", "line": 1, "count": 2,
        "message": "The policy forbids this import", "allow_with": "another policy: `policy`, --policy",
        "instead": "Do without it, or ask for a policy that allows it"}
    found = denials("run", "-c", "import ctypes\nfor _ in range(3): ctypes.CDLL(None).unshare(0x10000000)")
    assert (found["seccomp.unshare"]["rule"], found["seccomp.unshare"]["count"]) == ("namespaces", 3)
    assert found["seccomp.unshare"]["allow_with"] is None
    found = denials("run", "--timeout", "1s", "-c", "while True: pass")
    assert found["limit.wall_time"]["allow_with"] == "`timeout`, --timeout"
    found = denials("run", "--disk", "1MB", "-c", "try: open('x', 'wb').write(b'x' * (4 << 20))\nexcept OSError as error: print(error)")
    assert "limit.disk" in found
    found = denials("--config", site, "run", "--policy", "mine", "--memory", "1GB", "-c", "print(1)")
    assert found["request.ceiling"]["object"] == "memory_mb"
    found = denials("run", "--request", "-", input='{"language": "python", "code": "1", "network_access": true}')
    assert found["request.network"]["layer"] == "request"


def test_a_denial_is_one_line_for_people(nacre):
    done = nacre("run", "-c", "import ctypes\nfor _ in range(3): ctypes.CDLL(None).unshare(0x10000000)")
    assert done.returncode == 0
    assert done.stderr.startswith("nacre run: Refused: unshare (3 times): ") and "; instead: " in done.stderr
    assert done.stderr.endswith("[seccomp.unshare]\n") and len(done.stderr.splitlines()) == 1
    # what the status line has explained is not said again, what it has not is
    done = nacre("run", "--policy", "strict", "-c", "import os\nimport sys")
    assert len(done.stderr.splitlines()) == 2 and "Refused: line 2: sys: " in done.stderr


def test_a_hostile_name_in_a_denial_is_quoted(nacre):
    done = nacre("run", "--policy", "strict", "-c", "import sys\neval('x')\n__import__('os\\x1b[2J')", "--lang", "python")
    assert done.returncode == 126 and "\x1b" not in done.stderr


def test_a_sum_of_findings_can_be_refused(nacre, tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text("inherits: standard\nrisk: {medium: refuse}\nseverities: {policy.import: low, process.run: low, process.fork: low, "
                      "process.kill: low, file.delete: low, file.accounts: low, network.connect: low, file.permissions: low}\n")
    code = ("import os, shutil, subprocess, socket\nsubprocess.run(['ls'])\nos.fork()\nos.kill(1, 0)\nshutil.rmtree('x')\n"
            "open('/etc/passwd')\nos.chmod('x', 0o600)\n")
    reply = run_json(nacre, "run", "--policy", policy, "--lang", "python", "-c", code)
    assert reply["status"] == "blocked" and [denial["id"] for denial in reply["denials"]] == ["static.risk"], reply["findings"]


BENIGN = sorted(path for path in (ROOT / "tests/policy/benign").rglob("*") if path.is_file())


def suggestion(report):
    assert set(report["suggested"]) == {"policy", "binds", "complete"}
    return report["suggested"]


@pytest.mark.parametrize("sample", BENIGN, ids=lambda sample: f"{sample.parent.name}-{sample.stem}")
def test_a_suggested_policy_lets_its_program_through_and_no_other(nacre, tmp_path, sample):
    report = run_json(nacre, "check", sample)["files"][0]
    suggested = suggestion(report)
    policy = tmp_path / "least.yaml"
    policy.write_text(json.dumps(suggested["policy"]))
    assert nacre("policy", "check", policy).returncode == 0
    done = nacre("check", "--policy", policy, sample)
    assert done.returncode == 0 or not suggested["complete"], done.stdout
    # what it does not need is refused
    other = tmp_path / f"other{sample.suffix}"
    if report["language"] == "python":
        other.write_text(sample.read_text() + "\nimport smtpd\n")
    elif report["language"] == "shell":
        other.write_text(sample.read_text() + "\nnetcat x\n")
    else:
        return
    done = nacre("check", "--policy", policy, "--lang", report["language"], other)
    assert done.returncode == 1, done.stdout


def test_suggestions_name_hosts_binds_commands_and_limits(nacre, tmp_path):
    file = tmp_path / "x.py"
    file.write_text("import subprocess, urllib.request\nurllib.request.urlopen('https://API.example.org/x')\n"
                    "subprocess.run(['git', 'status'])\nopen('/data/in.csv'); open('/tmp/x'); open('y')\n")
    suggested = suggestion(run_json(nacre, "check", file)["files"][0])
    assert suggested["policy"]["network"] == {"allow": ["api.example.org"]}
    assert suggested["policy"]["shell"] == {"allowed_commands": ["git"]}
    assert suggested["policy"]["python"] == {"allowed_imports": ["subprocess", "urllib.request"]}
    assert (suggested["binds"], suggested["complete"]) == (["/data/in.csv"], True)
    assert "max_processes" not in suggested["policy"]["limits"]
    file.write_text("import os\nos.system(input())\n")
    assert suggestion(run_json(nacre, "check", file)["files"][0])["complete"] is False
    file.write_text("import os\nos.system('rm -rf /')\n")
    assert run_json(nacre, "check", file)["files"][0]["suggested"] is None


def test_a_reply_suggests_what_the_run_needed(nacre, tmp_path):
    code = "import json\nprint(json.dumps([1]))"
    suggested = suggestion(run_json(nacre, "run", "-c", code))
    limits = suggested["policy"]["limits"]
    assert limits["max_processes"] == 1 and limits["execution_time_seconds"] >= 5 and limits["disk_mb"] >= 8
    policy = tmp_path / "least.yaml"
    policy.write_text(json.dumps(suggested["policy"]))
    reply = run_json(nacre, "run", "--policy", policy, "-c", code)
    assert (reply["status"], reply["output"]) == ("success", "[1]\n")
    assert run_json(nacre, "run", "--policy", policy, "-c", "import math")["status"] == "blocked"


PROBE = """\
import ctypes
libc = ctypes.CDLL(None)
libc.unshare(0x10000000)
libc.mount(0, 0, 0, 0, 0)
libc.ptrace(16, 1, 0, 0)
"""


def test_what_tries_one_door_after_the_other_is_an_alert(nacre, tmp_path):
    reply = run_json(nacre, "run", "-c", PROBE)
    assert [alert["id"] for alert in reply["alerts"]] == ["wall_kinds"]
    assert reply["alerts"][0] == {"id": "wall_kinds", "severity": "critical", "value": 3, "threshold": 3,
                                  "reason": "One way out of the box after the other was tried, as attacks do"}
    assert "nacre run: Alert: critical: One way out" in nacre("run", "-c", PROBE).stderr
    # an honest program that asks for a namespace once is none
    assert run_json(nacre, "run", "-c", "\n".join(PROBE.splitlines()[:3]))["alerts"] == []
    # thresholds are the policy's
    policy = tmp_path / "p.yaml"
    policy.write_text("inherits: standard\nalerts: {wall_kinds: 0, wall_calls: 4, refused_calls: 3}\n")
    assert [alert["id"] for alert in run_json(nacre, "run", "--policy", policy, "-c", PROBE)["alerts"]] == ["refused_calls"]


def test_alerts_are_recorded(nacre, tmp_path):
    state = {"NACRE_STATE": str(tmp_path / "state")}
    (tmp_path / "state").mkdir()
    reply = run_json(nacre, "run", "-c", PROBE, env=state)
    lines = [json.loads(line) for line in nacre("audit", "log", "--json", "--kind", "security", env=state).stdout.splitlines()]
    assert reply["receipt"] and any("wall_kinds" in json.dumps(line) for line in lines), lines


def test_an_engine_knows_the_policies_of_its_configuration(tmp_path, site):
    with Engine(tmp_path, "--config", str(site)) as engine:
        assert engine.receive()["event"] == "ready"
        for n, (policy, tenant) in enumerate([("mine", "acme"), ("mine", "other"), ("yours", "acme"), ("standard", "acme")], 1):
            request = {"language": "python", "code": "import math", "policy": policy, "tenant": tenant}
            engine.send({"n": n, "op": "execute", "request": request})
        replies = {n: frame["reply"] for n, frame in engine.replies(4).items()}
        assert [replies[n]["status"] for n in (1, 2, 3, 4)] == ["success", "blocked", "blocked", "success"]
        assert "Unknown policy 'yours': there are standard, strict, audit, mine" in replies[3]["error"]
        engine.send({"n": 9, "op": "check", "language": "python", "code": "import math", "policy": "mine"})
        assert engine.receive()["report"]["recommendation"] == "refuse"
    assert engine.code == 0


def test_an_engine_does_not_begin_with_a_bad_policy(tmp_path, site):
    (site / "policies/bad.yaml").write_text("mode: x\n")
    with Engine(tmp_path, "--config", str(site)) as engine:
        pass
    assert engine.code == 125 and "bad.yaml:1: mode: found 'x'" in engine.errors
