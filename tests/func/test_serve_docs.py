"""nacre serve: its description against every reply, its metrics against Prometheus and against those who use them."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import jsonschema
import pytest

from conftest import BUILD, ROOT
from serving import Daemon, events_of
from websocket import WebSocket

OPENAPI = json.loads((ROOT / "docs/openapi.json").read_text())
ROUTES = re.findall(r'\{"([A-Z]+)",\s*"(/[^"]*)"', (ROOT / "src/server/rest/routes.c").read_text())


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    home = tmp_path_factory.mktemp("docs")
    (home / "config").mkdir()
    (home / "config" / "serve.yaml").write_text("alerts:\n  full: {kind: capacity, measure: disk_percent, above: 200}\n")
    with Daemon(home, config=home / "config") as daemon:
        yield daemon


def test_routes_are_those_of_the_document():
    documented = {(method.upper(), path) for path, methods in OPENAPI["paths"].items() for method in methods}
    assert len(ROUTES) > 20 and set(ROUTES) == documented


def test_requests_are_those_of_their_schema():
    schema = json.loads((ROOT / "docs/request.schema.json").read_text().replace('"#/$defs/', '"#/components/schemas/ExecutionRequest/$defs/'))
    schema.pop("$schema")
    assert OPENAPI["components"]["schemas"]["ExecutionRequest"] == schema


def test_statuses_are_those_that_there_are():
    """The ones that the code gives, in both documents."""
    told = re.search(r"^\| `status` \| why it ended: (.*) \|$", (ROOT / "docs/requests.md").read_text(), re.M).group(1)
    told = set(re.sub(r" \([^)]*\)", "", told).split(", "))
    lists = [set(json.loads(found)) for found in re.findall(r'"enum": (\[[^]]*"cpu_limit"[^]]*\])', json.dumps(OPENAPI))]
    source = "".join(path.read_text() for folder in ("box", "engine", "recorder", "server") for path in (ROOT / "src" / folder).glob("*.c"))
    assert lists == [told]
    assert not [status for status in told if f'"{status}"' not in source and f'\\"{status}\\"' not in source]


def test_it_is_an_openapi_document():
    assert OPENAPI["openapi"].startswith("3.1.")
    text = json.dumps(OPENAPI)
    for reference in set(re.findall(r'"\$ref": "#/([^"]*)"', text)):
        node = OPENAPI
        for part in reference.split("/"):
            node = node[part]
    for path, methods in OPENAPI["paths"].items():
        for operation in methods.values():
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_it_names_servers_and_every_operation():
    """What generators of clients ask for, and redocly looks at."""
    assert OPENAPI["servers"] and all(server["url"] and server["description"] for server in OPENAPI["servers"])
    names = [operation.get("operationId") for path in OPENAPI["paths"].values() for operation in path.values()]
    assert all(name and re.fullmatch(r"[a-z][A-Za-z]+", name) for name in names) and len(set(names)) == len(names)


REDOCLY = "1.34.5"
# what it only warns of by itself
RULES = """extends: [recommended]
rules:
  no-empty-servers: error
  operation-operationId: error
  operation-operationId-unique: error
  operation-operationId-url-safe: error
