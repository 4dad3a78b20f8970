"""SIGUSR2: `nacre serve` goes on with the executable that has its name now. Sandboxes and their commands stay, and who asks waits for a moment."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest

from conftest import HOLDER, NACRE, ROOT, open_way
from serving import Daemon
from test_sandboxes import USER, Sandbox
from test_serve_adoption import COUNT, counted

KILLS = int(os.environ.get("NACRE_KILLS", "4"))  # each takes six seconds
PROGRAMS = ("nacre", "nacre-spawner", "nacre-exec", "nacre-recorder", "nacre-egress", "nacre-files", "nacre-init", "nacre-relay", "nacre-sudo")
SPEAKS = subprocess.run([NACRE, "serve", "--speaks"], capture_output=True, text=True, check=True).stdout
CODE = """#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) { int asked = argc == 3 && strcmp(argv[2], "--speaks") == 0; %s }
"""
SAYS = f'if (asked) return puts("{SPEAKS.strip()}") < 0;'
VERSION = subprocess.run([NACRE, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


class Installed(Daemon):
    """A daemon whose programs are the test's own, and can be replaced."""

    def __init__(self, home, *options, source=pathlib.Path(NACRE), programs=PROGRAMS, **more):
        self.where, self.source = pathlib.Path(home) / "bin", source
        self.where.mkdir()
        self.where.chmod(0o755)
        for name in programs:
            shutil.copy2(source.parent / name, self.where / name)
        super().__init__(home, *options, program=self.where / "nacre", respawn=True, **more)
        self.was = self.pid

    def replace(self, version=None, code=None, build=None):
        """As an installer does it: by a file with the same name. The version has as many letters as ours; code is the body of a main()."""
        fresh = self.where / "nacre.fresh"
        if build is not None:
            shutil.copy2(build / "nacre", fresh)
        elif code is not None:
            source = self.where / "other.c"
            source.write_text(CODE % code)
            subprocess.run(["gcc", "-o", fresh, source], check=True)
        else:
            data = self.source.read_bytes()
            if version:
                assert len(version) == len(VERSION) and VERSION.encode() in data
                data = data.replace(VERSION.encode(), version.encode())
            fresh.write_bytes(data)
        fresh.chmod(0o755)
        fresh.rename(self.where / "nacre")

    def count(self, message):
        return sum(record["message"] == message for record in self.log())

    def upgrade(self, outcome="Upgraded", seconds=30):
        """Asks for it, and waits for its end; returns the last word of the log about it."""
        before = self.count(outcome)
        self.process.send_signal(signal.SIGUSR2)
        until = time.monotonic() + seconds
        while self.count(outcome) == before:
            assert time.monotonic() < until and self.process.poll() is None, open(self.log_path).read()
            time.sleep(0.02)
        self.pid = [record["pid"] for record in self.log() if record["message"] == "Listening"][-1]
        return [record for record in self.log() if record["message"] == outcome][-1]

    def version(self):
        return self.get("/v1/version").json()["version"]


def other(n):
    """Another version, as long as ours."""
    return VERSION[:-1] + str(n)


def patient(ask, seconds=30):
    """As a client that connects again when there is no answer."""
    until = time.monotonic() + seconds
    while True:
        try:
            answer = ask()
            if isinstance(answer, str) or answer.status:
                return answer
        except (OSError, ValueError):
            pass
        assert time.monotonic() < until
        time.sleep(0.02)


def test_commands_go_on_in_another_version_and_back(tmp_path):
    with Installed(tmp_path) as daemon:
        box = Sandbox(daemon, labels={"a": "b"}, env={"KEPT": "yes"})
        assert box.write("/workspace/file", b"content").status == 204
        running = [box.run(COUNT % 300, background=True) for _ in range(3)]
        typing = box.run("while read x; do echo got $x; done; echo over", keep_input=True, background=True)
        spawner = subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout
        pids = [daemon.pid]
        for n in (9, 8):
            daemon.replace(other(n))
            daemon.upgrade()
            assert daemon.version() == other(n) and daemon.pid not in pids
            pids.append(daemon.pid)
            assert box.run("cat file; echo $KEPT")["stdout"] == "contentyes\n"
            assert box.ask("POST", f"/commands/{typing['id']}/input", f"{n}\n".encode(), headers={"Content-Type": "text/plain"}).json()["taken"] == 2
        daemon.replace()
        daemon.upgrade()
        assert daemon.version() == VERSION
        assert box.ask("POST", f"/commands/{typing['id']}/input?end=true", b"", headers={"Content-Type": "text/plain"}).status == 200
        assert [box.wait(one["id"], 20)["stdout"] for one in running] == [counted(300)] * 3
        assert box.wait(typing["id"])["stdout"] == "got 9\ngot 8\nover\n"
        assert subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout == spawner
        # it holds for whoever comes after a death, too
        daemon.replace(other(7))
        daemon.upgrade()
        daemon.die()
        assert daemon.version() == other(7) and box.run("cat file")["stdout"] == "content"
    assert daemon.code == 0


