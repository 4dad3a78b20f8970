"""Every store and cache of `nacre serve`, asked with the keys of two tenants: neither hears of the other."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import NACRE, ROOT
from packages import remove, wheel
from serving import Daemon

C = 'int main(void) { return 0; }\n'
needs_pip = pytest.mark.skipif(not pathlib.Path("/usr/lib/python3/dist-packages/pip").exists(), reason="needs python3-pip")


@pytest.fixture(scope="module")
def two(programs):
    """A daemon with two tenants, acme and rival, an administrator, and packages to install."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="nacre-tenants-", dir="/var/tmp"))
    place.chmod(0o755)
    wheels = place / "wheels"
    wheels.mkdir(mode=0o755)
    wheel(wheels, "pearl")
    wheel(wheels, "oyster")
    config = place / "config"
    config.mkdir(mode=0o755)
    (config / "nacre.yaml").write_text(f"packages:\n  python:\n    wheels: {wheels}\n")
    with Daemon(str(place), config=config, program=programs / "nacre") as made:
        made.keys = {name: made.key("--tenant", name, "--role", "execute") for name in ("acme", "rival")}
        made.keys["boss"] = made.key("--tenant", "boss", "--role", "admin")
        yield made
    remove(place)


def run(daemon, who, code="print(1)", **more):
    answer = daemon.execute(code, key=daemon.keys[who], **more)
    assert answer.status == 200, answer.body
    return answer.json()


def test_replies(two):
    code = "import os; print(os.urandom(8).hex())"
    first = run(two, "acme", code, cache=True)
    assert run(two, "acme", code, cache=True)["output"] == first["output"]
    theirs = run(two, "rival", code, cache=True)
    assert not theirs["cached"] and theirs["output"] != first["output"]
    assert run(two, "rival", code, cache=True)["output"] == theirs["output"]
    # nor does a name in the request make one into the other
    assert two.execute(code, key=two.keys["rival"], cache=True, tenant="acme").status == 403


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_programs(two):
    assert not run(two, "acme", C, language="c")["cached_program"]
    assert run(two, "acme", C, language="c")["cached_program"]
    assert not run(two, "rival", C, language="c")["cached_program"]
    assert run(two, "rival", C, language="c")["cached_program"]


@needs_pip
def test_environments(two):
    code = "import pearl; print(pearl.VERSION)"
    mine = run(two, "acme", code, packages=["pearl"])["environment"]
    assert mine["state"] == "built" and run(two, "acme", code, packages=["pearl"])["environment"]["state"] == "reused"
    theirs = run(two, "rival", code, packages=["pearl"])["environment"]
    assert theirs["state"] == "built" and theirs["key"] != mine["key"]
    # the operator's are everybody's
    done = subprocess.run([NACRE, *two.config, "env", "build", "--lang", "python", "oyster"], env=two.env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    keys = {who: run(two, who, "import oyster", packages=["oyster"])["environment"] for who in ("acme", "rival")}
    assert keys["acme"]["state"] == "reused" and keys["acme"] == keys["rival"]
    shared = keys["acme"]["key"]
    listed = {who: {entry["key"]: entry["tenant"] for entry in two.get("/v1/environments", key=two.keys[who]).json()["environments"]}
              for who in two.keys}
    assert listed["acme"] == {mine["key"]: "acme", shared: ""} and listed["rival"] == {theirs["key"]: "rival", shared: ""}
    assert set(listed["boss"]) == {mine["key"], theirs["key"], shared}


def test_idempotency(two):
    code = "import os; print(os.urandom(8).hex())"
    header = {"Idempotency-Key": "the-same"}
    mine = two.execute(code, key=two.keys["acme"], headers=header)
    assert two.execute(code, key=two.keys["acme"], headers=header).body == mine.body
    theirs = two.execute(code, key=two.keys["rival"], headers=header)
    assert theirs.status == 200 and "idempotency-replayed" not in theirs.headers and theirs.json()["output"] != mine.json()["output"]
    other = two.execute("print(3)", key=two.keys["rival"], headers={"Idempotency-Key": "acme-only"})
    assert other.status == 200  # nor a mismatch with a key of another's


def test_jobs_history_and_outputs(two):
    job = two.post("/v1/jobs", {"language": "python", "code": "print('secret of acme')"}, key=two.keys["acme"]).json()["id"]
    assert two.get(f"/v1/jobs/{job}/wait", key=two.keys["acme"]).json()["reply"]["output"] == "secret of acme\n"
    for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/wait", f"/v1/jobs/{job}/events", f"/v1/history/{job}", f"/v1/history/{job}/code",
                 f"/v1/history/{job}/stdout"):
        assert two.get(path, key=two.keys["acme"]).status == 200, path
        assert two.get(path, key=two.keys["boss"]).status == 200, path
        assert two.get(path, key=two.keys["rival"]).status == 404, path
    assert two.ask("DELETE", f"/v1/jobs/{job}", key=two.keys["rival"]).status == 404
    for path in ("/v1/jobs", "/v1/history", "/v1/history?tenant=acme"):
        assert job in two.get(path, key=two.keys["acme"]).body.decode(), path
        assert job not in two.get(path, key=two.keys["rival"]).body.decode(), path


