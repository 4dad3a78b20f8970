"""nacre env: environments from tiny wheels and tarballs, some of them hostile, as root and as an ordinary user."""

import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import tarfile
import tempfile
import time
import zipfile

import pytest

from packages import Caller, tarball, wheel

NO_PIP = not pathlib.Path("/usr/lib/python3/dist-packages/pip").exists()
needs_pip = pytest.mark.skipif(NO_PIP, reason="needs python3-pip")
needs_npm = pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")


@pytest.fixture(params=["root", "user"])
def caller(request, programs):
    directory = tempfile.mkdtemp(prefix="nacre-env-", dir="/var/tmp")
    os.chmod(directory, 0o755)
    yield Caller(directory, programs, request.param)
    shutil.rmtree(directory)


@pytest.fixture
def root_caller(programs):
    """Where the caller makes no difference."""
    directory = tempfile.mkdtemp(prefix="nacre-env-", dir="/var/tmp")
    os.chmod(directory, 0o755)
    yield Caller(directory, programs, "root")
    shutil.rmtree(directory)


def noise(size):
    """Bytes that do not pack."""
    return random.Random(1).randbytes(size)


@needs_pip
def test_wheels_with_what_they_need(caller):
    made = [wheel(caller.wheels, "pearl", "1.2", ["oyster>=1"]), wheel(caller.wheels, "oyster", "1.5"), wheel(caller.wheels, "oyster", "0.9")]
    answer = caller.build("pearl")
    assert answer["state"] == "built" and len(answer["environment"]) == 64
    assert {(item["name"], item["version"]) for item in answer["packages"]} == {("pearl", "1.2"), ("oyster", "1.5")}
    layer = caller.layer(answer["environment"])
    assert (layer / "site/pearl.py").read_text() == "VERSION = '1.2'\n"
    assert not list(layer.glob("**/__pycache__"))
    for path in (layer, *layer.rglob("*")):
        mode = path.stat().st_mode
        assert mode & (0o022 if stat.S_ISDIR(mode) else 0o222) == 0 and mode & 0o444 == 0o444, path
    lock = json.loads(caller.run("env", "show", answer["environment"][:8]).stdout)
    assert lock["language"] == "python" and lock["asked"] == ["pearl"] and lock["interpreter"].startswith("Python/3.")
    assert lock["source"] == str(caller.wheels) and lock["size"] > 0 and lock["built"].startswith("20")
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    assert {item["file"]: item["sha256"] for item in lock["packages"]}.items() <= digests.items()
    assert caller.build("pearl")["state"] == "reused"
    (entry,) = caller.listed()
    assert (entry["key"], entry["language"], entry["asked"]) == (answer["environment"], "python", ["pearl"]) and entry["bytes"] == lock["size"]
    assert caller.run("env", "remove", answer["environment"][:12]).returncode == 0
    assert caller.stored() == [] and caller.listed() == []


@needs_npm
def test_tarballs_with_what_they_need(caller):
    script = "touch /opt/nacre/layer0/ran /opt/nacre/layer0/node_modules/ran"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), script)
    made = [tarball(caller.tarballs, "pearl", "1.0.0", {"oyster": "^1.0.0"}, scripts=scripts), tarball(caller.tarballs, "oyster", "1.9.0"),
            tarball(caller.tarballs, "oyster", "1.10.0"), tarball(caller.tarballs, "oyster", "2.0.0"),
            tarball(caller.tarballs, "@deep/sea", "0.1.0", bin={"sea": "index.js"})]
    answer = caller.build("pearl", "@deep/sea@^0.1", language="javascript")
    assert {(item["name"], item["version"]) for item in answer["packages"]} == {("pearl", "1.0.0"), ("oyster", "1.10.0"), ("@deep/sea", "0.1.0")}
    layer = caller.layer(answer["environment"])
    assert (layer / "node_modules/@deep/sea/index.js").read_text() == "module.exports = '@deep/sea 0.1.0';\n"
    assert not list(layer.rglob("ran")) and not [path for path in layer.rglob("*") if path.is_symlink()]
    lock = json.loads(caller.run("env", "show", answer["environment"]).stdout)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    assert {item["file"]: item["sha256"] for item in lock["packages"]}.items() <= digests.items()
    assert caller.build("oyster", language="javascript")["packages"][0]["version"] == "2.0.0"