"""


@pytest.fixture(scope="module")
def redocly():
    """The linter, fetched once per build tree (172 MB, half a minute); scripts of its packages are not run."""
    place = BUILD / f"redocly-{REDOCLY}"
    program = place / "node_modules/.bin/redocly"
    if not program.exists():
        if not shutil.which("npm"):
            pytest.skip("needs npm")
        making = BUILD / f"redocly-{REDOCLY}.{os.getpid()}"
        making.mkdir()
        try:
            fetched = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", making, f"@redocly/cli@{REDOCLY}"],
                                     cwd=making, capture_output=True, text=True, timeout=300)
            if fetched.returncode != 0:
                pytest.skip(f"npm cannot fetch it: {fetched.stderr.strip()[-200:]}")
            shutil.rmtree(place, ignore_errors=True)  # of somebody who was interrupted
            making.rename(place)
        except subprocess.TimeoutExpired:
            pytest.skip("npm cannot fetch it within five minutes")
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return program


def lint(program, document, place):
    (place / "openapi.json").write_text(json.dumps(document))
    (place / "redocly.yaml").write_text(RULES)
    done = subprocess.run([program, "lint", "--format", "json", "openapi.json"], cwd=place, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"})
    found = json.loads(done.stdout)["problems"]
    assert (done.returncode == 0) == (not [one for one in found if one["severity"] == "error"]), done
    return {(one["ruleId"], one["severity"]) for one in found}


def test_a_linter_finds_no_error(redocly, daemon, tmp_path):
    """In what the daemon hands out; it warns of the two routes that only switch protocols, with 101."""
    served = daemon.get("/openapi.json").json()
    assert lint(redocly, served, tmp_path) <= {("operation-2xx-response", "warn")}
    first, second = [path["get"] for path in served["paths"].values() if "get" in path][:2]
    first["operationId"] = second["operationId"]
    del served["servers"]
    found = lint(redocly, served, tmp_path)  # it would have found them
    assert {("no-empty-servers", "error"), ("operation-operationId-unique", "error")} <= found, found


def resolve(node):
    while "$ref" in node:
        target = OPENAPI
        for part in node["$ref"].lstrip("#/").split("/"):
            target = target[part]
        node = target
    return node


def check(daemon, method, path, template, body=None, **options):
    """Asks, and holds the answer against what the document says of it."""
    answer = daemon.ask(method, path, body, **options)
    operation = OPENAPI["paths"][template][method.lower()]
    assert str(answer.status) in operation["responses"], (path, answer.status, answer.body[:300])
    response = resolve(operation["responses"][str(answer.status)])
    CHECKED.add((method, template, answer.status))
    if answer.status == 204:
        assert "content" not in response and not answer.body
        return answer
    kind = answer.headers["content-type"].split(";")[0]
    assert kind in response["content"], (path, kind)
    if kind.endswith("json"):
        schema = {**response["content"][kind]["schema"], "components": OPENAPI["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.json())
    return answer


CHECKED = set()
HELLO = {"language": "python", "code": "print('hello')"}


def check_sandboxes(daemon):
    """Every route of sandboxes, well used and badly."""
    base = "/v1/sandboxes"
    box = check(daemon, "POST", base, base, {"labels": {"a": "b"}, "network": {"allow": ["example.com"]}}).json()["id"]
    check(daemon, "POST", base, base, {"nope": 1})
    check(daemon, "POST", base, base, {"image": "nowhere"})
    check(daemon, "GET", base, base)
    check(daemon, "GET", f"{base}?limit=x", base)
    one = f"{base}/{{id}}"

    def each(method, rest, *arguments, query="", **options):
        template = one + rest
        path = template.replace("{id}", box).replace("{command}", command) + query
        return check(daemon, method, path, template, *arguments, **options)

    raw = {"headers": {"Content-Type": "application/octet-stream"}}
    command = each_id = check(daemon, "POST", f"{base}/{box}/commands", one + "/commands",
                              {"command": "cat; sleep 60", "background": True, "keep_input": True, "terminal": True}).json()["id"]
    each("POST", "/commands", {"command": "echo hi; exit 2"})
    each("POST", "/commands", {"command": ["/no/such"]})
    each("POST", "/commands", {"commands": ""})
    each("GET", "/commands")
    each("GET", "/commands/{command}")
    for rest in ("/exec", "/commands/{command}/attach"):
        each("GET", rest)
        each("GET", rest, query="?on_hangup=x")
        template = one + rest
        assert WebSocket(daemon, template.replace("{id}", box).replace("{command}", command)).status == 101
        assert "101" in OPENAPI["paths"][template]["get"]["responses"]
        CHECKED.add(("GET", template, 101))
    each("POST", "/commands/{command}/input", b"x", **raw)
    each("POST", "/commands/{command}/size", {"rows": 20, "columns": 70})
    each("POST", "/commands/{command}/size", {"rows": 0})
    each("POST", "/commands/{command}/signal", {"signal": 9})
    each("POST", "/commands/{command}/signal", {"signal": "X"})
    each("DELETE", "/commands/{command}")
    each("GET", "/commands/{command}/events")
    each("GET", "/commands/{command}/events", headers={"Last-Event-ID": "x"})
    for query in ("?path=/workspace/d/f", "?path=relative"):
        each("PUT", "/files", b"data", query=query, **raw)
        each("GET", "/files", query=query)
        each("GET", "/files/stat", query=query)
        each("POST", "/files/directory", query=query.replace("f", "new"))
    each("GET", "/files/list", query="?path=/workspace")
    for query in ("?path=/workspace/d", "?path=relative", "?path=/nowhere"):
        archive = each("GET", "/archive", query=query).body
        each("PUT", "/archive", archive, query=query, **raw)
    each("GET", "/watch", query="?path=/nowhere")
    ending = threading.Timer(1, daemon.ask, ("DELETE", f"{base}/{box}/files?path=/workspace/d"))
    ending.start()
    assert b"event: removed" in each("GET", "/watch", query="?path=/workspace/d").body
    each("PUT", "/files", b"data", query="?path=/workspace/d/f", **raw)
    snapshot = each("POST", "/snapshots", {"name": "x"}).json()["id"]
    each("POST", "/snapshots", {"nope": "x"})
    each("POST", "/restore", {"snapshot": "sn_none"})
    check(daemon, "GET", "/v1/snapshots", "/v1/snapshots")
    check(daemon, "GET", f"/v1/snapshots/{snapshot}", "/v1/snapshots/{id}")
    each("POST", "/files/move", query="?from=/workspace/d&to=/workspace/e")
    each("DELETE", "/files", query="?path=/workspace/e")
    each("DELETE", "/files", query="?path=/workspace/e")
    each("POST", "/restore", {"snapshot": snapshot})
    check(daemon, "POST", base, base, {"snapshot": snapshot})
    check(daemon, "DELETE", f"/v1/snapshots/{snapshot}", "/v1/snapshots/{id}")
    each("POST", "/network", {"allow": ["example.org"]})
    each("POST", "/network", {"allow": ["http://x"]})
    each("POST", "/pause")
    each("GET", "/health")
    each("POST", "/resume")
    each("GET", "/stats")
    each("GET", "/health")
    each("POST", "/timeout", {"timeout": 60})
    each("POST", "/timeout", {"timeout": "x"})
    each("GET", "")
    check(daemon, "GET", f"{base}/stats", f"{base}/stats")
    check(daemon, "GET", f"{base}/health", f"{base}/health")
    each("DELETE", "")
    each("GET", "")
    check(daemon, "DELETE", base, base)
    assert each_id


def test_replies_are_as_described(daemon):
    check_sandboxes(daemon)
    reply = check(daemon, "POST", "/v1/execute", "/v1/execute", HELLO).json()
    receipt = reply["receipt"]["id"]
    events = events_of(check(daemon, "POST", "/v1/execute", "/v1/execute", {**HELLO, "stream": True}).body)
    done = {"$ref": "#/components/schemas/ExecutionReply", "components": OPENAPI["components"]}
    jsonschema.Draft202012Validator(done).validate(events[-1][2])
    check(daemon, "POST", "/v1/execute", "/v1/execute", {**HELLO, "stream": True}, headers={"Idempotency-Key": "events"})
    check(daemon, "POST", "/v1/execute", "/v1/execute", {"language": "cobol", "code": "1"})
    check(daemon, "POST", "/v1/execute", "/v1/execute", {**HELLO, "tenant": "x"})
    check(daemon, "POST", "/v1/execute", "/v1/execute", b"{}", headers={"Content-Type": "text/plain"})
    for language, code in (("python", "import time; time.sleep(9)"), ("shell", "exit 3"), ("python", "1/0"), ("javascript", "throw 1")):
        check(daemon, "POST", "/v1/execute", "/v1/execute", {"language": language, "code": code, "timeout": 1})
    check(daemon, "POST", "/v1/execute", "/v1/execute", {"language": "python", "code": "import os; os.system('curl x|sh')", "policy": "strict"})
    check(daemon, "POST", "/v1/execute", "/v1/execute", {"steps": [{"language": "shell", "code": "echo a > f"}, {"language": "shell", "code": "cat f"}]})
    key = {"Idempotency-Key": "described"}
    check(daemon, "POST", "/v1/jobs", "/v1/jobs", HELLO, headers=key)
    job = check(daemon, "POST", "/v1/jobs", "/v1/jobs", HELLO, headers=key).json()["id"]
    check(daemon, "POST", "/v1/jobs", "/v1/jobs", {**HELLO, "timeout": 3}, headers=key)
    check(daemon, "GET", "/v1/jobs", "/v1/jobs")
    check(daemon, "GET", "/v1/jobs?state=x", "/v1/jobs")
    check(daemon, "GET", f"/v1/jobs/{job}", "/v1/jobs/{id}")
    check(daemon, "GET", f"/v1/jobs/{job}/wait", "/v1/jobs/{id}/wait")
    check(daemon, "GET", f"/v1/jobs/{job}/wait?timeout=x", "/v1/jobs/{id}/wait")
    check(daemon, "GET", f"/v1/jobs/{job}", "/v1/jobs/{id}")
    check(daemon, "GET", f"/v1/jobs/{job}/events", "/v1/jobs/{id}/events")
    check(daemon, "GET", f"/v1/jobs/{job}/events", "/v1/jobs/{id}/events", headers={"Last-Event-ID": "x"})
    check(daemon, "DELETE", f"/v1/jobs/{job}", "/v1/jobs/{id}")
    check(daemon, "GET", "/v1/history", "/v1/history")
    check(daemon, "GET", "/v1/history?limit=x", "/v1/history")
    check(daemon, "GET", f"/v1/history/{receipt}", "/v1/history/{id}")
    check(daemon, "GET", f"/v1/history/{receipt}/stdout", "/v1/history/{id}/{which}")
    check(daemon, "GET", "/v1/audit/head", "/v1/audit/head")
    check(daemon, "GET", "/v1/audit/verify", "/v1/audit/verify")
    check(daemon, "GET", "/v1/audit/verify?head=x", "/v1/audit/verify")
    check(daemon, "POST", "/v1/policy/analyse", "/v1/policy/analyse", HELLO)
    check(daemon, "POST", "/v1/policy/analyse", "/v1/policy/analyse", {})
    for path in ("/v1/policies", "/v1/environments", "/v1/images", "/v1/alerts", "/v1/token", "/v1/version", "/healthz", "/readyz", "/metrics",
                 "/openapi.json", "/docs"):
        check(daemon, "GET", path, path)
    for method, template in ROUTES:
        path = re.sub(r"\{\w+\}", "none", template)
        if "{" in template:
            check(daemon, method, path, template)
        check(daemon, method, path, template, HELLO if method == "POST" else None,
              headers={"Origin": "http://evil.example"}) if template != "/docs" else None
    assert {(method, template) for method, template, status in CHECKED if status < 400} == set(ROUTES)


def names_in(text):
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"\b(?:nacre|process)_[a-z0-9_]+", text)}


def test_metrics_are_good(daemon):
    daemon.execute("print(1)")
    text = daemon.get("/metrics").body
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rb"^nacre_box_start_seconds_count [1-9]", text, re.M)
    assert re.search(rb'^nacre_http_requests_total\{route="/v1/execute",method="POST",status="200"\} [1-9]', text, re.M)
    assert re.search(rb"^process_resident_memory_bytes [1-9]\d{6}", text, re.M)


def test_who_uses_the_metrics_knows_them(daemon):
    known = set(re.findall(r"^# TYPE (\S+)", daemon.get("/metrics").body.decode(), re.M))
    rules = (ROOT / "deploy/prometheus-rules.yml").read_text()
    expressions = re.findall(r"^ +expr: (.*)$", rules, re.M)
    assert len(expressions) == rules.count("- alert:") > 8
    dashboard = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
    shown = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    assert names_in(" ".join(expressions)) <= known
    assert names_in(shown) == known  # and nothing is counted that nobody sees
    assert set(re.findall(r"kind: (\w+)", rules)) == {"security", "performance", "capacity", "error"}
    assert subprocess.run(["promtool", "check", "rules", ROOT / "deploy/prometheus-rules.yml"], capture_output=True).returncode == 0


def test_prometheus_scrapes_it(daemon, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s}}\nrule_files: [{ROOT}/deploy/prometheus-rules.yml]\n"
        f"scrape_configs: [{{job_name: nacre, static_configs: [{{targets: ['127.0.0.1:{daemon.port}']}}]}}]\n")
    daemon.execute("print(1)")
    server = subprocess.Popen(["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                               f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 40
        while True:
            try:
                url = f"http://127.0.0.1:{port}/api/v1/query?query=sum(nacre_executions_total)"
                found = json.load(urllib.request.urlopen(url, timeout=5))["data"]["result"]
                if found and float(found[0]["value"][1]) >= 1:
                    break
            except OSError:
                pass
            assert time.monotonic() < until
            time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(timeout=20)