@pytest.mark.parametrize("code, reason", [
    ("", "Open '"),
    ("return 3 + asked;", "It cannot be executed"),
    ('puts("boxwire 99 98 beside 1 version 9"); return 0 * asked;', "version 99 of the box wire"),
    (f'puts("{SPEAKS.strip().replace(" beside ", " beside 9")}"); return 0 * asked;', "speaks with recorder and others in another way"),
    ('puts("hello"); return 0 * asked;', "does not say what it speaks"),
    ('for (int i = 0; i < 100000; i++) puts("boxwire"); return 0 * asked;', "File too large"),
    ("return (int)sleep(60) + asked;", "Ask it what it speaks"),
    # it has said all, and does not end: whoever waited for that would hear no signal any more
    (f'puts("{SPEAKS.strip()}"); fclose(stdout); return (int)sleep(60) + asked;', "Ask it what it speaks"),
    (SAYS + " return 1;", "did not come up"),
    (SAYS + " return raise(SIGKILL);", "did not come up"),
])
def test_a_broken_executable_changes_nothing(tmp_path, code, reason):
    with Installed(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = box.run(COUNT % 100, background=True)
        if code:
            daemon.replace(code=code)
        else:
            (daemon.where / "nacre").unlink()
        told = daemon.upgrade("Not upgraded: the old version goes on")
        assert reason in told["reason"], told
        assert daemon.version() == VERSION and box.wait(running["id"], 20)["stdout"] == counted(100)
        daemon.replace(other(9))
        daemon.upgrade()
        assert daemon.version() == other(9) and box.run("echo on")["stdout"] == "on\n"


def test_one_that_hangs_is_given_up(tmp_path):
    with Installed(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = box.run("sleep 1; echo end", background=True)
        daemon.replace(code=SAYS + ' execl("/bin/sleep", "sleep", "4739", (char *)0); return 1;')
        assert "did not come up" in daemon.upgrade("Not upgraded: the old version goes on", 60)["reason"]
        assert daemon.version() == VERSION and box.wait(running["id"])["stdout"] == "end\n"
    assert subprocess.run(["pgrep", "-xf", "sleep 4739"], capture_output=True).returncode == 1


def test_executions_end_before_it(tmp_path):
    with Installed(tmp_path) as daemon:
        told = []
        waiting = [threading.Thread(target=lambda: told.append(daemon.execute("sleep 1.5; echo whole", "shell"))) for _ in range(3)]
        for one in waiting:
            one.start()
        job = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 1.5; echo job"}).json()["id"]
        time.sleep(0.3)
        daemon.replace(other(9))
        began = time.monotonic()
        daemon.upgrade()
        assert time.monotonic() - began > 0.5
        for one in waiting:
            one.join(20)
        assert [(answer.status, answer.json()["output"]) for answer in told] == [(200, "whole\n")] * 3
        assert all(answer.headers["connection"].lower() == "close" for answer in told)
        assert daemon.version() == other(9) and daemon.get(f"/v1/history/{job}").json()["status"] == "success"


def test_executions_that_take_too_long_call_it_off(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text("drain_seconds: 1\n")
    tmp_path.chmod(0o755)
    with Installed(tmp_path, config=config) as daemon:
        told = []
        waiting = threading.Thread(target=lambda: told.append(daemon.execute("sleep 4; echo whole", "shell")))
        waiting.start()
        time.sleep(0.5)
        daemon.replace(other(9))
        assert "drain_seconds" in daemon.upgrade("Not upgraded: the old version goes on")["reason"]
        assert daemon.version() == VERSION  # and it takes connections again
        waiting.join(20)
        assert told[0].json()["output"] == "whole\n"
        daemon.upgrade()
        assert daemon.version() == other(9)


def test_the_second_while_the_first_is_under_way(tmp_path):
    with Installed(tmp_path) as daemon:
        box = Sandbox(daemon)
        job = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 2; echo job"}).json()["id"]
        daemon.replace(other(9))
        daemon.process.send_signal(signal.SIGUSR2)
        daemon.wait_for_log("Leaving to a new version")
        daemon.replace(other(8))
        for _ in range(3):  # asked for again is wanted once
            daemon.process.send_signal(signal.SIGUSR2)
        daemon.upgrade()
        until = time.monotonic() + 20
        while patient(daemon.version) != other(8):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert daemon.count("Upgraded") <= 2
        assert box.run("echo on")["stdout"] == "on\n" and daemon.get(f"/v1/history/{job}").json()["status"] == "success"


def test_under_load_no_request_fails(tmp_path):
    """Whoever gets no answer connects again; whoever gets one gets the right one."""
    with Installed(tmp_path) as daemon:
        box, wrong, right, stop = Sandbox(daemon), [], [], threading.Event()

        def load(number):
            n = 0
            while not stop.is_set():
                n += 1
                for answer, wanted in ((patient(lambda: daemon.execute(f"echo {number}.{n}", "shell")), "output"),
                                       (patient(lambda: box.ask("POST", "/commands", {"command": f"echo {number}.{n}"})), "stdout")):
                    if answer.status == 200 and answer.json()[wanted] == f"{number}.{n}\n":
                        right.append(n)
                    else:
                        wrong.append(answer.body)

        counting = Sandbox(daemon)
        running = counting.run(COUNT % 400, background=True)
        clients = [threading.Thread(target=load, args=(number,)) for number in range(4)]
        for client in clients:
            client.start()
        for n in (9, 8, 7):
            time.sleep(1)
            daemon.replace(other(n))
            daemon.upgrade()
        time.sleep(0.5)
        stop.set()
        for client in clients:
            client.join(30)
        assert not wrong and len(right) > 50, wrong[:3]
        assert daemon.version() == other(7) and counting.wait(running["id"], 30)["stdout"] == counted(400)
        assert daemon.get("/v1/audit/verify").json()["ok"]


def test_killed_in_the_middle_of_it(tmp_path):
    """The worker dies at some moment of an upgrade: no line is lost or doubled, and either version goes on."""
    chance = random.Random(11)
    with Installed(tmp_path) as daemon:
        box = Sandbox(daemon)
        running = [box.run(COUNT % (KILLS * 200), background=True) for _ in range(2)]
        versions = {VERSION}
        for turn in range(KILLS):
            daemon.replace(other(turn % 10))
            daemon.process.send_signal(signal.SIGUSR2)
            time.sleep(chance.uniform(0, 0.5))
            for pid in subprocess.run(["pgrep", "-x", "nacre", "-P", subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-x", "nacre-spawner"],
                                       capture_output=True, text=True).stdout.strip()], capture_output=True, text=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            assert patient(lambda: box.ask("POST", "/commands", {"command": "echo on"})).json()["stdout"] == "on\n"
            versions.add(patient(lambda: daemon.get("/v1/version")).json()["version"])
            time.sleep(5.5)  # a worker that dies five times in ten seconds is not started again
        assert len(versions) > 1
        for one in running:
            until = time.monotonic() + 60
            while patient(lambda: box.ask("GET", f"/commands/{one['id']}")).json()["status"] == "running" and time.monotonic() < until:
                time.sleep(0.1)
            assert box.command(one["id"])["stdout"] == counted(KILLS * 200)


def test_the_registry_and_tenants_hold(tmp_path):
    with Installed(tmp_path) as daemon:
        one, two = (daemon.key("--tenant", name, "--role", "execute") for name in ("one", "two"))
        box = Sandbox(daemon, key=one)
        before = {name: json.load(open(f"{daemon.state}/sandboxes/{name}")) for name in os.listdir(f"{daemon.state}/sandboxes")}
        daemon.replace(other(9))
        daemon.upgrade()
        assert before == {name: json.load(open(f"{daemon.state}/sandboxes/{name}")) for name in os.listdir(f"{daemon.state}/sandboxes")}
        assert box.ask("GET").status == 200 and daemon.get(box.path(), key=two).status == 404 and daemon.get(box.path()).status == 401


def test_sandboxes_of_two_holders(tmp_path):
    """Those that the spawner holds, and those of the second holder (tests/holder), which is the keeper's child."""
    open_way(tmp_path)
    with Installed(tmp_path, source=HOLDER.with_name("nacre"), programs=(*PROGRAMS, "nacre-plain"), env={"NACRE_PLAIN_CLAIMS": "all"}) as daemon:
        boxes = [Sandbox(daemon), Sandbox(daemon, tier="remote")]
        assert [json.load(open(f"{daemon.state}/sandboxes/{box.id}"))["holder"] for box in boxes] == [0, 1]
        running = [box.run(COUNT % 150, background=True) for box in boxes]
        daemon.replace(other(9))
        daemon.upgrade()
        assert daemon.version() == other(9)
        for box, one in zip(boxes, running):
            assert box.run("echo on")["stdout"] == "on\n" and box.wait(one["id"], 30)["stdout"] == counted(150)
            assert box.ask("DELETE").status == 204


def test_after_the_spawners_death_the_new_version_goes_on(tmp_path):
    with Installed(tmp_path) as daemon:
        daemon.replace(other(9))
        daemon.upgrade()
        spawner, = subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(spawner), signal.SIGKILL)
        until = time.monotonic() + 20
        while daemon.count("Listening") < 3 and time.monotonic() < until:
            time.sleep(0.05)
        assert patient(lambda: daemon.get("/v1/version")).json()["version"] in (VERSION, other(9))
        daemon.pid = [record["pid"] for record in daemon.log() if record["message"] == "Listening"][-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_an_ordinary_user_too(tmp_path):
    open_way(tmp_path)
    os.chown(tmp_path, 1000, 1000)
    with Installed(tmp_path, prefix=USER) as daemon:
        box = Sandbox(daemon)
        running = box.run(COUNT % 80, background=True)
        daemon.replace(other(9))
        daemon.upgrade()
        assert daemon.version() == other(9) and box.wait(running["id"], 20)["stdout"] == counted(80)
        assert json.load(open(f"{daemon.state}/sandboxes/{box.id}"))["id"] == box.id


@pytest.fixture
def neighbour(tmp_path_factory):
    """A build whose box wire is one version newer; NACRE_OTHER_BUILD names one that is there."""
    if "NACRE_OTHER_BUILD" in os.environ:
        return pathlib.Path(os.environ["NACRE_OTHER_BUILD"])
    top = tmp_path_factory.mktemp("neighbour")
    shutil.copytree(ROOT, top / "source", 
                    ignore=lambda path, names: [name for name in names if pathlib.Path(path) == ROOT and (name == ".git" or name.startswith("build"))])
    wire = top / "source/src/kernel/boxwire.h"
    newest = int(SPEAKS.split()[1])
    text = wire.read_text().replace(f"#define NC_BOXWIRE_VERSION {newest}U", f"#define NC_BOXWIRE_VERSION {newest + 1}U")
    wire.write_text(text)
    for command in (["meson", "setup", top / "build"], ["ninja", "-C", top / "build", "nacre"]):
        subprocess.run(command, cwd=top / "source", check=True, capture_output=True, timeout=900)
    return top / "build"


@pytest.mark.alone
def test_a_build_of_a_neighbouring_version(neighbour, tmp_path):
    """Its worker speaks a newer box wire below our spawner; and ours comes back."""
    with Installed(tmp_path) as daemon:
        spoken = subprocess.run([neighbour / "nacre", "serve", "--speaks"], capture_output=True, text=True).stdout
        assert spoken != SPEAKS
        box = Sandbox(daemon)
        running = box.run(COUNT % 600, background=True)
        daemon.replace(build=neighbour)
        daemon.upgrade()
        assert box.run("echo on")["stdout"] == "on\n" and daemon.execute("print(1)").json()["output"] == "1\n"
        daemon.die()
        made = Sandbox(daemon)
        assert made.run("echo made")["stdout"] == "made\n" and made.ask("POST", "/pause").status == 200 and made.ask("POST", "/resume").status == 200
        daemon.replace()
        daemon.upgrade()
        assert made.run("echo back")["stdout"] == "back\n" and box.wait(running["id"], 40)["stdout"] == counted(600)
