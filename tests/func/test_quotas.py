"""Quotas: what is refused holds nothing, what can never fit is told so, and each answer says which quota and when to come again."""

import concurrent.futures

import pytest

from serving import Daemon
from test_sandboxes import Sandbox

SERVE = """
tenants:
  small: {memory_mb: 600}
  tight: {memory_mb: 600}
  thin: {disk_mb: 150}
  one: {executions: 1}
  lazy: {cpu_seconds_per_hour: 1}
  full: {storage_mb: 3}
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    home = tmp_path_factory.mktemp("quotas")
    (home / "config").mkdir()
    (home / "config" / "serve.yaml").write_text(SERVE)
    with Daemon(home, config=home / "config") as made:
        made.keys = {name: made.key("--tenant", name) for name in ("small", "tight", "thin", "one", "lazy", "full", "many")}
        yield made


def kinds(memory_mb=64, disk_mb=16):
    """The three ways to ask for memory and disk."""
    limits = {"memory_mb": memory_mb, "disk_mb": disk_mb}
    program = {"language": "shell", "code": "sleep 0.05", "limits": limits}
    return {"/v1/execute": program, "/v1/jobs": program, "/v1/sandboxes": {"limits": limits}}


def test_what_is_refused_holds_nothing(daemon):
    """A tenant that asks for too much beside what fits: what fits is done, each time."""
    key = daemon.keys["small"]
    holder = daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 60", "limits": {"memory_mb": 300, "disk_mb": 1}}, key=key)
    assert holder.status == 202, holder.body
    large, fits = ({"language": "shell", "code": "true", "limits": {"memory_mb": size, "disk_mb": 1}} for size in (400, 64))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        refused = [pool.submit(daemon.post, "/v1/execute", large, key=key) for _ in range(200)]
        fitting = [daemon.post("/v1/execute", fits, key=key) for _ in range(40)]
    job = holder.json()["id"]
    daemon.ask("DELETE", f"/v1/jobs/{job}", key=key)
    assert [answer.status for answer in fitting] == [200] * 40
    assert {(answer.result().status, answer.result().json()["field"]) for answer in refused} == {(429, "memory_mb")}
    history = daemon.get("/v1/history?limit=1000", key=key).json()["executions"]
    assert len(history) <= 41 and all(entry["status"] != "cancelled" or entry["id"] == job for entry in history), "what was refused did not begin"


@pytest.mark.parametrize("path", kinds())
@pytest.mark.parametrize("tenant, field, limits", [("small", "memory_mb", {"memory_mb": 601}), ("thin", "disk_mb", {"disk_mb": 151})])
def test_what_can_never_fit(daemon, tenant, field, limits, path):
    answer = daemon.post(path, kinds(**limits)[path], key=daemon.keys[tenant])
    told = answer.json()
    assert (answer.status, told["code"], told["field"]) == (400, "beyond_quota", field), told
    assert "retry-after" not in answer.headers and (" 600 MB" if tenant == "small" else " 150 MB") in told["detail"], told
    answer = daemon.post(path, kinds(memory_mb=1 << 20)[path], key=daemon.keys["many"])
    assert (answer.status, answer.json()["code"], answer.json()["field"]) == (400, "beyond_host", "memory_mb"), answer.body
    assert "retry-after" not in answer.headers


def test_the_answer_names_the_quota(daemon):
    """Sandboxes as executions: 429 with the quota's name and a time."""
    for tenant, field, memory, disk in (("one", "executions", 64, 16), ("tight", "memory_mb", 500, 16), ("thin", "disk_mb", 64, 100)):
        key = daemon.keys[tenant]
        box = Sandbox(daemon, key=key, limits={"memory_mb": memory, "disk_mb": disk})
        for path, body in kinds(memory, disk).items():
            answer = daemon.post(path, body, key=key)
            assert (answer.status, answer.json()["code"], answer.json()["field"]) == (429, "quota", field), (path, answer.body)
            assert answer.headers["retry-after"] == "1", (path, answer.headers)
        box.ask("DELETE")


def test_cpu_seconds_of_commands(daemon):
    """What commands burn is the tenant's at once, not when their sandbox goes."""
    key = daemon.keys["lazy"]
    box = Sandbox(daemon, key=key)
    burn = "python3 -c 'import time\nwhile time.process_time() < 1.3: pass'"
    assert box.run(burn)["status"] == "success"
    for path, body in {**kinds(), box.path("/commands"): {"command": "true"}}.items():
        answer = daemon.post(path, body, key=key)
        assert (answer.status, answer.json()["code"], answer.json()["field"]) == (429, "quota", "cpu_seconds_per_hour"), (path, answer.body)
        assert 3000 < int(answer.headers["retry-after"]) <= 3600, (path, answer.headers)
    assert box.ask("GET").status == 200  # and its files can still be fetched
    box.ask("DELETE")


def test_storage(daemon):
    """Waiting frees nothing here: no time is told, and what alone is too large is told so."""
    box = Sandbox(daemon, key=daemon.keys["full"])
    for size, expected in ((5000000, (400, "beyond_quota", "storage_mb")), (2000000, (201, None, None)), (2000001, (429, "quota", "storage_mb"))):
        box.run(f"head -c {size} /dev/urandom >big")
        answer = box.ask("POST", "/snapshots", {})
        told = answer.json()
        assert (answer.status, told.get("code"), told.get("field")) == expected, told
        assert "retry-after" not in answer.headers
    box.ask("DELETE")
