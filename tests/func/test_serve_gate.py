"""nacre serve: who may ask: keys, roles, tenants, quotas, and pages of others."""

import json
import subprocess
import time

import pytest

from conftest import NACRE
from serving import Daemon


@pytest.fixture(scope="module")
def open_daemon(tmp_path_factory):
    """Without keys."""
    with Daemon(tmp_path_factory.mktemp("open")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """With keys of two tenants."""
    with Daemon(tmp_path_factory.mktemp("keyed")) as daemon:
        daemon.keys = {
            "read": daemon.key("--role", "read", "--tenant", "acme"),
            "execute": daemon.key("--tenant", "acme"),
            "admin": daemon.key("--role", "admin", "--tenant", "house"),
            "other": daemon.key("--tenant", "umbrella"),
        }
        yield daemon


def code_of(answer):
    return answer.status, answer.json().get("code")


# ---- without keys


@pytest.mark.parametrize("host", ["localhost", "LocalHost:80", "127.0.0.1", "127.1.2.3:7070", "[::1]", "[::1]:9"])
def test_names_of_this_machine(open_daemon, host):
    assert open_daemon.get("/v1/version", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7070", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil",
                                  "128.0.0.1", "0.0.0.0", "[::2]", "127.0.0.256", "localhost:", "localhost:x", "127.0.0.1:99999999", "1270.0.1",
                                  "[::ffff:1.2.3.4]", "169.254.169.254"])
def test_rebinding(open_daemon, host):
    assert code_of(open_daemon.get("/v1/version", host=host)) == (403, "foreign_host")
    assert code_of(open_daemon.post("/v1/execute", {"language": "python", "code": "1"}, host=host)) == (403, "foreign_host")


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://localhost.evil.example"}, {"Origin": "http://localhost:1"},
    {"Origin": ""}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "CROSS-SITE"},
    {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
])
def test_pages_of_others(open_daemon, headers):
    for path in ("/v1/version", "/v1/token", "/v1/history"):
        assert code_of(open_daemon.get(path, host="localhost", headers=headers)) == (403, "foreign_origin")
    answer = open_daemon.post("/v1/execute", {"language": "python", "code": "1"}, host="localhost", headers=headers)
    assert code_of(answer) == (403, "foreign_origin")
    assert "access-control-allow-origin" not in answer.headers


def test_pages_of_ours_need_the_token(open_daemon):
    page = {"Origin": "http://localhost:7", "Sec-Fetch-Site": "same-origin"}
    body = {"language": "python", "code": "print('page')"}
    assert code_of(open_daemon.post("/v1/execute", body, host="localhost:7", headers=page)) == (403, "no_token")
    for wrong in ("", "0" * 64):
        answer = open_daemon.post("/v1/execute", body, host="localhost:7", headers={**page, "X-Nacre-Token": wrong})
        assert code_of(answer) == (403, "no_token")
    token = open_daemon.get("/v1/token", host="localhost:7", headers=page).json()["token"]
    answer = open_daemon.post("/v1/execute", body, host="localhost:7", headers={**page, "X-Nacre-Token": token})
    assert answer.status == 200 and answer.json()["output"] == "page\n"


