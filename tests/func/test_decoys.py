"""Decoys: keys that open nothing, in a box whose policy wants them; who reads one is told of."""

import json
import subprocess
import time

import pytest

from conftest import NACRE
from serving import Daemon
from test_sandboxes import Sandbox
from test_snapshots import keep, restore

PATHS = (".aws/credentials", ".ssh/id_rsa", ".kube/config", ".env.production")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    home = tmp_path_factory.mktemp("decoys")
    policies = home / "config" / "policies"
    policies.mkdir(parents=True)
    (policies / "baited.yaml").write_text("inherits: standard\ndecoys: true\n")
    (policies / "deaf.yaml").write_text("inherits: standard\ndecoys: true\nalerts:\n  decoys_touched: 0\n")
    (policies / "several.yaml").write_text("inherits: standard\ndecoys: true\nalerts:\n  decoys_touched: 3\n")
    (policies / "unbaited.yaml").write_text("inherits: standard\ndecoys: false\n")
    with Daemon(home, config=home / "config") as made:
        yield made


def ask(daemon, code, language="shell", policy="baited", **more):
    return daemon.execute(code, language, policy=policy, **more).json()


def touched(reply):
    return [alert for alert in reply["alerts"] if alert["id"] == "decoys_touched"]


@pytest.mark.parametrize("path", PATHS)
def test_who_reads_one_is_told_of(daemon, path):
    reply = ask(daemon, f"cat ~/{path}")
    assert reply["status"] == "success" and len(reply["output"]) > 50, reply
    alert, = touched(reply)
    assert (alert["severity"], alert["value"], alert["threshold"]) == ("high", 1, 1) and "decoys" in alert["reason"]
    assert ask(daemon, f"cat ~/{path}")["output"] != reply["output"], "everybody would know it"


@pytest.mark.parametrize("language, code", [
    ("python", "print(open('.aws/credentials').read(1))"), ("python", "import os; os.sendfile(1, os.open('.ssh/id_rsa', 0), 0, 9)"),
    ("python", "import mmap, os; print(mmap.mmap(os.open('.ssh/id_rsa', 0), 0, prot=mmap.PROT_READ)[5])"),
    ("shell", "rm ~/.aws/credentials"), ("shell", "echo mine > ~/.aws/credentials"), ("shell", "mv ~/.ssh ~/other"),
    ("shell", "cp -r ~/.ssh /tmp"), ("shell", "ln -s ~/.kube/config k; cat k"), ("shell", "grep -rq AKIA ."), ("shell", "cat ~/.env.production; exit 3"),
    ("shell", "cat ~/.aws/credentials; kill -9 $$")])
def test_ways_to_touch_one(daemon, language, code):
    assert touched(ask(daemon, code, language)), code


def test_all_of_them(daemon):
    reply = ask(daemon, "cat " + " ".join(PATHS))
    assert touched(reply)[0]["value"] == 4
    record = daemon.get(f"/v1/history/{reply['receipt']['id']}").json()
    assert record["status"] == "success"


@pytest.mark.parametrize("code", ["true", "ls -laR ~", "find ~ -type f -newer /etc/passwd", "stat ~/.aws/credentials", "test -r ~/.ssh/id_rsa",
                                  "echo hello > file; cat file", "mkdir -p ~/.ssh; echo key > ~/.ssh/config"])
def test_honest_programs_touch_none(daemon, code):
    reply = ask(daemon, code)
    assert reply["status"] == "success" and not reply["alerts"], reply


def test_it_is_told_whatever_became_of_the_program(daemon):
    reply = ask(daemon, "cat ~/.aws/credentials; sleep 60", timeout=1)
    assert reply["status"] == "timeout" and touched(reply), reply


def test_steps(daemon):
    reply = daemon.post("/v1/execute", {"policy": "baited", "steps": [
        {"language": "shell", "code": "true"}, {"language": "python", "code": "open('.kube/config').read()"}]}).json()
    assert reply["status"] == "success" and touched(reply), reply


def test_files_that_come_out_are_the_programs(daemon):
    """Decoys are not among them; what the program put in the place of one is."""
    reply = ask(daemon, "echo 1 > made; cat ~/.ssh/id_rsa > /dev/null; mkdir -p .kube; echo mine > .kube/config", capture=["**", "*"])
    assert sorted(path for path in reply["files"] if not path.startswith("main")) == [".kube/config", "made"], reply["files"]
    assert touched(reply)[0]["value"] == 2
    reply = ask(daemon, "cat made || true", capture=["*"])
    assert not touched(reply) and not any(path in str(reply["files"]) for path in PATHS)


def test_files_of_the_request_come_first(daemon):
    files = {".aws/credentials": "mine", ".ssh": "a file", ".kube/config/deeper": "x"}
    reply = ask(daemon, "cat .aws/credentials .ssh .kube/config/deeper", files=files)
    assert reply["output"] == "minea filex" and not touched(reply), reply
    assert touched(ask(daemon, "cat .env.production", files=files))


def test_only_where_the_policy_wants_them(daemon):
    for policy in ("standard", "unbaited"):
        assert ask(daemon, "ls -A", policy=policy)["output"].split() == ask(daemon, "ls", policy=policy)["output"].split()
    assert not touched(ask(daemon, "cat ~/.aws/credentials", policy="deaf"))
    assert not touched(ask(daemon, "cat ~/.aws/credentials", policy="several"))
    assert touched(ask(daemon, "cat " + " ".join(PATHS), policy="several"))


