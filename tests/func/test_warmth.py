"""The build cache of Go: made once for each compiler, by that alone; read-only for whoever compiles, and never in the way."""

import json
import shutil
import stat
import time

import pytest

from frames import Engine
from packages import Impostor
from test_packages import fresh  # noqa: F401

pytestmark = pytest.mark.skipif(not shutil.which("go"), reason="needs golang-go")

# A compiler that puts into its programs what it has seen: the cache, and whether it could write there.
COMPILER = """
case "$1 $4" in
version*) echo "go version go9.9.9 linux/amd64" ;;
env*) echo "go9.9.9 X:new" ;;
*) for last; do :; done
   if [ "$last" = std ]; then %s; fi
   mkdir -p "$GOCACHE/sub" 2>/dev/null
   if touch "$GOCACHE/mine" "$GOCACHE/sub/mine" 2>/dev/null; then how=writable; else how=read-only; fi
   rm -rf "$GOCACHE/mark" 2>/dev/null
   while [ "$1" != -o ]; do shift; done
   printf '#!/bin/sh\\necho %%s %%s %%s\\n' "$how" "$(cat "$GOCACHE/mark" 2>&1 | tr -d "'")" "${GOFLAGS-unset}" >"$2"
   chmod +x "$2" ;;
esac"""
FILL = 'mkdir -p "$GOCACHE/sub"; echo "of $GOFLAGS$GO111MODULE" >"$GOCACHE/mark"; chmod 777 "$GOCACHE/sub"; exit'


def program(text):
    return f"package main // {text}"


def outcome(done):
    reply = json.loads(done.stdout)
    assert reply["status"] == "success", reply
    return reply["output"].split()[0], "of auto" in reply["output"]


@pytest.fixture
def go(fresh):  # noqa: F811
    return Impostor(fresh, "go", COMPILER % FILL)


def run(go, text):
    return go.run("run", "--json", "--lang", "go", "-c", program(text))


def test_it_is_made_once_and_read_only(go):
    done = go.run("run", "--lang", "go", "-c", program("one"))
    assert "filling the build cache of go, once ..." in done.stderr and done.stdout == "read-only of auto\n"
    (entry,) = go.caller.listed()
    assert (entry["language"], entry["asked"]) == ("go", []) and go.caller.stored() == [entry["key"]]
    done = go.run("run", "--lang", "go", "-c", program("two"))
    assert (done.stdout, done.stderr) == ("read-only of auto\n", "")
    layer = go.caller.layer(entry["key"])
    assert sorted(path.relative_to(layer).as_posix() for path in layer.rglob("*")) == ["cache", "cache/mark", "cache/sub"]
    assert all(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) == 0 for path in layer.rglob("*"))
    lock = json.loads(go.run("env", "show", entry["key"][:8]).stdout)
    assert (lock["interpreter"], lock["packages"], lock["source"]) == ("go9.9.9", [], None)


def test_it_can_be_made_ahead_and_removed(go):
    assert " built: build cache\n" in go.run("env", "build", "--lang", "go").stdout
    assert " reused: build cache\n" in go.run("env", "build", "--lang", "go").stdout
    assert " (build cache)\n" in go.run("env", "list").stdout
    assert run(go, "x").stderr == ""
    (key,) = go.caller.stored()
    assert go.run("env", "remove", key[:8]).returncode == 0 and go.caller.stored() == []
    assert "packages are installed for python and javascript" in go.run("env", "build", "--lang", "go", "x").stderr
    assert "packages are installed for python and javascript" in go.run("env", "build", "--lang", "rust").stderr


def test_another_compiler_has_another(go):
    run(go, "one")
    other = Impostor(go.caller, "go", COMPILER % FILL + "\n")
    assert outcome(run(other, "two")) == ("read-only", True) and len(go.caller.stored()) == 2


def test_many_at_once_make_one(go):
    with Engine(go.caller.place, "--config", str(go.caller.config), "--max-running", "4", program=go.caller.program, prefix=go.prefix,
                env=go.caller.variables()) as engine:
        engine.receive()
        asked = [engine.execute({"language": "go", "code": program(i)}) for i in range(4)]
        replies = engine.replies(4)
    assert all("read-only of auto" in replies[n]["reply"]["output"] for n in asked)
    assert len(go.caller.stored()) == 1


def test_what_cannot_be_filled_is_done_without(fresh):  # noqa: F811
    go = Impostor(fresh, "go", COMPILER % "exit 1")  # an empty one is kept: the next would be no better
    assert outcome(run(go, "one")) == ("read-only", False) and len(fresh.stored()) == 1
    go = Impostor(fresh, "go", COMPILER.replace('echo "go9.9.9 X:new"', "exit 1") % FILL)
    assert outcome(run(go, "two")) == ("writable", False) and len(fresh.stored()) == 1
    go = Impostor(fresh, "go", COMPILER % 'mkdir -p "$GOCACHE"; head -c 1200m /dev/zero >"$GOCACHE/mark"; exit')
    assert outcome(run(go, "three")) == ("writable", False) and len(fresh.stored()) == 1


def test_where_it_has_no_room_it_is_not_made(go):
    go.caller.configure(max_mb=100)
    done = run(go, "one")
    assert outcome(done) == ("writable", False) and done.stderr == "" and go.caller.stored() == []


def test_others_need_none(go):
    assert go.run("run", "--lang", "shell", "-c", "echo").returncode == 0
    assert go.run("run", "--lang", "c", "-c", "int main() { return 0; }").returncode == 0
    assert go.caller.stored() == []
    reply = json.loads(go.run("run", "--json", "--lang", "go", "--packages", "x", "-c", program("x")).stdout)
    assert reply["status"] == "blocked" and "not for go" in reply["error"] and go.caller.stored() == []


def test_a_program_that_is_known_needs_none(go):
    run(go, "one")
    (key,) = go.caller.stored()
    assert go.run("env", "remove", key).returncode == 0
    assert outcome(run(go, "one")) == ("read-only", True) and go.caller.stored() == []


def test_cancelled_while_it_is_made(fresh):  # noqa: F811
    go = Impostor(fresh, "go", COMPILER % "sleep 60")
    with Engine(fresh.place, "--config", str(fresh.config), program=fresh.program, prefix=go.prefix, env=fresh.variables()) as engine:
        engine.receive()
        asked = engine.execute({"language": "go", "code": program("x")})
        while len(fresh.stored()) < 2:  # a lock, and a directory to fill
            time.sleep(0.05)
        time.sleep(0.3)
        engine.ask(op="cancel", of=asked)
        assert engine.replies(2)[asked]["reply"]["status"] == "cancelled"
    assert engine.code == 0 and fresh.stored() == []


def test_the_real_one(fresh):  # noqa: F811
    """Of whatever version it is: a program of the library's, twice, with the cache that its own compiler made."""
    code = 'package main\nimport ("fmt"; "sort")\nfunc main() { x := []int{3, 1, %d}; sort.Ints(x); fmt.Println(x) }'
    first = fresh.run("run", "--lang", "go", "-c", code % 2)
    assert first.stdout == "[1 2 3]\n" and "filling the build cache of go" in first.stderr
    second = fresh.run("run", "--lang", "go", "-c", code % 5)
    assert (second.stdout, second.stderr) == ("[1 3 5]\n", "")
    (entry,) = fresh.listed()
    assert entry["language"] == "go" and entry["asked"] == []
