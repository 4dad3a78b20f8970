"""nacre check: the corpus of tests/policy, the forms of its output, the profiles, hostile sizes."""

import json
import os
import pathlib
import re
import resource
import subprocess
import time

import pytest

from conftest import NACRE, ROOT

CORPUS = ROOT / "tests/policy"
SAMPLES = sorted(path for path in CORPUS.rglob("*.*") if path.suffix != ".md" and path.parts[-3] != "evasive")
LEVELS = ["low", "medium", "high", "critical"]
SEED = ROOT / "config"


def expectation(path):
    words = re.search(r"nacre: (.*)", path.read_text()[:200])[1].split()
    return words[0], words[1:]


@pytest.fixture(scope="module")
def reports():
    """All samples, analysed by as few processes as their number of arguments allows."""
    found = {}
    for start in range(0, len(SAMPLES), 200):
        done = subprocess.run([NACRE, "check", "--json", *SAMPLES[start:start + 200]], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        found.update({report["file"]: report for report in json.loads(done.stdout)["files"]})
    return found


def test_the_corpus_is_large():
    assert len(SAMPLES) >= 150
    assert {path.parts[-3] for path in SAMPLES} == {"benign", "hostile"}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_sample(reports, path):
    report = reports[str(path)]
    verdict, words = expectation(path)
    rules = {finding["rule"] for finding in report["findings"]}
    refused = report["recommendation"] == "refuse"
    if verdict == "allowed":
        assert not refused and LEVELS.index(report["risk"]) <= LEVELS.index(words[0]), report["points"]
    else:
        assert verdict in ("found", "refused")
        assert set(words) <= rules
        assert refused or verdict == "found"


def test_findings_look_like_a_compilers(nacre, tmp_path):
    file = tmp_path / "x.py"
    file.write_text("import os\nif 1:\n\tos.system('rm -rf /')\n")
    done = nacre("check", file)
    assert done.returncode == 1
    assert done.stdout.splitlines()[:4] == [
        f"{file}:3:2: critical: Destroys a file system or all files of a user: / (shell in python) [file.destroy]",
        "     os.system('rm -rf /')",
        "     ^~~~~~~~~~~~~~~~~~~~~",
        "    instead: Name what is to be deleted, below the working directory",
    ]
    assert done.stdout.splitlines()[-1].startswith(f"{file}: refused: risk critical = file.destroy 125 + ")


def test_columns_count_characters(nacre, tmp_path):
    file = tmp_path / "x.py"
    file.write_text("x = 'äöü'; eval(x)\n")
    finding = json.loads(nacre("check", "--json", file).stdout)["files"][0]["findings"][0]
    assert (finding["line"], finding["column"], finding["end_column"]) == (1, 12, 19)


def test_control_characters_do_not_reach_the_terminal(nacre, tmp_path):
    file = tmp_path / "x.py"
    file.write_text("eval('\x1b]0;owned\x07')\n")
    assert "\x1b" not in nacre("check", file).stdout


def test_standard_input_and_language(nacre):
    assert nacre("check", "--lang", "shell", "-", input="rm -rf /").returncode == 1
    assert nacre("check", "-", input="#!/usr/bin/env -S python3.11 -u\nprint(1)\n").returncode == 0
    done = nacre("check", "-", input="print(1)")
    assert (done.returncode, "--lang" in done.stderr) == (125, True)


@pytest.mark.parametrize("arguments, words", [
    (["--policy", "lax", "x.py"], "Unknown policy 'lax'"),
    (["--lang", "cobol", "-"], "Unknown language 'cobol'"),
    ([], "Name a file"),
    (["/nowhere/x.py"], "No such file"),
    (["/"], "directory"),
])
def test_own_errors(nacre, arguments, words):
    done = nacre("check", *arguments, input="")
    assert done.returncode == 125 and words in done.stderr


def test_json_has_it_all(nacre, tmp_path):
    file = tmp_path / "x.py"
    file.write_text("import socket, threading\nimport subprocess as s\ns.run(['git', 'log'])\nopen('/data/in.csv')\n"
                    "threading.Thread()\nsocket.create_connection(('db.example', 5432))\n")
    report = json.loads(nacre("check", "--json", file).stdout)
    assert (report["schema"], report["policy"], report["refused"]) == ("nacre.check/1", "standard", False)
    (one,) = report["files"]
    assert one["language"] == "python" and one["recommendation"] == "allow" and one["risk"] == "low"
    assert [entry["name"] for entry in one["imports"]] == ["socket", "threading", "subprocess"]
    assert one["needs"] == {"paths": ["/data/in.csv"], "hosts": ["db.example"], "commands": ["git"], "threads": True,
                            "subprocess": True, "network": True, "unknown": False}
    assert one["sum"] == sum(entry["points"] for entry in one["points"])
    assert {"rule", "severity", "line", "column", "snippet", "why", "remedy", "within"} <= set(one["findings"][0])


def test_sarif(nacre, tmp_path):
    file = tmp_path / "a b.sh"
    file.write_text("echo hello\ncurl x | sh\n")
    log = json.loads(nacre("check", "--sarif", file).stdout)
    (run,) = log["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert log["version"] == "2.1.0" and run["columnKind"] == "unicodeCodePoints"
    assert {result["ruleId"] for result in run["results"]} <= rules
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("a%20b.sh")
    assert place["region"]["startLine"] == 2
    assert {result["level"] for result in run["results"]} <= {"note", "warning", "error"}


# what seed 002's security_policies.yaml forbids, in ways that its text would not match
FORBIDDEN = [
    ("x.py", "import os.path as p", "policy.import"),
    ("x.py", "from subprocess import run", "policy.import"),
    ("x.py", "__import__('so' + 'cket')", "policy.import"),
    ("x.py", "e = eval\ne('1')", "policy.function"),
    ("x.py", "import builtins\nbuiltins.exec('')", "policy.function"),
    ("x.py", "(globals)()", "policy.pattern"),
    ("x.js", "require(`fs`)", "policy.pattern"),
    ("x.js", "import * as f from 'node:fs/promises'", "policy.pattern"),
    ("x.js", "process['exit'](1)", "policy.pattern"),
    ("x.js", "const e = eval; e('1')", "policy.pattern"),
    ("x.sh", "/bin/rm x", "policy.command"),
    ("x.sh", "c=chmod; $c +x y", "policy.command"),
    ("x.sh", "echo x > '/dev/full'", "policy.pattern"),
    ("x.sh", "busybox wget x", "policy.pattern"),
]
# what its text would match, but which is none of that
NOT_FORBIDDEN = [
    ("x.py", "# import os\nprint('eval(')\nimport ossaudio"),
    ("x.py", "import re\nre.compile('x')\nmodel.eval()"),
    ("x.js", "// eval(1)\nconsole.log(\"require('fs')\")\nmedieval(1)"),
    ("x.sh", "echo rm curl # sudo\nfirmware=1"),
]


@pytest.mark.parametrize("configured", [False, True], ids=["built-in lists", "seed's file"])
@pytest.mark.parametrize("name, code, rule", FORBIDDEN)
def test_strict_refuses_what_the_lists_mean(nacre, tmp_path, name, code, rule, configured):
    file = tmp_path / name
    file.write_text(code + "\n")
    where = ["--config", SEED] if configured else []
    done = nacre(*where, "check", "--json", "--policy", "strict", file)
    refusing = {finding["rule"] for finding in json.loads(done.stdout)["files"][0]["findings"] if finding["refuses"]}
    assert done.returncode == 1 and rule in refusing


@pytest.mark.parametrize("name, code", NOT_FORBIDDEN)
def test_strict_does_not_refuse_what_only_looks_like_it(nacre, tmp_path, name, code):
    file = tmp_path / name
    file.write_text(code + "\n")
    done = nacre("--config", SEED, "check", "--policy", "strict", file)
    assert done.returncode == 0, done.stdout


def test_profiles(nacre, tmp_path):
    listed, critical, broken = tmp_path / "a.py", tmp_path / "b.sh", tmp_path / "c.py"
    listed.write_text("import os\n")
    critical.write_text("rm -rf /\n")
    broken.write_text("def (:\n")
    verdicts = {profile: [nacre("check", "--policy", profile, file).returncode for file in (listed, critical, broken)]
                for profile in ("standard", "strict", "audit")}
    assert verdicts == {"standard": [0, 1, 0], "strict": [1, 1, 1], "audit": [0, 0, 0]}
    # with the lists given, standard reports them
    assert "policy.import" in nacre("--config", SEED, "check", listed).stdout


@pytest.mark.parametrize("language, text", [
    ("python", "x = " + "(" * 100000 + "1" + ")" * 100000),
    ("python", "x = " + "-" * 300000 + "1"),
    ("python", "x = " + " + ".join(["'a'"] * 100000)),
    ("javascript", "x = " + "(" * 100000 + "1" + ")" * 100000),
    ("javascript", "[" * 300000),
    ("shell", "$(" * 100000 + ")" * 100000),
    ("go", "package a; func a() { x = " + "f(" * 100000 + ")" * 100000 + "}"),
    ("rust", "fn a() { " + "(" * 100000 + "1" + ")" * 100000 + "}"),
    ("rust", "use " + "a::{" * 100000 + "b" + "}" * 100000 + ";"),
    ("c", "f(" * 300000),
], ids=range(10))
def test_hostile_nesting(nacre, language, text):
    done = nacre("check", "--lang", language, "-", input=text)
    assert done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize("language, text", [
    ("javascript", "x = '" + "ab" * 30000 + "';" + "y=x+x;x=y;" * 90000),
    ("javascript", "x = 'http://" + "a" * 60000 + "';" + "y=x+'';" * 90000),
    ("python", "x = {" + "'a': 1, " * 12000 + "}\n" + "x['b']\n" * 100000),
    ("shell", "x=aaaa; echo \"" + "$x" * 500000 + "\""),
    ("shell", "a|" * 500000 + "a"),
], ids=range(5))
def test_hostile_work_is_bounded(nacre, language, text):
    """Two seconds of parsing and two of walking, whatever is in it; more where others use the machine."""
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = nacre("check", "--lang", language, "-", input=text)
    assert done.returncode in (0, 1), done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun < 6


@pytest.mark.parametrize("text", ["(" * (1 << 20), "-" * (1 << 20), "x[" * (1 << 19), "a=" * (1 << 19)], ids=range(4))
def test_hostile_memory_is_bounded(nacre, tmp_path, text):
    """The parser has 64 MiB; what wants more is cut short, and is no pass."""
    (tmp_path / "code.py").write_text(text)
    done = subprocess.run(["prlimit", f"--as={500 << 20}", str(NACRE), "check", str(tmp_path / "code.py")], capture_output=True, text=True)
    assert done.returncode == 1 and ("analysis.cut-short" in done.stdout or "analysis.parse" in done.stdout), done


def test_what_is_too_large_is_no_pass(nacre):
    done = nacre("check", "--lang", "python", "-", input="#" * (1024 * 1024 + 1))
    assert done.returncode == 1 and "analysis.cut-short" in done.stdout
    done = nacre("check", "--lang", "python", "-", input="x = 1\n" * 75000)
    assert done.returncode == 0


def test_many_findings_are_cut_short(nacre):
    text = "".join(f"eval(x{number})\n" for number in range(1200))
    done = nacre("check", "--lang", "python", "-", input=text)
    assert done.returncode == 1 and "analysis.cut-short" in done.stdout


def test_too_much_code_in_code_is_cut_short(nacre):
    text = "".join(f"exec('x = {number}')\n" for number in range(100))
    done = nacre("check", "--lang", "python", "-", input=text)
    assert done.returncode == 1 and "analysis.cut-short" in done.stdout


def test_every_rule_is_documented():
    rules = set(re.findall(r'X\(\w+, "([a-z]+\.[a-z-]+)"\)', (ROOT / "src/base/rule_ids.h").read_text()))
    documented = set(re.findall(r"^\| `([a-z]+\.[a-z-]+)` \| (?:low|medium|high|critical) \|", (ROOT / "docs/policy.md").read_text(), re.M))
    assert rules == documented and len(rules) > 40


def test_every_hostile_sample_is_documented():
    text = (ROOT / "docs/policy.md").read_text()
    rows = dict(re.findall(r"^\| (\w+/\w+) \| analysis[^|]*\| ([^|]*) \|$", text, re.M))
    hostile = {f"{path.parts[-2]}/{path.stem}": ", ".join(expectation(path)[1])
               for path in SAMPLES if path.parts[-3] == "hostile"}
    assert rows == hostile


def test_rights_are_given_up_before_parsing(tmp_path):
    """A pipe that nobody reads holds the process while it prints; the kernel tells what it may do then."""
    file = tmp_path / "x.py"
    file.write_text("eval(x)\n" * 900)
    with subprocess.Popen([NACRE, "check", file], stdout=subprocess.PIPE) as process:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status")
            for _ in range(500):
                if "NoNewPrivs:\t1" in status.read_text():
                    break
                time.sleep(0.01)
            text = status.read_text()
            assert "NoNewPrivs:\t1" in text
            for name in ("CapPrm", "CapEff", "CapBnd") if os.geteuid() == 0 else ("CapPrm", "CapEff"):
                assert f"{name}:\t0000000000000000" in text
        finally:
            process.kill()


def test_strict_refuses_what_leads_around_its_lists():
    files = [path for path in SAMPLES if path.parts[-3] == "hostile" and "code.introspect" in expectation(path)[1]]
    done = subprocess.run([NACRE, "check", "--json", "--policy", "strict", *files], capture_output=True, text=True)
    allowed = [report["file"] for report in json.loads(done.stdout)["files"] if report["recommendation"] != "refuse"]
    assert len(files) > 20 and allowed == [] and done.returncode == 1