@needs_pip
def test_the_same_set_is_the_same_environment(root_caller):
    for name in ("pearl", "oyster", "mother-of-pearl"):
        wheel(root_caller.wheels, name)
    first = root_caller.build("pearl", "oyster", "mother-of-pearl>=1")
    for names in (("oyster", "mother-of-pearl>=1", "pearl"), ("pearl", "pearl", "Oyster", "Mother_Of.Pearl>=1")):
        again = root_caller.build(*names)
        assert (again["state"], again["environment"]) == ("reused", first["environment"])
    for names in (("pearl", "oyster"), ("pearl", "oyster", "mother-of-pearl"), ("pearl==1.0", "oyster", "mother-of-pearl>=1")):
        assert root_caller.build(*names)["environment"] != first["environment"]


@needs_pip
def test_what_the_image_has_is_not_installed(caller):
    answer = caller.build("pytest", "pip>=1")
    assert answer["state"] == "in the image" and answer["environment"] is None and caller.stored() == []
    assert [item["name"] for item in answer["packages"]] == ["pytest", "pip"]
    assert "has no 'pytest>=9999'" in caller.build("pytest>=9999", good=False)


@pytest.mark.parametrize("language, name", [pytest.param("python", "nothing", marks=needs_pip), pytest.param("javascript", "nothing", marks=needs_npm),
                                            pytest.param("python", "pearl==2", marks=needs_pip), pytest.param("javascript", "pearl@2", marks=needs_npm),
                                            pytest.param("python", "needy", marks=needs_pip), pytest.param("javascript", "needy", marks=needs_npm)])
def test_what_the_source_lacks_is_said(root_caller, language, name):
    wheel(root_caller.wheels, "pearl")
    wheel(root_caller.wheels, "needy", requires=["nothing>=3"])
    tarball(root_caller.tarballs, "pearl")
    tarball(root_caller.tarballs, "needy", dependencies={"nothing": "3"})
    error = root_caller.build(name, language=language, good=False)
    source = root_caller.wheels if language == "python" else root_caller.tarballs
    missing = name if name != "needy" else "nothing"
    assert f"'{source}' has no '{missing}" in error and "installed from there alone" in error, error
    assert root_caller.stored() == []


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_without_a_source_the_key_to_set_is_named(root_caller, language):
    root_caller.configure("")
    error = root_caller.build("pearl", language=language, good=False)
    key = "packages.python.wheels" if language == "python" else "packages.javascript.tarballs"
    assert key in error and "to an index" in error, error


def test_a_source_that_is_not_there_is_named(root_caller):
    shutil.rmtree(root_caller.wheels)
    error = root_caller.build("pearl", good=False)
    assert f"packages.python.wheels: '{root_caller.wheels}': No such file or directory" in error, error


def linked(name, target):
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return entry, target


def special(name, mode):
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFREG | mode) << 16
    return entry, "#!/bin/sh\n"


HOSTILE = {
    "way_out": [("../../../../../../opt/nacre/layer0/escaped", "x")],
    "way_out_of_the_layer": [("../../escaped", "x")],
    "absolute": [("/opt/nacre/layer0/escaped", "x")],
    "absolute_elsewhere": [("/tmp/escaped", "x")],
    "data_scheme": [("evil-1.0.data/data/../../../../escaped", "x")],
    "scripts_scheme": [("evil-1.0.data/scripts/../../escaped", "x")],
    "link": [linked("evil_link", "/etc/passwd")],
    "link_to_a_directory": [linked("evil_dir", "/opt/nacre/layer0"), ("evil_dir/escaped", "x")],
    "set_user_id": [special("evil_program", 0o6777)],
    "other_top": [("evil-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: evil\nVersion: 2.0\n")],
    "path_file": [("evil.pth", "import os; open('/opt/nacre/layer0/escaped', 'w')\n")],
    "terminal": [("evil\x1b[2J.py", "x")],
}


