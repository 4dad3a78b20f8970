"""nacre serve: however much is kept, whoever looks through it does not hold up the event loop."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import NACRE
from packages import remove, wheel
from serving import Daemon
from test_serve_turns import INSTRUMENTED, quick

MANY = 30000

pytestmark = pytest.mark.skipif(INSTRUMENTED, reason="instrumented code is slower than what is measured")
needs_pip = pytest.mark.skipif(not pathlib.Path("/usr/lib/python3/dist-packages/pip").exists(), reason="needs python3-pip")


@pytest.fixture(scope="module")
def daemon():
    place = pathlib.Path(tempfile.mkdtemp(prefix="nacre-stores-", dir="/var/tmp"))
    place.chmod(0o755)
    (place / "wheels").mkdir(mode=0o755)
    for name in ("many", "again"):
        wheel(place / "wheels", name, files={f"{name}/d{i // 500}/f{i}.py": "x=1\n" for i in range(MANY)})
    (place / "config").mkdir(mode=0o755)
    (place / "config/nacre.yaml").write_text(f"packages:\n  python:\n    wheels: {place}/wheels\nenvironments:\n  max_mb: 200\n")
    with Daemon(place, "--no-warm", config=place / "config") as made:
        yield made
    remove(place)


def own(place):
    """What is in there is as the daemon's own."""
    status = os.stat(place)
    subprocess.run(["chown", "-R", f"{status.st_uid}:{status.st_gid}", place], check=True)


def test_replies_that_are_kept(daemon):
    assert daemon.execute("print(0)", cache=True).json()["status"] == "success"
    results = pathlib.Path(daemon.state, "cache/results")
    for i in range(MANY):
        (results / f"{i:064x}").write_bytes(b"")
    own(results)
    answer = quick(daemon, "a reply is kept", lambda: daemon.execute(f"print({os.urandom(4).hex()!r})", cache=True))
    assert answer.json()["status"] == "success"
    assert len(list(results.iterdir())) <= 16384  # of 1 GiB each takes 64 KiB at least


@needs_pip
def test_environments(daemon):
    """What comes from an index may have very many files: they are counted, and removed where they leave no room, beside the loop."""
    def build():
        for name in ("many", "again"):  # there is no room for both
            answer = daemon.execute(f"import {name}.d1.f500", packages=[name], timeout=300, limits={"memory_mb": 512}).json()
            assert answer["status"] == "success" and answer["environment"]["state"] == "built", answer

    quick(daemon, "environments of many files", build)
    store = pathlib.Path(daemon.state, "environments")
    lock = json.dumps({"tenant": "", "language": "python", "asked": ["a"], "packages": [{"name": "p" * 100, "version": "1"}] * 100, "size": 1})
    for i in range(3000):
        (store / f"{i:064x}").mkdir()
        (store / f"{i:064x}/lock.json").write_text(lock)
    own(store)
    listed = quick(daemon, "the list of them", lambda: daemon.get("/v1/environments")).json()["environments"]
    assert len(listed) == 1000
    for i in range(3000):
        shutil.rmtree(store / f"{i:064x}")


def test_the_history(daemon):
    """Pages of large lines are shorter than they may be, and together they are all of them."""
    labels = {f"k{i}": "v" * 250 for i in range(32)}
    asked = 0
    while asked < 150:
        refused = daemon.execute("import subprocess", policy="strict", labels=labels, id="many")
        assert refused.status in (200, 403), refused.body
        asked += 1
    found, path = [], "/v1/history?limit=1000"
    while path:
        page = quick(daemon, "a page of the history", lambda: daemon.get(path))
        assert page.status == 200 and len(page.body) < 600 * 1024
        page = page.json()
        found += [row["seq"] for row in page["executions"] if row["labels"]]
        path = page["next"] and f"/v1/history?limit=1000&before={page['next']}"
    assert len(found) == len(set(found)) >= 150
    one = quick(daemon, "many of one id", lambda: daemon.get("/v1/history/many"))
    assert one.json()["seq"] == max(found)


def fill(daemon, n):
    """As many sandboxes with labels of the largest size."""
    labels = {f"k{i}".ljust(60, "x"): "v" * 256 for i in range(32)}
    made, until = [], time.monotonic() + 120
    while len(made) < n:
        answer = daemon.post("/v1/sandboxes", {"labels": labels, "limits": {"memory_mb": 8, "disk_mb": 1, "max_processes": 4}})
        assert answer.status in (201, 503) and time.monotonic() < until, answer.body  # a busy machine has no room for a moment
        if answer.status == 201:
            made.append(answer.json()["id"])
    return made


def test_sandboxes(daemon):
    """Nobody lists or destroys a thousand in one turn, and `nacre ps` shows them all."""
    def destroy():
        made = fill(daemon, 1000)
        page = daemon.get("/v1/sandboxes?limit=1000")
        assert len(page.body) < 600 * 1024 and page.json()["next"]
        listed = subprocess.run([NACRE, "--server", f"http://127.0.0.1:{daemon.port}", "ps", "--json"], env=daemon.env, capture_output=True, text=True, timeout=60)
        assert [box["id"] for box in json.loads(listed.stdout)["sandboxes"]] == made
        assert daemon.ask("DELETE", "/v1/sandboxes").json()["destroyed"] == 1000
        assert daemon.get("/v1/sandboxes").json()["sandboxes"] == []

    try:
        quick(daemon, "a thousand sandboxes", destroy)
    finally:
        daemon.ask("DELETE", "/v1/sandboxes")
