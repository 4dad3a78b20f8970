"""Every run is recorded before its reply: what is acknowledged is there whatever is killed, and what was lost is said."""

import json
import os
import random
import signal
import subprocess
import time

import pytest

from conftest import open_way
from leftovers import lives


@pytest.fixture(params=["root", "user"])
def nacre(request, programs, tmp_path_factory):
    home = tmp_path_factory.mktemp(f"history-{request.param}")
    prefix = []
    if request.param == "user":
        os.chown(home, 65534, 65534)
        open_way(home.parent)
        prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "NACRE_STATE": str(home / "state")}

    def command(*words):
        return [*prefix, str(programs / "nacre"), *words]

    def run(*words, **options):
        return subprocess.run(command(*words), capture_output=True, text=True, timeout=60, env=environment, **options)

    run.start = lambda *words: subprocess.Popen(command(*words), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                                start_new_session=True)
    run.home = home
    return run


def history(nacre, *words):
    done = nacre("history", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["executions"]


def show(nacre, name):
    return json.loads(nacre("history", "show", name, "--json").stdout)["executions"][0]


def test_a_run_has_a_receipt_and_a_record(nacre):
    reply = json.loads(nacre("run", "--json", "--lang", "python", "-c", "print('kept')").stdout)
    receipt = reply["receipt"]
    assert receipt["seq"] > 0 and len(receipt["hash"]) == 64
    record = show(nacre, receipt["id"])
    assert (record["status"], record["language"], record["code"], record["stdout"]) == ("success", "python", "print('kept')", "kept\n"), record
    assert nacre("audit", "verify").returncode == 0
    head = nacre("audit", "head").stdout.strip()
    assert int(head.split(":")[0]) >= receipt["seq"]
    assert nacre("audit", "verify", "--head", head).returncode == 0


def test_all_that_was_printed_is_found_by_its_id(nacre):
    reply = json.loads(nacre("run", "--json", "--lang", "shell", "-c", "yes 0123456789abcde | head -n 655360").stdout)
    assert reply["truncated"] is True
    record = show(nacre, reply["receipt"]["id"])
    assert record["stdout"] == "0123456789abcde\n" * 655360


def test_refusals_are_recorded_as_security(nacre):
    nacre("run", "--policy", "strict", "--lang", "python", "-c", "import socket")
    assert [record["status"] for record in history(nacre)] == ["blocked"]
    lines = [json.loads(line) for line in nacre("audit", "log", "--kind", "security", "--json").stdout.splitlines()]
    assert [line["event"] for line in lines] == ["blocked"] and "socket" in lines[0]["body"]["error"], lines


def test_the_four_kinds_of_lines(nacre):
    nacre("run", "--lang", "shell", "-c", "unshare -U true; true")
    found = {json.loads(line)["kind"] for line in nacre("audit", "log", "--json").stdout.splitlines()}
    assert found == {"execution", "security", "performance", "audit"}


def test_the_spawner_bears_witness(nacre):
    nacre("run", "--lang", "shell", "-c", "exit 3")
    lines = [json.loads(line) for line in nacre("audit", "log", "--kind", "audit", "--json").stdout.splitlines()]
    deaths = [line["body"] for line in lines if line["event"] == "died"]
    assert [death["exit_code"] for death in deaths] == [3], deaths
    assert all(line.get("from", line.get("by", "spawner")) == "spawner" for line in lines if line["event"] in ("born", "died"))


def test_who_is_interrupted_has_a_bill(nacre):
    """Ctrl-C ends command line and program alike; the spawner bears witness of what was used."""
    code = "import ctypes, time\nctypes.CDLL(None).ptrace(16, 1, 0, 0)\nuntil = time.process_time() + 0.5\nwhile time.process_time() < until: pass\nprint('burnt', flush=True)\ntime.sleep(60)"
    command = nacre.start("run", "--lang", "python", "-c", code)
    assert command.stdout.readline() == "burnt\n"
    os.killpg(command.pid, signal.SIGINT)
    command.wait(timeout=30)
    until = time.monotonic() + 30
    while (found := history(nacre)[0])["status"] == "running" or not found.get("cpu_seconds"):
        assert time.monotonic() < until, found
        time.sleep(0.1)
    assert found["status"] == "lost" and found["cpu_seconds"] >= 0.45 and found["wall_seconds"] >= 0.45, found
    # and what was refused to it is told, in history and audit
    ptrace, = found["denials"]
    assert (ptrace["id"], ptrace["count"], ptrace["object"]) == ("seccomp.ptrace", 1, "ptrace") and ptrace["instead"], found
    while not (lines := [json.loads(line) for line in nacre("audit", "log", "--kind", "security", "--json").stdout.splitlines()]):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert [(line["from"], line["body"]["id"], line["body"]["denials"][0]["id"]) for line in lines] == [("recorder", found["id"], "seccomp.ptrace")]


def test_a_place_that_cannot_be_written_is_said(nacre):
    state = nacre.home / "state"
    state.write_text("no directory")
    done = nacre("run", "--json", "--lang", "shell", "-c", "echo still")
    assert json.loads(done.stdout)["receipt"] is None and "Not recorded" in done.stderr


def family(pid):
    found = [pid]
    for parent in found:
        try:
            found += [int(word) for word in open(f"/proc/{parent}/task/{parent}/children").read().split()]
        except OSError:
            pass
    return found


def test_kill_9_loses_no_acknowledged_record(nacre):
    """Somebody of a run is killed at a random moment, a hundred times; what had a receipt is in the chain afterwards."""
    generator = random.Random(20261116)
    acknowledged = {}
    rounds = 50  # of each, root and user
    for _ in range(rounds):
        process = nacre.start("run", "--json", "--lang", "shell", "-c", "echo x; sleep 0.02")
        time.sleep(generator.uniform(0, 0.08))
        members = family(process.pid)
        victim = generator.choice(members)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
        output, _ = process.communicate(timeout=30)
        if output:
            try:
                reply = json.loads(output)
            except json.JSONDecodeError:
                continue  # killed while it printed
            if reply["receipt"] and "seq" in reply["receipt"]:
                acknowledged[reply["receipt"]["id"]] = reply["status"]
    deadline = time.monotonic() + 10
    while True:  # recorders finish by themselves
        done = nacre("run", "--json", "--lang", "shell", "-c", "true")
        records = {record["id"]: record for record in history(nacre, "--limit", "1000")}
        if all(record["status"] != "running" for record in records.values()) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert acknowledged and all(name in records and records[name]["status"] == status for name, status in acknowledged.items())
    assert nacre("audit", "verify").returncode == 0, nacre("audit", "verify").stdout
    assert done.returncode == 0


def test_a_run_whose_spawner_dies_is_lost(nacre):
    """The recorder outlives the others, and ends what they had begun."""
    process = nacre.start("run", "--lang", "shell", "-c", "sleep 30")
    deadline = time.monotonic() + 10
    while not any(read(f"/proc/{pid}/comm") == b"sleep\n" for pid in family(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait(timeout=10)
    time.sleep(0.5)
    assert [record["status"] for record in history(nacre)] == ["lost"]


def test_what_was_lost_is_said_at_the_next_start(nacre):
    process = nacre.start("run", "--lang", "shell", "-c", "sleep 30")
    deadline = time.monotonic() + 10
    while not any(read(f"/proc/{pid}/comm") == b"sleep\n" for pid in family(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    # the recorder first, which would record it itself; then from the top
    all_of_it = family(process.pid)
    for pid in sorted(all_of_it, key=lambda pid: b"recorder" not in read(f"/proc/{pid}/cmdline")):
        if pid > 1:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    process.wait(timeout=10)
    # who is killed while it waits for the disk takes a moment to die
    while any(lives(pid) for pid in all_of_it) and time.monotonic() < deadline + 20:
        time.sleep(0.02)
    done = nacre("run", "--lang", "shell", "-c", "echo next")
    assert done.stdout == "next\n" and "recorded as lost" in done.stderr, done.stderr
    assert sorted(record["status"] for record in history(nacre)) == ["lost", "success"]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