@needs_pip
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_wheels(caller, name):
    """They are refused, or what is in them stays in its place: nothing leaves the site, nothing is run, linked or set-user-id."""
    wheel(caller.wheels, "evil", entries=HOSTILE[name])
    done = caller.run("env", "build", "--verbose", "evil")
    assert "\x1b" not in done.stdout + done.stderr
    keys = caller.stored()
    assert done.returncode == 125 and keys == [] or done.returncode == 0 and len(keys) == 1, done
    for path in caller.state.rglob("*"):
        assert path.name != "escaped" and not path.is_symlink() and not path.lstat().st_mode & 0o6000, path
    for key in keys:
        assert [path.name for path in caller.layer(key).iterdir()] == ["site"]
    assert not os.path.exists("/tmp/escaped")


def member(name, kind=tarfile.REGTYPE, link="", mode=0o644):
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, link, mode
    return made


HOSTILE_TARBALLS = {
    "way_out": [(member("package/../../../../../../opt/nacre/layer0/escaped"), b"x")],
    "absolute": [(member("/opt/nacre/layer0/escaped"), b"x")],
    "link": [(member("package/evil_link", tarfile.SYMTYPE, "/etc/passwd"), b"")],
    "link_to_a_directory": [(member("package/evil_dir", tarfile.SYMTYPE, "/opt/nacre/layer0"), b""), (member("package/evil_dir/escaped"), b"x")],
    "hard_link": [(member("package/evil_link", tarfile.LNKTYPE, "/etc/passwd"), b"")],
    "device": [(member("package/null", tarfile.CHRTYPE), b"")],
    "set_user_id": [(member("package/program", mode=0o6777), b"#!/bin/sh\n")],
    "configuration": [(member("package/.npmrc"), b"ignore-scripts=false\n")],
}


@needs_npm
@pytest.mark.parametrize("name", HOSTILE_TARBALLS)
def test_hostile_tarballs(caller, name):
    tarball(caller.tarballs, "evil", members=HOSTILE_TARBALLS[name], scripts={"install": "touch /opt/nacre/layer0/escaped"})
    done = caller.run("env", "build", "--lang", "javascript", "evil")
    keys = caller.stored()
    assert done.returncode == 125 and keys == [] or done.returncode == 0 and len(keys) == 1, done
    for path in caller.state.rglob("*"):
        assert not path.is_symlink() and not path.lstat().st_mode & 0o6000, path
        assert stat.S_ISREG(path.lstat().st_mode) or stat.S_ISDIR(path.lstat().st_mode), path
    for key in keys:
        assert sorted(path.name for path in caller.layer(key).iterdir()) == ["node_modules"]


@needs_npm
@pytest.mark.parametrize("dependency", ["file:../../../etc", "git+ssh://git@example.invalid/x.git", "http://127.0.0.1:1/x.tgz", "npm:oyster@1"])
def test_dependencies_that_are_none_of_the_registry(root_caller, dependency):
    """No network, and nothing of the box itself: an alias alone is a package of the source."""
    tarball(root_caller.tarballs, "oyster")
    tarball(root_caller.tarballs, "evil", dependencies={"x": dependency})
    done = root_caller.run("env", "build", "--lang", "javascript", "evil")
    assert done.returncode == (0 if dependency.startswith("npm:") else 125), done
    assert len(root_caller.stored()) == (1 if dependency.startswith("npm:") else 0)