def test_sandboxes_and_snapshots(two):
    key = two.keys["acme"]
    box = two.post("/v1/sandboxes", {}, key=key).json()["id"]
    command = two.post(f"/v1/sandboxes/{box}/commands", {"command": "echo hi | tee f", "background": True}, key=key).json()["id"]
    kept = two.post(f"/v1/sandboxes/{box}/snapshots", {}, key=key).json()["id"]
    for path in (f"/v1/sandboxes/{box}", f"/v1/sandboxes/{box}/commands", f"/v1/sandboxes/{box}/commands/{command}",
                 f"/v1/sandboxes/{box}/commands/{command}/events", f"/v1/sandboxes/{box}/files?path=/workspace/f",
                 f"/v1/sandboxes/{box}/archive?path=/workspace", f"/v1/snapshots/{kept}"):
        assert two.get(path, key=key).status == 200, path
        assert two.get(path, key=two.keys["rival"]).status == 404, path
    assert two.post("/v1/sandboxes", {"snapshot": kept}, key=two.keys["rival"]).status == 404
    assert two.ask("DELETE", f"/v1/snapshots/{kept}", key=two.keys["rival"]).status == 404
    for path, name in (("/v1/sandboxes", box), ("/v1/snapshots", kept), ("/v1/sandboxes/stats", box), ("/v1/sandboxes/health", box)):
        assert name in two.get(path, key=key).body.decode(), path
        assert name not in two.get(path, key=two.keys["rival"]).body.decode(), path
    # equal files of two tenants are two snapshots with two names
    other = two.post("/v1/sandboxes", {}, key=two.keys["rival"]).json()["id"]
    two.post(f"/v1/sandboxes/{other}/commands", {"command": "echo hi | tee f"}, key=two.keys["rival"])
    assert two.post(f"/v1/sandboxes/{other}/snapshots", {}, key=two.keys["rival"]).json()["id"] != kept
    for box, who in ((box, "acme"), (other, "rival")):
        assert two.ask("DELETE", f"/v1/sandboxes/{box}", key=two.keys[who]).status == 204


def test_the_table_is_whole():
    """Each store has a row in owner.c and one in the documents, with the same owner; keys are made nowhere else."""
    table = dict(re.findall(r'\{"([a-z ]+)", NC_OWNER_([A-Z]+)\}', (ROOT / "src/engine/owner.c").read_text()))
    words = {"TENANT": "its tenant", "EITHER": "its tenant, or the operator", "OPERATOR": "the operator"}
    shown = dict(re.findall(r"^\| ([a-z ]+) \| ([a-z ,]+) \|[^|]+\|$", (ROOT / "docs/api.md").read_text(), re.M))
    assert {name: words[owner] for name, owner in table.items()}.items() <= shown.items()
    rows = re.findall(r"^\tNC_STORE_([A-Z_]+),$", (ROOT / "src/engine/owner.h").read_text(), re.M)
    assert len(table) == len(rows) - 1  # NC_STORE_MAX
    used = "".join(path.read_text() for path in ROOT.glob("src/**/*.c") if path.name != "owner.c")
    assert [row for row in rows if row not in ("MAX", "IMAGES") and f"NC_STORE_{row}" not in used] == []
    makers = {str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.c") if "nc_digest_new(" in path.read_text()}
    assert makers == {"src/engine/keep.c", "src/engine/owner.c"}