def test_form_posts_are_not_json(open_daemon):
    """What a page can send without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", ""):
        answer = open_daemon.post("/v1/execute", {"language": "python", "code": "1"}, headers={"Content-Type": kind})
        assert code_of(answer) == (415, "not_json")


def test_the_page_runs_no_scripts(open_daemon):
    page = open_daemon.get("/docs", headers={"Sec-Fetch-Site": "cross-site"})
    assert page.status == 200 and b"<script" not in page.body and b"/v1/execute" in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]


# ---- with keys


def test_key_is_needed(keyed):
    for path in ("/v1/version", "/metrics", "/v1/jobs", "/v1/token", "/nothing"):
        answer = keyed.get(path)
        assert code_of(answer) == (401, "no_key") and answer.headers["www-authenticate"].startswith("Bearer")
    assert keyed.get("/healthz").status == 200
    assert keyed.get("/readyz").status == 200


def test_wrong_keys(keyed):
    good = keyed.keys["read"]
    for wrong in (good[:-1], good + "0", good[:-1] + ("0" if good[-1] != "0" else "1"), good.upper(), "nk_", "x" * 64, good[:16] + "0" * 48):
        assert code_of(keyed.get("/v1/version", key=wrong)) == (401, "bad_key")
    assert code_of(keyed.get("/v1/version", headers={"Authorization": f"Basic {good}"})) == (401, "bad_key")
    assert keyed.get("/v1/version", headers={"X-API-Key": good}).status == 200
    assert keyed.get("/v1/version", headers={"Authorization": f"bearer   {good}"}).status == 200
    both = keyed.get("/v1/version", key=good, headers={"X-API-Key": good})
    assert code_of(both) == (400, "ambiguous_key")


def test_roles(keyed):
    body = {"language": "python", "code": "1"}
    assert code_of(keyed.post("/v1/execute", body, key=keyed.keys["read"])) == (403, "role")
    assert code_of(keyed.post("/v1/jobs", body, key=keyed.keys["read"])) == (403, "role")
    assert code_of(keyed.get("/v1/audit/head", key=keyed.keys["execute"])) == (403, "role")
    assert code_of(keyed.get("/v1/alerts", key=keyed.keys["execute"])) == (403, "role")
    assert keyed.get("/v1/audit/head", key=keyed.keys["admin"]).status == 200
    assert keyed.post("/v1/execute", body, key=keyed.keys["execute"]).status == 200


def test_tenants_see_their_own(keyed):
    reply = keyed.execute("print('secret')", key=keyed.keys["execute"]).json()
    job = keyed.post("/v1/jobs", {"language": "python", "code": "print('mine')"}, key=keyed.keys["execute"]).json()["id"]
    keyed.get(f"/v1/jobs/{job}/wait", key=keyed.keys["execute"])
    receipt = reply["receipt"]["id"]
    for path in (f"/v1/history/{receipt}", f"/v1/history/{receipt}/stdout", f"/v1/jobs/{job}", f"/v1/jobs/{job}/events", f"/v1/jobs/{job}/wait"):
        assert keyed.get(path, key=keyed.keys["other"]).status == 404
        assert keyed.get(path, key=keyed.keys["read"]).status == 200
        assert keyed.get(path, key=keyed.keys["admin"]).status == 200
    assert keyed.ask("DELETE", f"/v1/jobs/{job}", key=keyed.keys["other"]).status == 404
    assert keyed.get("/v1/jobs", key=keyed.keys["other"]).json()["jobs"] == []
    keyed.execute("1", key=keyed.keys["other"])
    rows = keyed.get("/v1/history?tenant=acme", key=keyed.keys["other"]).json()["executions"]
    assert rows and all(row["tenant"] == "umbrella" for row in rows)
    assert {row["tenant"] for row in keyed.get("/v1/history", key=keyed.keys["admin"]).json()["executions"]} >= {"acme", "umbrella"}


def test_idempotency_keys_are_the_tenants(keyed):
    body = {"language": "python", "code": "import uuid; print(uuid.uuid4())"}
    mine = keyed.post("/v1/execute", body, key=keyed.keys["execute"], headers={"Idempotency-Key": "same"})
    theirs = keyed.post("/v1/execute", body, key=keyed.keys["other"], headers={"Idempotency-Key": "same"})
    assert mine.json()["output"] != theirs.json()["output"]


def test_tenant_comes_from_the_key(keyed):
    assert code_of(keyed.execute("1", key=keyed.keys["execute"], tenant="umbrella")) == (403, "foreign_tenant")
    reply = keyed.execute("1", key=keyed.keys["execute"], tenant="acme").json()
    assert keyed.get(f"/v1/history/{reply['receipt']['id']}", key=keyed.keys["admin"]).json()["tenant"] == "acme"


def test_secrets_are_not_kept(keyed):
    secret = keyed.keys["execute"].split("_")[2]
    for path in (f"{keyed.state}/serve/keys.json", keyed.log_path):
        assert secret not in open(path).read()


def test_revoking(tmp_path):
    with Daemon(tmp_path) as daemon:
        assert daemon.get("/v1/version").status == 200
        key = daemon.key("--json", "--name", "ci")
        made = json.loads(key)
        assert daemon.get("/v1/version", key=made["key"]).status == 200
        listed = json.loads(subprocess.run([NACRE, "key", "list", "--json"], env=daemon.env, capture_output=True, check=True).stdout)
        assert listed["keys"][0]["id"] == made["id"] and "sha256" not in listed["keys"][0] and "key" not in listed["keys"][0]
        subprocess.run([NACRE, "key", "revoke", made["id"]], env=daemon.env, check=True)
        time.sleep(1.1)
        assert code_of(daemon.get("/v1/version", key=made["key"])) == (401, "bad_key")
        # the last key is gone, and still nobody gets in without one
        assert code_of(daemon.get("/v1/version")) == (401, "no_key")
        # nor by a file that is no list of keys, or none at all
        keys = tmp_path / "state" / "serve" / "keys.json"
        keys.write_text("{}")
        time.sleep(1.1)
        assert daemon.get("/v1/version").status == 401
        keys.unlink()
        time.sleep(1.1)
        assert daemon.get("/v1/version").status == 401
    gone = subprocess.run([NACRE, "key", "revoke", "none"], env=daemon.env, capture_output=True, text=True)
    assert gone.returncode == 125 and "no key 'none'" in gone.stderr


def test_key_faults(nacre, tmp_path):
    env = {"NACRE_STATE": str(tmp_path / "state")}
    assert nacre("key", "list", env=env).stdout == ""
    for options, said in ((["--role", "king"], "read, execute or admin"), (["--tenant", "../x"], "letters"), (["--name", "a b"], "letters")):
        done = nacre("key", "create", *options, env=env)
        assert done.returncode == 125 and said in done.stderr


# ---- quotas and other origins


SERVE = """
allowed_origins: [https://app.example]
tenants:
  slow: {requests_per_minute: 6}
  one: {executions: 1}
  small: {memory_mb: 600}
  thin: {disk_mb: 150}
  lazy: {cpu_seconds_per_hour: 1}
alerts:
  intruders: {kind: security, measure: auth_failures, above: 2}
  waiting: {kind: capacity, measure: queue, above: 100000, for_seconds: 5}
"""


@pytest.fixture(scope="module")
def quotas(tmp_path_factory):
    home = tmp_path_factory.mktemp("quotas")
    (home / "config").mkdir()
    (home / "config" / "serve.yaml").write_text(SERVE)
    with Daemon(home, config=home / "config") as daemon:
        daemon.keys = {tenant: daemon.key("--tenant", tenant) for tenant in ("slow", "one", "small", "thin", "lazy", "free")}
        daemon.keys["admin"] = daemon.key("--role", "admin")
        yield daemon


def test_rate(quotas):
    answers = [quotas.get("/v1/version", key=quotas.keys["slow"]) for _ in range(8)]
    assert [answer.status for answer in answers[:6]] == [200] * 6
    assert code_of(answers[7]) == (429, "rate") and 1 <= int(answers[7].headers["retry-after"]) <= 10
    assert quotas.get("/v1/version", key=quotas.keys["free"]).status == 200


def test_executions_at_once(quotas):
    sleep = {"language": "python", "code": "import time; time.sleep(20)"}
    job = quotas.post("/v1/jobs", sleep, key=quotas.keys["one"]).json()["id"]
    second = quotas.post("/v1/jobs", sleep, key=quotas.keys["one"])
    assert code_of(second) == (429, "quota") and second.json()["field"] == "executions"
    quotas.ask("DELETE", f"/v1/jobs/{job}", key=quotas.keys["one"])
    quotas.get(f"/v1/jobs/{job}/wait", key=quotas.keys["one"])
    assert quotas.execute("1", key=quotas.keys["one"]).status == 200


@pytest.mark.parametrize("tenant,field", [("small", "memory_mb"), ("thin", "disk_mb")])
def test_what_they_are_allowed_together(quotas, tenant, field):
    key = quotas.keys[tenant]  # a Python box is allowed 512 MB, and a disk of 100
    job = quotas.post("/v1/jobs", {"language": "python", "code": "import time; time.sleep(20)"}, key=key).json()["id"]
    second = quotas.execute("1", key=key)
    assert code_of(second) == (429, "quota") and second.json()["field"] == field
    quotas.ask("DELETE", f"/v1/jobs/{job}", key=key)
    quotas.get(f"/v1/jobs/{job}/wait", key=key)
    assert quotas.execute("1", key=key).status == 200


def test_cpu_seconds(quotas):
    burn = "import time\nwhile time.process_time() < 1.3: pass"
    assert quotas.execute(burn, key=quotas.keys["lazy"]).json()["status"] == "success"
    refused = quotas.execute("1", key=quotas.keys["lazy"])
    assert code_of(refused) == (429, "quota") and 3000 < int(refused.headers["retry-after"]) <= 3600


def test_allowed_origins(quotas):
    page = {"Origin": "https://app.example"}
    preflight = quotas.ask("OPTIONS", "/v1/execute", headers={**page, "Access-Control-Request-Method": "POST"})
    assert preflight.status == 204 and preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    answer = quotas.get("/v1/version", headers=page, key=quotas.keys["free"])
    assert answer.status == 200 and answer.headers["access-control-allow-origin"] == "https://app.example"
    assert quotas.get("/v1/version", headers=page).status == 401
    foreign = quotas.ask("OPTIONS", "/v1/execute", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in foreign.headers and foreign.status == 403


def test_alerts(quotas):
    for _ in range(5):
        quotas.get("/v1/version", key="nk_wrong")
    until = time.monotonic() + 12
    while True:
        alerts = {alert["name"]: alert for alert in quotas.get("/v1/alerts", key=quotas.keys["admin"]).json()["alerts"]}
        if alerts["intruders"]["firing"]:
            break
        assert time.monotonic() < until
        time.sleep(0.2)
    assert alerts["intruders"]["value"] >= 5 and alerts["intruders"]["kind"] == "security"
    assert not alerts["waiting"]["firing"]
    assert quotas.wait_for_log("Alert")["alert"] == "intruders"
    assert 'nacre_alert_firing{alert="intruders",kind="security"} 1' in quotas.get("/metrics", key=quotas.keys["admin"]).body.decode()


def test_rules_that_look_at_nothing(nacre, tmp_path):
    (tmp_path / "serve.yaml").write_text("alerts:\n  odd: {kind: error}\n")
    done = nacre("--config", tmp_path, "serve", "--listen", "127.0.0.1:0", env={"NACRE_STATE": str(tmp_path / "state")})
    assert done.returncode == 125 and "alerts.'odd'" in done.stderr