@needs_npm
def test_tarballs_that_are_none_are_passed_over(root_caller):
    (root_caller.tarballs / "broken-1.0.0.tgz").write_bytes(b"\x1f\x8b not a tarball")
    (root_caller.tarballs / "empty-1.0.0.tgz").write_bytes(b"")
    tarball(root_caller.tarballs, "__proto__")
    tarball(root_caller.tarballs, "pearl")
    assert root_caller.build("pearl", language="javascript")["packages"][0]["name"] == "pearl"


@needs_pip
@pytest.mark.parametrize("size", [3 << 20, 200 << 20], ids=["more_than_kept", "more_than_the_disk"])
def test_too_large_is_said_and_leaves_nothing(caller, size):
    caller.configure(max_mb=1)
    content = noise(size) if size < 10 << 20 else b"\0" * size
    wheel(caller.wheels, "huge", files={"huge.bin": content})
    error = caller.build("huge", good=False)
    assert "take more than 1 MB" in error, error
    assert caller.stored() == []


@needs_pip
def test_what_was_not_used_for_longest_goes_first(caller):
    caller.configure(max_mb=1)
    for name in ("first", "second", "third", "fourth"):
        wheel(caller.wheels, name, files={f"{name}.bin": noise(300 << 10)})
    keys = {name: caller.build(name)["environment"] for name in ("first", "second")}
    caller.build("first")  # it is used again, so that the second is the older one
    keys["third"] = caller.build("third")["environment"]
    directory = os.open(caller.state / "environments" / keys["first"], os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_SH)  # in use, and older than the third
    keys["fourth"] = caller.build("fourth")["environment"]
    left = [entry["key"] for entry in caller.listed()]
    assert keys["second"] not in left and keys["first"] in left and keys["fourth"] in left, (keys, left)
    assert sum(entry["bytes"] for entry in caller.listed()) <= 1 << 20
    refused = caller.run("env", "remove", keys["first"])
    assert refused.returncode == 125 and "is in use" in refused.stderr
    os.close(directory)
    assert caller.run("env", "remove", keys["first"]).returncode == 0


@needs_pip
def test_no_room_beside_what_is_in_use(root_caller):
    root_caller.configure(max_mb=1)
    for name in ("first", "second"):
        wheel(root_caller.wheels, name, files={f"{name}.bin": noise(700 << 10)})
    directory = os.open(root_caller.state / "environments" / root_caller.build("first")["environment"], os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_SH)
    assert "leave no room" in root_caller.build("second", good=False)
    os.close(directory)
    assert root_caller.build("second")["state"] == "built"
    assert len(root_caller.stored()) == 1


@needs_pip
def test_prune_removes_what_is_not_used(root_caller):
    for name in ("old", "new"):
        wheel(root_caller.wheels, name)
    old, new = root_caller.build("old")["environment"], root_caller.build("new")["environment"]
    os.utime(root_caller.state / "environments" / old / "used", (1, 1))
    assert root_caller.run("env", "prune").returncode == 0 and len(root_caller.stored()) == 2
    assert root_caller.run("env", "prune", "--unused", "1h").returncode == 0
    assert root_caller.stored() == [new]
    assert root_caller.run("env", "prune", "--unused", "soon").returncode == 125


@needs_pip
def test_two_builds_at_once(caller):
    wheel(caller.wheels, "pearl")
    builds = [caller.start("env", "build", "--json", "pearl") for _ in range(4)]
    answers = []
    for build in builds:
        output, error = build.communicate(timeout=120)
        assert build.returncode == 0, error
        answers.append(json.loads(output))
    assert sorted(answer["state"] for answer in answers) == ["built", "reused", "reused", "reused"]
    assert caller.stored() == [answers[0]["environment"]]


def wait_for_stage(caller):
    deadline = time.monotonic() + 20
    while not any(name.startswith(".stage-") for name in caller.stored()):
        assert time.monotonic() < deadline
        time.sleep(0.005)