def test_a_process_box_becomes_a_container(daemon):
    reply = ask(daemon, "true", tier="process")
    assert reply["tier"] == "container" and "decoys" in reply["tier_reason"], reply
    assert touched(ask(daemon, "cat ~/.aws/credentials", tier="process"))


def test_they_look_as_if_they_had_lain_there(daemon):
    ages = [time.time() - int(word) for word in ask(daemon, "stat -c %Y " + " ".join(PATHS))["output"].split()]
    assert len(ages) == 4 and all(30 * 86400 < age < 40 * 86400 for age in ages)


@pytest.mark.parametrize("code", ["import os; os.read(os.open('.aws/credentials', os.O_RDONLY | os.O_NOATIME), 9)",
                                  "open('.aws/credentials').close()",
                                  "import os; s = os.stat('.ssh/id_rsa'); open('.ssh/id_rsa').read(); os.utime('.ssh/id_rsa', ns=(s.st_atime_ns, s.st_mtime_ns))"])
def test_what_it_cannot_see(daemon, code):
    """As docs/policy.md says; should one of these be seen one day, it has to say so."""
    assert not touched(ask(daemon, code, "python"))


# ---- commands in sandboxes


@pytest.fixture
def box(daemon):
    made = Sandbox(daemon, policy="baited")
    yield made
    made.ask("DELETE")


def value(reply):
    return touched(reply)[0]["value"] if touched(reply) else 0


def test_commands_are_told_of_too(daemon, box):
    """Each command by itself, and again if one reads again."""
    before = series(daemon)
    assert value(box.run("cat .aws/credentials")) == 1
    assert value(box.run("true")) == 0
    assert value(box.run("cat .aws/credentials .ssh/id_rsa", background=False)) == 2
    running = box.run("sleep 0.3; cat ~/.kube/config; exit 4", background=True)["id"]
    assert value(box.wait(running)) == 1 and box.command(running)["exit_code"] == 4
    assert series(daemon) - before == 3


def series(daemon):
    found = [line for line in daemon.get("/metrics").body.decode().splitlines() if line.startswith('nacre_threats_total{signal="decoys_touched"}')]
    return float(found[0].split()[-1]) if found else 0


@pytest.mark.parametrize("command", ["rm .aws/credentials", "echo mine >.aws/credentials", "mv .ssh other"])
def test_what_a_command_changes_is_told_once(box, command):
    assert value(box.run(command)) == 1
    assert value(box.run("true")) == 0 and value(box.run("cat .aws/credentials other/* 2>&1; true")) <= 1
    assert value(box.run("cat .env.production")) == 1  # and the others are there still


def test_honest_commands_touch_none(box):
    for command in ("true", "ls -laR ~", "stat .aws/credentials", "echo hello >file; cat file", "exit 3"):
        assert value(box.run(command)) == 0, command


def test_who_packs_and_restores_touches_none(daemon, box):
    box.run("echo 1 >file")
    kept = keep(box)
    assert box.ask("GET", "/archive?path=/workspace").status == 200
    assert value(box.run("true")) == 0
    assert restore(box, kept["id"]).status == 204
    assert value(box.run("cat file")) == 0
    assert value(box.run("cat .ssh/id_rsa")) == 1
    plain = Sandbox(daemon)
    none = keep(plain)
    plain.ask("DELETE")
    assert restore(box, none["id"]).status == 204
    assert value(box.run("ls -A")) == 0  # a snapshot has its own decoys, or none
    other = Sandbox(daemon, policy="baited", snapshot=kept["id"])
    assert value(other.run("cat file")) == 0 and value(other.run("cat .aws/credentials")) == 1
    other.ask("DELETE")


def test_only_sandboxes_whose_policy_wants_them(daemon):
    plain = Sandbox(daemon)
    assert plain.run("ls -A")["stdout"] == "" and not touched(plain.run("cat .aws/credentials"))
    plain.ask("DELETE")


def test_a_sandbox_that_goes_while_it_is_looked_at(daemon):
    for pause in (0, 0.005, 0.01, 0.02):
        box = Sandbox(daemon, policy="baited")
        box.run("true", background=True)
        time.sleep(pause)
        assert box.ask("DELETE").status == 204
    assert daemon.get("/healthz").status == 200


def test_a_daemon_that_dies_while_it_looks(tmp_path):
    policies = tmp_path / "config" / "policies"
    policies.mkdir(parents=True)
    (policies / "baited.yaml").write_text("inherits: standard\ndecoys: true\n")
    for path in (tmp_path, tmp_path / "config", policies):
        path.chmod(0o755)
    with Daemon(tmp_path, config=tmp_path / "config") as daemon:
        box = Sandbox(daemon, policy="baited")
        assert value(box.run("cat .aws/credentials")) == 1
        ids = [box.run(f"sleep 0.0{i}; exit {i}", background=True)["id"] for i in range(1, 8)]
        daemon.die()
        assert [box.wait(one)["exit_code"] for one in ids] == list(range(1, 8))
        assert value(box.run("cat .aws/credentials")) == 1 and value(box.run("true")) == 0
    lines = subprocess.run([str(NACRE), "audit", "log", "--json"], env=daemon.env, capture_output=True, text=True, check=True).stdout
    found = [json.loads(line)["body"]["id"] for line in lines.splitlines() if '"event":"sandbox.command"' in line]
    assert sorted(one for one in found if one in ids) == sorted(ids), "each is recorded once"
