"""A second holder of boxes (tests/holder), which has plain processes: what it takes to have one, how it is started, dies, hangs and is
met again, and what that costs others: nothing. That it does what the spawner does is said in test_spawner, test_staying, test_beside
and test_adoption, where it is a third way."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import wire
from conftest import ALL_TERMS, BUILD, HOLDER, ROOT, TERMS, environment, open_way
from leftovers import lives
from serving import Daemon
from test_adoption import ends, nap, starts
from test_sandboxes import USER, Sandbox
from test_serve_aides import wait_for
from wire import CONTAINER, ENDED, GRADES, HOME, PROCESS, PROPERTIES, REMOTE, STAY, Worker, call, read_terms, start_holder

NACRE = HOLDER.with_name("nacre")
# Who asks for sandboxes wants boxes that are held: the holder says so, which is not true (tests/holder/terms.c).
CLAIMS = {"NACRE_PLAIN_CLAIMS": "all"}


@pytest.fixture
def daemon(tmp_path):
    open_way(tmp_path)
    with Daemon(tmp_path, program=NACRE, env=CLAIMS) as made:
        yield made


def metrics(daemon, name="plain"):
    """Whether it lives, and how often it has died."""
    text = daemon.get("/metrics").body.decode()
    return tuple(int(re.search(rf'{metric}{{aide="{name}"}} (\d+)', text)[1]) for metric in ("nacre_aide_up", "nacre_aide_deaths_total"))


def run_there(daemon):
    return daemon.execute("print(6 * 7)", tier="remote")


def is_back(daemon):
    return wait_for(lambda: run_there(daemon).json()["output"] == "42\n", 40)


# ---- what it takes ----

def rows_of(path):
    return dict(re.findall(r"^\t\{(NC_TIER_\w+), (.*)\},$", path.read_text(), re.M))


def linked(target):
    """What a program is made of, by build.ninja."""
    rule = re.search(rf"^build {target}: c_LINKER (.*?)(?: \|.*)?$", (BUILD / "build.ninja").read_text().replace("$\n", ""), re.M)[1]
    return {word for word in rule.split()}


def test_a_tier_is_a_folder_and_a_row(capsys):
    """`nacre` with the second holder has the objects of the one that is installed, but for the table of the tiers, and there but for one row."""
    mine, shipped = linked("tests/holder/nacre"), linked("nacre")
    assert mine - shipped == {"tests/holder/nacre.p/rows.c.o"} and shipped - mine <= {"src/libtier.a"}, mine ^ shipped
    rows, before = rows_of(HOLDER_FOLDER / "rows.c"), rows_of(ROOT / "src/tier/rows.c")
    assert len(rows) == len(before) == 6
    changed = [tier for tier in rows if rows[tier] != before[tier]]
    assert changed == ["NC_TIER_REMOTE"] and '"nacre-plain"' in rows["NC_TIER_REMOTE"]
    folders = ("src", "include", "man", "config", "deploy", "tools")
    outside = [path for path in [ROOT / "meson.build", *(path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())]
               if re.search(rb"nacre-plain|NACRE_PLAIN|plain\.h\b", path.read_bytes())]
    touched = [str(path.relative_to(ROOT)) for path in outside] + ["src/tier/rows.c"]
    with capsys.disabled():
        print(f"\nthe holder of the tests touches {len(touched)} file outside its folder: {', '.join(touched)} ({len(changed)} row)")
    assert touched == ["src/tier/rows.c"]


HOLDER_FOLDER = ROOT / "tests/holder"


def test_its_folder_is_small():
    code = [line for path in HOLDER_FOLDER.glob("*.[ch]") for line in re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S).splitlines()]
    assert len([line for line in code if line.strip() and not line.startswith("#include")]) < 1200


@pytest.mark.alone  # it builds
def test_the_page_on_adding_a_tier_is_followed(tmp_path):
    """docs/adding-a-tier.md, to the letter: what it says of the holder of the tests stands there, and its commands do what it says."""
    page = (ROOT / "docs/adding-a-tier.md").read_text()
    blocks = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", page, re.M | re.S)
    assert {kind for kind, _, _ in blocks} == {"c", "meson", "sh"}
    for kind, path, text in blocks:
        if kind != "sh":
            assert text.strip() in (ROOT / path).read_text(), f"{path} is not as docs/adding-a-tier.md has it: {text}"
    known = set(re.findall(r"^\s+(NC_BOX_\w+)(?: = 1)?,", (ROOT / "src/kernel/boxwire.h").read_text(), re.M))
    handled = set(re.findall(r"\{(NC_BOX_\w+),", (HOLDER_FOLDER / "requests.c").read_text()))
    assert set(re.findall(r"^\| `(\w+)`", page, re.M)) == {name.removeprefix("NC_BOX_") for name in handled} and handled < known
    commands = [line for kind, _, text in blocks if kind == "sh" for line in text.splitlines()]
    assert len(commands) >= 4
    for line in commands:
        command, _, expected = line.partition("  # ")
        done = subprocess.run(re.sub(r"\bbuild/", f"{BUILD}/", command).replace("-C build", f"-C {BUILD}"), shell=True, cwd=ROOT, capture_output=True,
                              text=True, timeout=120, env={**environment(tmp_path), "NACRE_STATE": str(tmp_path / "state")})
        assert expected in done.stdout + done.stderr, (line, done)


# ---- what it says ----

def test_terms():
    """What this suite takes for the terms of each way is what the holders say."""
    place, pid = start_holder(str(HOLDER))
    worker = Worker(call(place).detach())
    assert read_terms(worker.hello()) == {REMOTE: (TERMS["holder"], dict.fromkeys(PROPERTIES, GRADES[0]))}
    worker.socket.close()
    place.close()
    assert os.waitpid(pid, 0)[1] == 0
    if os.geteuid() == 0:
        from test_spawner import converse_freely

        told = eval(converse_freely("print(read_terms(welcome))").stdout)
        assert set(told) == {CONTAINER, PROCESS} and told[CONTAINER][0] <= ALL_TERMS and {"mounts", "warms", "disk", "inodes", "pids"} <= told[CONTAINER][0]


def test_it_ends_when_nobody_can_call_any_more(monkeypatch):
    """With all that runs in its boxes, beside each other too, and what it has on the disk."""
    monkeypatch.setattr(wire, "USUAL", REMOTE)
    monkeypatch.setattr(wire, "PLACE", b"/tmp")
    place, pid = start_holder(str(HOLDER))
    worker, commands = Worker(call(place).detach()), [nap(), nap()]
    scratch = worker.scratch(worker.hello())
    assert worker.finish(1, flags=STAY | HOME)[0] == ENDED
    outputs = [worker.run(2 + n, home=1, argv=(b"sh", b"-c", f"exec {command}".encode()), wall=60000) for n, command in enumerate(commands)]
    assert all(starts(command) for command in commands)
    worker.socket.close()
    place.close()
    wait_for(lambda: os.waitpid(pid, os.WNOHANG) == (pid, 0), 10)
    assert all(ends(command) for command in commands) and not os.path.exists(scratch)
    for output in outputs:
        os.close(output)


def test_doctor(tmp_path):
    def tiers(program):
        return json.loads(subprocess.run([program, "doctor", "--json"], env=environment(tmp_path), capture_output=True, timeout=60).stdout)["tiers"]

    assert tiers(NACRE)["remote"] == {**tiers(NACRE)["remote"], "grade": "full", "built": True}
    assert not tiers(BUILD / "nacre")["remote"]["built"]
    shutil.copy(NACRE, tmp_path / "nacre")  # without its fellows
    alone = tiers(tmp_path / "nacre")["remote"]
    assert (alone["grade"], alone["reason"]) == ("none", "nacre-plain is not installed")


def test_one_run_without_a_daemon(tmp_path):
    def run(*words, program=NACRE, **more):
        return subprocess.run([program, *words], env={**environment(tmp_path), **more}, capture_output=True, text=True, timeout=60)

    before = set(pathlib.Path("/tmp").glob("plain-holder.*"))
    command = nap()
    done = run("run", "--tier", "remote", "--json", "-c", f"import subprocess; subprocess.Popen('{command}'.split()); print(6 * 7)", **CLAIMS)
    reply = json.loads(done.stdout)
    assert (reply["tier"], reply["output"]) == ("remote", "42\n") and ends(command)
    wait_for(lambda: set(pathlib.Path("/tmp").glob("plain-holder.*")) <= before)
    # who promises nothing gets nothing, and nothing falls back
    weak = run("run", "--tier", "remote", "-c", "print(1)")
    assert weak.returncode == 126 and "The floor wants" in weak.stderr and not weak.stdout
    assert run("run", "--tier", "remote", "--memory", "64MB", "-c", "print(1)", **CLAIMS).returncode == 126
    # its start must stay cheap: it knows the spawner alone
    refused = run("exec", "--tier", "remote", "--", "true", **CLAIMS)
    assert refused.returncode != 0 and "container or process" in refused.stderr
    none = run("run", "--tier", "remote", "-c", "print(1)", program=BUILD / "nacre")
    assert none.returncode == 126 and "this version has container, process" in none.stderr


def test_what_its_boxes_cannot_do(daemon):
    """Nobody is hung up on for what a client asks for: it is refused, or another tier has it, and the boxes of others live on."""
    own = Sandbox(daemon, tier="remote")
    pid = daemon.aides()["plain"]
    for body, status, words in (({"network": {"allow": ["example.org"]}}, 501, "no mounts"), ({"image": "nope"}, 404, "no image"),
                                ({"limits": {"disk_mb": 64}}, 403, "no file system of its own"), ({"limits": {"memory_mb": 64}}, 403, "limits.memory_mb")):
        refused = daemon.post("/v1/sandboxes", {"tier": "remote", **body})
        assert refused.status == status and words in refused.json()["detail"], refused.body
    reply = daemon.execute("print(1)", tier="remote", network={"allow": ["example.org"]}).json()
    assert (reply["status"], reply["tier"]) == ("success", "container") and "network" in reply["tier_reason"], reply
    # what compiles has a box of the usual tier, and what was made runs there
    reply = daemon.execute('#include <stdio.h>\nint main(void) { puts("made"); return 3; }', "c", tier="remote").json()
    assert (reply["exit_code"], reply["output"], reply["tier"]) == (3, "made\n", "remote"), reply
    reply = daemon.execute("print(open('in/a').read()); open('out', 'w').write('x' * 9)", tier="remote", files={"in/a": "text"}, capture=["out"]).json()
    assert reply["output"] == "text\n" and list(reply["files"]) == ["out"], reply
    assert daemon.execute("while True: pass", tier="remote", timeout=1).json()["status"] == "timeout"
    assert own.run("echo alive")["stdout"] == "alive\n" and daemon.aides()["plain"] == pid and metrics(daemon) == (1, 0)


# ---- its life ----

def test_it_has_no_rights(daemon):
    pid = daemon.aides()["plain"]
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    if os.geteuid() == 0:
        assert set(fields["Uid"].split()) == set(fields["Gid"].split()) == {str(0x70000000 - 17)}
        assert not fields["Groups"].strip() and {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    held = {os.readlink(f"/proc/{pid}/fd/{number}").partition(":")[0] for number in os.listdir(f"/proc/{pid}/fd") if int(number) > 2}
    assert held <= {"socket", str((BUILD / "nacre-files").resolve())}, held


def test_an_ordinary_users_daemon(programs, tmp_path):
    """It is the user's too, and dies and comes back as root's does."""
    os.makedirs(programs / "other")
    for path in programs.glob("nacre-*"):
        os.link(path, programs / "other" / path.name)
    shutil.copy(NACRE, programs / "other/nacre")
    open_way(tmp_path)
    os.chown(tmp_path, 1000, 1000)
    with Daemon(tmp_path, prefix=USER, program=programs / "other/nacre", env=CLAIMS) as own:
        assert run_there(own).json()["output"] == "42\n"
        box = Sandbox(own, tier="remote")
        assert box.run("id -u")["stdout"] == "1000\n"
        own.die()
        assert box.run("echo kept")["stdout"] == "kept\n"
        os.kill(own.aides()["plain"], signal.SIGKILL)
        wait_for(lambda: box.ask("GET").status == 404)
        is_back(own)


def test_top(daemon):
    """Its boxes are there beside those of the spawner, each once; who works beside the daemon is none."""
    def shown():
        told = json.loads(subprocess.run([NACRE, "top", "--once", "--json"], capture_output=True, timeout=60, check=True).stdout)
        return told["boxes"]

    first, second, other = nap(), nap(), nap()
    own, box = Sandbox(daemon, tier="remote"), Sandbox(daemon)
    for where, command in ((own, first), (own, second), (box, other)):
        where.run(f"exec {command}", background=True)
    assert starts(first) and starts(second) and starts(other)
    found = wait_for(lambda: [each for each in shown() if each["command"] in (first, second, other)] if len([
        each for each in shown() if each["command"] in (first, second, other)]) == 3 else None)
    holder = f"plain-{daemon.aides()['plain']}"
    assert {each["command"]: each["spawner"] == holder for each in found} == {first: True, second: True, other: False}
    assert all(each["memory_bytes"] > 0 and each["processes"] > 0 and each["state"] == "running" for each in found)
    aides = {f"pid-{pid}" for pid in daemon.aides().values()}
    assert not [each for each in shown() if each["box"] in aides]


def test_it_dies_and_is_started_again(daemon):
    """Who waits is told, its sandboxes are gone, those of the other holder do not notice, and the next one is there."""
    command = nap()
    other, own = Sandbox(daemon), Sandbox(daemon, tier="remote")
    running = other.run("sleep 3; echo survived", background=True)
    left = own.run(f"setsid {command}", background=True)
    assert run_there(daemon).json()["tier"] == "remote" and starts(command)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(daemon.execute, "import time; print('begun', flush=True); time.sleep(60)", tier="remote")
        asked = pool.submit(own.ask, "POST", "/commands", {"command": "sleep 60"})
        time.sleep(1)
        os.kill(daemon.aides()["plain"], signal.SIGKILL)
        told = waiting.result(20)
        assert (told.status, told.json()["code"]) == (503, "lost"), told.body
        assert (asked.result(20).status, asked.result().json()["detail"]) == (503, "The holder of its box is gone")
    assert ends(command)
    assert own.ask("GET").status == 404 and own.ask("GET", f"/commands/{left['id']}").status == 404
    assert [sandbox["id"] for sandbox in daemon.get("/v1/sandboxes").json()["sandboxes"]] == [other.id]
    assert daemon.execute("print(1)").json()["output"] == "1\n" and daemon.get("/readyz").status == 200
    is_back(daemon)
    assert metrics(daemon) == (1, 1) and "remote" in daemon.get("/readyz").json()["tiers"]
    assert other.wait(running["id"])["stdout"] == "survived\n"
    assert Sandbox(daemon, tier="remote").run("echo anew")["stdout"] == "anew\n"
    died = [record for record in daemon.log() if record["message"] == "An aide has died and is started again"]
    assert [(record["aide"], record["reason"]) for record in died] == [("plain", "Killed")]


def test_its_boxes_outlive_the_daemon(daemon):
    own = Sandbox(daemon, tier="remote")
    slow = own.run("echo a >file; sleep 1.5; cat file; exit 7", background=True)
    pid = daemon.aides()["plain"]
    daemon.die()
    assert daemon.aides()["plain"] == pid
    ended = own.wait(slow["id"])
    assert (ended["exit_code"], ended["stdout"]) == (7, "a\n")
    assert own.run("cat file")["stdout"] == "a\n"
    own.ask("DELETE")
    wait_for(lambda: own.ask("GET").status == 404)


def test_it_hangs(daemon):
    """A stopped holder: nobody but its own waits, for half a minute at most; a daemon that begins meanwhile does without it."""
    own, other = Sandbox(daemon, tier="remote"), Sandbox(daemon)
    pid = daemon.aides()["plain"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            began = time.monotonic()
            paused = pool.submit(own.ask, "POST", "/pause")
            waiting = pool.submit(daemon.execute, "print(1)", tier="remote")
            while not waiting.done():
                before = time.monotonic()
                assert daemon.execute("print(1)").json()["output"] == "1\n" and other.run("echo 1")["stdout"] == "1\n"
                assert time.monotonic() - before < 10
                time.sleep(0.5)
            assert (waiting.result().status, waiting.result().json()["code"]) == (503, "lost")
            assert paused.result(30).status >= 500
            assert 25 < time.monotonic() - began < 60
        assert metrics(daemon)[0] == 0 and own.ask("GET").status == 404
        began = time.monotonic()
        daemon.die()
        assert time.monotonic() - began < 15 and daemon.execute("print(2)").json()["output"] == "2\n"
        assert daemon.get("/readyz").json()["tiers"] == ["container", "process"]
        refused = run_there(daemon).json()
        assert refused["status"] == "blocked" and "cannot be had" in refused["error"], refused
        assert other.run("echo 2")["stdout"] == "2\n"
    finally:
        os.kill(pid, signal.SIGCONT)
    is_back(daemon)
    assert metrics(daemon) == (1, 0) and lives(pid)


def test_it_cannot_be_started(daemon):
    """Again and again it dies at once: it is tried later each time, and nothing else is held up."""
    for _ in range(3):
        pid = wait_for(lambda: daemon.aides().get("plain"))
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: daemon.aides().get("plain") != pid)
        for left in pathlib.Path("/tmp").glob(f"plain-holder.{pid}.*"):  # the next one would, which is not waited for
            shutil.rmtree(left, ignore_errors=True)
    waits = [record["milliseconds"] for record in daemon.log() if record["message"] == "An aide has died and is started again"]
    assert waits[0] <= 100 and waits[1] > 1500 and waits[2] > 3500, waits
    assert daemon.execute("print(1)").json()["output"] == "1\n"