@needs_pip
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_ended_leaves_nothing(caller, number):
    wheel(caller.wheels, "pearl")
    build = caller.start("env", "build", "pearl")
    wait_for_stage(caller)
    if number == signal.SIGINT:
        os.killpg(build.pid, number)  # as a terminal does; the group is this test's own
    else:
        build.send_signal(number)
    _, error = build.communicate(timeout=30)
    assert build.returncode != 0
    if number == signal.SIGINT:
        assert "cancelled" in error and caller.stored() == [], error
    time.sleep(0.1)
    assert caller.listed() == [] and caller.stored() == []
    assert caller.build("pearl")["state"] == "built"


@needs_pip
def test_what_a_living_build_has_is_not_swept(root_caller):
    wheel(root_caller.wheels, "pearl")
    build = root_caller.start("env", "build", "pearl")
    wait_for_stage(root_caller)
    assert root_caller.run("env", "list").returncode == 0
    _, error = build.communicate(timeout=60)
    assert build.returncode == 0 and len(root_caller.stored()) == 1, error


@needs_pip
def test_an_environment_that_is_broken_is_made_again(root_caller):
    wheel(root_caller.wheels, "pearl")
    key = root_caller.build("pearl")["environment"]
    (root_caller.state / "environments" / key / "lock.json").write_text("{")
    done = root_caller.run("env", "list")
    assert done.returncode == 0 and "broken" in done.stdout, done
    assert root_caller.build("pearl")["state"] == "built" and root_caller.build("pearl")["state"] == "reused"
    assert root_caller.stored() == [key]


@pytest.mark.parametrize("words, message", [
    (["build"], "Name packages"),
    (["build", "../pearl"], "not a package of python"),
    (["build", "-r", "x"], "'-r'"),
    (["build", "--", "--index-url=http://x"], "not a package"),
    (["build", "pearl@1"], "not a package of python"),
    (["build", "pearl @ http://x"], "not a package of python"),
    (["build", "./pearl.whl"], "not a package"),
    (["build", "--lang", "javascript", "pearl==1"], "not a package of javascript"),
    (["build", "--lang", "javascript", "git+ssh://x"], "not a package of javascript"),
    (["build", "--lang", "javascript", "pearl@npm:x"], "not a package of javascript"),
    (["build", "--lang", "rust", "pearl"], "python and javascript"),
    (["build", "--lang", "latin", "pearl"], "python and javascript"),
    (["show"], "Name an environment"),
    (["show", "abc"], "at least 4 letters"),
    (["show", "abcd"], "no environment begins with it"),
    (["remove"], "Name environments"),
    (["remove", "../images"], "no environment begins with it"),
])
def test_wrong_words(root_caller, words, message):
    done = root_caller.run("env", *words)
    assert done.returncode == 125 and message in done.stderr, done


def test_no_environments_are_no_error(caller):
    for words in (["list"], ["list", "--json"], ["prune"]):
        assert caller.run("env", *words).returncode == 0
    assert caller.listed() == []


@needs_pip
def test_progress_and_the_installer_are_heard_when_they_should(root_caller):
    wheel(root_caller.wheels, "pearl")
    quiet = root_caller.run("env", "build", "pearl")
    assert quiet.stderr == "nacre env: installing 1 package for python ...\n" and "built: pearl 1.0" in quiet.stdout
    assert root_caller.run("env", "build", "pearl").stderr == ""
    assert root_caller.run("env", "remove", root_caller.stored()[0]).returncode == 0
    loud = root_caller.run("env", "build", "--verbose", "pearl")
    assert "Successfully installed pearl-1.0" in loud.stderr


@needs_pip
def test_the_store_of_root_is_the_workers_alone(root_caller):
    wheel(root_caller.wheels, "pearl")
    key = root_caller.build("pearl")["environment"]
    store = root_caller.state / "environments"
    assert (store.stat().st_uid, store.stat().st_mode & 0o777) == (0x70000000 - 1, 0o700)
    assert all(path.lstat().st_uid == 0x70000000 - 1 for path in (store / key).rglob("*"))
