"""nacre run with packages: what the program sees of its environment, and what it cannot do to it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from packages import Caller, remove, tarball, wheel

needs_pip = pytest.mark.skipif(not pathlib.Path("/usr/lib/python3/dist-packages/pip").exists(), reason="needs python3-pip")
needs_npm = pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")


def make_caller(programs, who):
    directory = tempfile.mkdtemp(prefix="nacre-env-", dir="/var/tmp")
    os.chmod(directory, 0o755)
    return Caller(directory, programs, who)


@pytest.fixture(scope="module", params=["root", "user"])
def caller(request, programs):
    """Its environments stay for the whole module."""
    made = make_caller(programs, request.param)
    wheel(made.wheels, "pearl", "1.2", ["oyster>=1"], files={
        "pearl/__init__.py": "import pathlib, oyster\nDATA = pathlib.Path(__file__).with_name('data.txt').read_text()\n",
        "pearl/data.txt": "nacre\n"})
    wheel(made.wheels, "oyster", "1.5")
    wheel(made.wheels, "sea-north", files={"sea/north.py": "PLACE = 'north'\n"})
    wheel(made.wheels, "sea-south", files={"sea/south.py": "PLACE = 'south'\n"})
    wheel(made.wheels, "evil", files={"evil.py": "x = 1\n", "evil.pth": "import sys; print('RAN', file=sys.stderr)\n",
                                      "sitecustomize.pth": "import evil\n"})
    tarball(made.tarballs, "pearl", "1.0.0", {"oyster": "^1.0.0"}, files={"index.js": "module.exports = 'pearl in ' + require('oyster');\n"},
            scripts={"postinstall": "exit 1"})
    tarball(made.tarballs, "oyster", "1.10.0")
    tarball(made.tarballs, "@deep/sea", "0.1.0")
    tarball(made.tarballs, "modern", "1.0.0", files={"index.mjs": "export default 'modern';\n"}, exports={"import": "./index.mjs"})
    yield made
    remove(made.place)


@pytest.fixture
def fresh(programs):
    made = make_caller(programs, "root")
    wheel(made.wheels, "pearl")
    yield made
    remove(made.place)


def ask(caller, code, *packages, language="python", **more):
    path = caller.place / "request.json"
    path.write_text(json.dumps({"language": language, "code": code, "packages": list(packages), **more}))
    path.chmod(0o644)
    done = caller.run("run", "--json", "--request", path)
    assert done.stdout, done
    return json.loads(done.stdout)


@needs_pip
def test_python_finds_its_packages(caller):
    code = "import pearl, oyster, sea.north, sea.south\nprint(pearl.DATA.strip(), oyster.VERSION, sea.north.PLACE, sea.south.PLACE)"
    names = ("pearl", "sea-north", "sea-south")
    first = ask(caller, code, *names)
    assert (first["status"], first["output"]) == ("success", "nacre 1.5 north south\n"), first
    assert first["environment"]["state"] == "built" and first["timings"]["prepared"] > 0.1
    assert {(item["name"], item["version"]) for item in first["environment"]["packages"]} == {
        ("pearl", "1.2"), ("oyster", "1.5"), ("sea-north", "1.0"), ("sea-south", "1.0")}
    again = ask(caller, code, *reversed(names))
    assert (again["environment"]["state"], again["environment"]["key"]) == ("reused", first["environment"]["key"])
    assert again["output"] == first["output"]
    assert caller.build(*names)["state"] == "reused"


@needs_npm
@pytest.mark.parametrize("code", ["console.log(require('pearl'), require('@deep/sea'))",
                                  "import pearl from 'pearl';\nimport sea from '@deep/sea';\nconsole.log(pearl, sea)",
                                  "Promise.all([import('pearl'), import('@deep/sea')]).then(all => console.log(...all.map(one => one.default)))"])
def test_node_finds_its_packages(caller, code):
    reply = ask(caller, code, "@deep/sea", "pearl@^1.0.0", language="javascript")
    assert (reply["status"], reply["output"]) == ("success", "pearl in oyster 1.10.0 @deep/sea 0.1.0\n"), reply
    assert {item["name"] for item in reply["environment"]["packages"]} == {"pearl", "oyster", "@deep/sea"}


@needs_npm
def test_node_finds_packages_that_are_modules_alone(caller):
    reply = ask(caller, "import text from 'modern';\nconsole.log(text)", "modern", language="javascript")
    assert (reply["status"], reply["output"]) == ("success", "modern\n"), reply


def test_the_command_line_says_what_it_does(fresh):
    first = fresh.run("run", "--packages", "pearl", "-c", "import pearl; print(pearl.VERSION)")
    assert (first.stdout, first.stderr) == ("1.0\n", "nacre run: installing 1 package for python ...\n")
    again = fresh.run("run", "--packages", "pearl", "-c", "import pearl; print(pearl.VERSION)")
    assert (again.stdout, again.stderr, again.returncode) == ("1.0\n", "", 0)


@needs_pip
def test_what_the_image_has_is_used_as_it_is(fresh):
    reply = ask(fresh, "import pytest; print(pytest.__file__)", "pytest", "pip>=20")
    assert reply["status"] == "success" and reply["output"].startswith("/usr/"), reply
    assert (reply["environment"]["key"], reply["environment"]["state"]) == (None, "in the image")
    assert [item["name"] for item in reply["environment"]["packages"]] == ["pytest", "pip"] and fresh.stored() == []


def test_without_packages_there_is_nothing(fresh):
    reply = ask(fresh, "import os; print(os.path.exists('/opt'), os.path.lexists('/node_modules'), os.environ.get('PYTHONPATH'))")
    assert (reply["output"], reply["environment"]) == ("False False None\n", None), reply
    assert not fresh.state.joinpath("environments").exists()


@needs_pip
def test_path_files_are_not_run(caller):
    reply = ask(caller, "import evil; print(evil.x)", "evil")
    assert (reply["output"], reply["stderr"]) == ("1\n", ""), reply


ATTEMPTS = {
    "write": "open('/opt/nacre/layer0/site/oyster.py', 'a')",
    "make": "open('/opt/nacre/layer0/new', 'w')",
    "remove": "os.unlink('/opt/nacre/layer0/site/oyster.py')",
    "mode": "os.chmod('/opt/nacre/layer0/site/oyster.py', 0o777)",
    "rename": "os.rename('/opt/nacre/layer0/site', '/opt/nacre/layer0/other')",
    "cache": "os.mkdir('/opt/nacre/layer0/site/__pycache__')",
    "lock_file": "open('/opt/nacre/layer0/../lock.json')",
    "store": "os.listdir('/opt/nacre/layer0/../..')[:0] or os.stat('/opt/nacre/lock.json')",
    "replace": "os.rename('/node_modules', '/other')",
    "second_layer": "os.listdir('/opt/nacre/layer1')",
}


@needs_pip
@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_program_cannot_change_its_environment(caller, name):
    reply = ask(caller, f"import os, oyster\ntry:\n    {ATTEMPTS[name]}\n    print('ESCAPED')\nexcept OSError:\n    print('held')", "oyster")
    assert reply["output"] == "held\n", reply


@needs_pip
def test_what_is_lacking_is_an_error_of_the_request(caller):
    reply = ask(caller, "print(1)", "nothing")
    assert reply["status"] == "error" and reply["output"] == "" and reply["exit_code"] is None and reply["environment"] is None
    assert f"'{caller.wheels}' has no 'nothing'" in reply["error"], reply
    done = caller.run("run", "--packages", "nothing", "-c", "print(1)")
    assert done.returncode == 127 and "has no 'nothing'" in done.stderr


def test_what_cannot_be_is_refused(fresh):
    for language, code in (("shell", "echo 1"), ("c", "int main(void) { return 0; }"), ("rust", "fn main() {}")):
        reply = ask(fresh, code, "pearl", language=language)
        assert reply["status"] == "blocked" and f"not for {language}" in reply["error"], reply
    for language, name in (("python", "pearl@1"), ("javascript", "pearl==1")):
        reply = ask(fresh, "1", name, language=language)
        assert reply["status"] == "error" and f"'{name}' is not a package of {language}" in reply["error"], reply
    fresh.configure("")
    reply = ask(fresh, "print(1)", "pearl")
    assert reply["status"] == "blocked" and "packages.python.wheels" in reply["error"], reply
    assert fresh.stored() == []


@needs_pip
def test_workflows(caller):
    def workflow(*steps):
        path = caller.place / "request.json"
        path.write_text(json.dumps({"packages": ["oyster"], "steps": [{"name": f"s{i}", "language": language, "code": code}
                                                                      for i, (language, code) in enumerate(steps)]}))
        return json.loads(caller.run("run", "--json", "--request", path).stdout)

    reply = workflow(("python", "import oyster; open('x', 'w').write(oyster.VERSION)"), ("shell", "cat x; echo $PYTHONPATH"),
                     ("python", "import oyster; print(oyster.VERSION)"))
    assert [step["output"] for step in reply["steps"]] == ["", "1.5\n", "1.5\n"], reply
    reply = workflow(("python", "1"), ("javascript", "1"))
    assert reply["status"] == "blocked" and "at once" in reply["error"], reply


@needs_pip
def test_packages_need_a_container(caller):
    reply = ask(caller, "import oyster; print(oyster.VERSION)", "oyster", tier="process")
    assert (reply["output"], reply["tier"]) == ("1.5\n", "container") and "packages" in reply["tier_reason"], reply


@needs_pip
def test_the_request_s_own_environment_wins(caller):
    reply = ask(caller, "import oyster; print(oyster.VERSION)", "oyster", env={"PYTHONPATH": "/workspace"},
                files={"oyster.py": "VERSION = 'mine'\n"})
    assert reply["output"] == "mine\n", reply


@needs_pip
def test_files_are_captured_and_replies_kept(caller):
    for cached in (False, True):
        reply = ask(caller, "import oyster; open('out', 'w').write(oyster.VERSION)", "oyster", capture=["out"], cache=True)
        assert reply["files"]["out"]["text"] == "1.5" and reply["cached"] == cached, reply


@needs_pip
def test_runs_that_need_the_same_at_once(fresh):
    runs = [fresh.start("run", "--json", "--packages", "pearl", "-c", "import pearl; print(pearl.VERSION)") for _ in range(3)]
    replies = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert [reply["output"] for reply in replies] == ["1.0\n"] * 3
    assert sorted(reply["environment"]["state"] for reply in replies) == ["built", "reused", "reused"]
    assert len(fresh.stored()) == 1


@needs_pip
def test_what_a_program_uses_is_not_removed(fresh):
    key = fresh.build("pearl")["environment"]
    run = fresh.start("run", "--packages", "pearl", "-c", "import time; print('up', flush=True); time.sleep(20)")
    assert run.stdout.readline() == "up\n"
    refused = fresh.run("env", "remove", key)
    assert refused.returncode == 125 and "is in use" in refused.stderr
    assert fresh.run("env", "prune", "--unused", "0s").returncode == 0 and fresh.stored() == [key]
    run.kill()
    run.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while fresh.run("env", "remove", key).returncode != 0:
        assert time.monotonic() < deadline
    assert fresh.stored() == []


@needs_pip
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_ended_while_it_installs_leaves_nothing(fresh, number):
    run = fresh.start("run", "--packages", "pearl", "-c", "import pearl; print(pearl.VERSION)")
    deadline = time.monotonic() + 20
    while not any(name.startswith(".stage-") for name in fresh.stored()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    run.send_signal(number)
    run.communicate(timeout=30)
    time.sleep(0.1)
    reply = ask(fresh, "import pearl; print(pearl.VERSION)", "pearl")
    assert (reply["output"], reply["environment"]["state"]) == ("1.0\n", "built")
    assert fresh.stored() == [reply["environment"]["key"]]


@needs_npm
@pytest.mark.skipif(os.environ.get("NACRE_TESTS_NO_NETWORK") == "1", reason="needs the npm registry")
def test_tarballs_of_the_real_registry(fresh):
    """What npm pack fetches is what an environment takes."""
    done = subprocess.run(["npm", "pack", "--silent", "is-odd@3.0.1", "is-number@6.0.0"], cwd=fresh.tarballs, capture_output=True, text=True,
                          env={**os.environ, "npm_config_cache": str(fresh.place / "npm")}, timeout=60)
    if done.returncode != 0:
        pytest.skip("no npm registry can be reached here")
    for path in fresh.tarballs.iterdir():
        path.chmod(0o644)
    reply = ask(fresh, "console.log(require('is-odd')(3))", "is-odd@^3", language="javascript")
    assert reply["output"] == "true\n", reply
    assert {(item["name"], item["version"]) for item in reply["environment"]["packages"]} == {("is-odd", "3.0.1"), ("is-number", "6.0.0")}
