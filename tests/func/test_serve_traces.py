"""Traces of nacre serve: OTLP in JSON, as a collector reads it, below the caller's own."""

import http.server
import json
import re
import threading
import time

import pytest

from serving import Daemon

CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what it is sent; while `slow` is set it answers nobody."""

    daemon_threads = True

    def __init__(self, status=200):
        collector = self
        self.bodies, self.heads, self.slow, self.status = [], [], threading.Event(), status

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                collector.heads.append((self.path, self.headers))
                collector.bodies.append(json.loads(data))
                if collector.slow.is_set():
                    time.sleep(8)
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}/v1/traces"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def spans(self):
        return [span for body in list(self.bodies) for span in check(body)]

    def wait_for(self, wanted, seconds=10):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if wanted(self.spans()):
                return self.spans()
            time.sleep(0.05)
        raise AssertionError(f"it did not come: {self.spans()}")


def check(body):
    """The spans of a request that has the shape of ExportTraceServiceRequest in JSON, and nothing else."""
    spans = []
    assert set(body) == {"resourceSpans"}
    for resource in body["resourceSpans"]:
        assert set(resource) == {"resource", "scopeSpans"}
        assert attributes(resource["resource"])["service.name"] == "nacre"
        for scope in resource["scopeSpans"]:
            assert set(scope) == {"scope", "spans"} and scope["scope"]["name"] == "nacre"
            spans += scope["spans"]
    for span in spans:
        assert {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"} == set(span) - {"parentSpanId"}
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]) and set(span["spanId"]) != {"0"}
        assert re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", PARENT)) and span["kind"] in (1, 2) and span["status"]["code"] in (0, 2)
        assert isinstance(span["startTimeUnixNano"], str) and abs(int(span["startTimeUnixNano"]) / 1e9 - time.time()) < 300
        assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"])
        attributes(span)
    return spans


def attributes(node):
    found = {}
    for attribute in node["attributes"]:
        (kind, value), = attribute["value"].items()
        assert set(attribute) == {"key", "value"} and isinstance(value, str) and kind in ("stringValue", "intValue")
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found


def configure(directory, collector, **more):
    lines = [f"  {name}: {json.dumps(value)}" for name, value in {"endpoint": collector.address, **more}.items()]
    directory.mkdir(exist_ok=True)
    (directory / "serve.yaml").write_text("tracing:\n" + "\n".join(lines) + "\n")
    return directory


@pytest.fixture(scope="module")
def collector():
    made = Collector()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, collector):
    home = tmp_path_factory.mktemp("traces")
    config = configure(home / "config", collector, headers=["Authorization: Bearer pearl", "X-Scope: a: b"])
    with Daemon(home, config=config) as made:
        yield made


def test_an_execution_below_the_callers_span(daemon, collector):
    answer = daemon.execute("import time; time.sleep(0.2)", headers={"traceparent": f"00-{CALLER}-{PARENT}-01"})
    execution = answer.json()["receipt"]["id"]
    spans = collector.wait_for(lambda spans: len([s for s in spans if s["traceId"] == CALLER]) >= 6)
    spans = {span["name"]: span for span in spans if span["traceId"] == CALLER}
    assert set(spans) == {"POST /v1/execute", "execution", "queue", "prepare", "run", "collect"}
    request, whole = spans["POST /v1/execute"], spans["execution"]
    assert request["parentSpanId"] == PARENT and request["kind"] == 2 and whole["parentSpanId"] == request["spanId"]
    told = attributes(request)
    assert (told["http.response.status_code"], told["nacre.request.id"]) == (200, answer.headers["x-request-id"])
    assert len({span["spanId"] for span in spans.values()}) == 6
    last = int(whole["startTimeUnixNano"])
    for name in ("queue", "prepare", "run", "collect"):
        span = spans[name]
        assert span["parentSpanId"] == whole["spanId"] and int(span["startTimeUnixNano"]) == last
        last = int(span["endTimeUnixNano"])
        told = attributes(span)
        assert told["nacre.execution.id"] == execution and told["nacre.box.id"] > 0
    assert last <= int(whole["endTimeUnixNano"]) <= int(request["endTimeUnixNano"])
    assert int(request["startTimeUnixNano"]) <= int(whole["startTimeUnixNano"])
    # its beginning is when the daemon heard of it, which is somewhat later
    assert int(spans["run"]["endTimeUnixNano"]) - int(spans["run"]["startTimeUnixNano"]) > 0.1e9
    told = attributes(whole)
    assert (told["nacre.status"], told["nacre.language"], told["process.exit.code"]) == ("success", "python", 0)


def test_where_and_as_whom(daemon, collector):
    daemon.get("/v1/policies")
    collector.wait_for(lambda spans: any(span["name"] == "GET /v1/policies" for span in spans))
    path, head = collector.heads[-1]
    assert (path, head["Content-Type"], head["Authorization"], head["X-Scope"]) == ("/v1/traces", "application/json", "Bearer pearl", "a: b")


def test_without_a_caller_the_trace_is_ours(daemon, collector):
    daemon.execute("raise SystemExit(3)")
    spans = collector.wait_for(lambda spans: any(attributes(span).get("process.exit.code") == 3 for span in spans))
    whole = next(span for span in spans if attributes(span).get("process.exit.code") == 3)
    root = next(span for span in spans if span["spanId"] == whole["parentSpanId"])
    assert whole["status"]["code"] == 2 and "parentSpanId" not in root and root["traceId"] == whole["traceId"] != CALLER
    assert daemon.wait_for_log("Execution ended")


def test_what_is_not_to_be_traced(daemon, collector):
    """Who says so is not; nor is what only looks whether we are well; nor a header that is none, which is no trace to join."""
    other, bad = "1" * 32, "2" * 32
    daemon.get("/v1/policies", headers={"traceparent": f"00-{other}-{PARENT}-00"})
    daemon.get("/healthz")
    daemon.get("/metrics")
    for header in (f"00-{bad}-{PARENT}", f"00-{bad}-{'0' * 16}-01", f"01-{bad}-{PARENT}-01", f"00-{bad}-{PARENT}-0g", f"00-{bad}-{PARENT}-01-x"):
        daemon.get("/v1/jobs", headers={"traceparent": header})
    spans = collector.wait_for(lambda spans: len([s for s in spans if s["name"] == "GET /v1/jobs"]) == 5)
    assert {other, bad}.isdisjoint(span["traceId"] for span in spans)
    assert not any("healthz" in span["name"] or "metrics" in span["name"] for span in spans)


def test_a_sandbox_is_named(daemon, collector):
    box = daemon.post("/v1/sandboxes", {}).json()["id"]
    daemon.ask("GET", f"/v1/sandboxes/{box}")
    daemon.ask("DELETE", f"/v1/sandboxes/{box}")
    spans = collector.wait_for(lambda spans: any(span["name"] == "DELETE /v1/sandboxes/{id}" for span in spans))
    assert all(attributes(span)["nacre.sandbox.id"] == box for span in spans if span["name"].endswith("/v1/sandboxes/{id}"))


def test_a_share_is_traced(tmp_path, collector):
    with Daemon(tmp_path, config=configure(tmp_path / "config", collector, sample=0)) as daemon:
        before = len(collector.spans())
        daemon.execute("1")
        daemon.get("/v1/policies", headers={"traceparent": f"00-{'3' * 32}-{PARENT}-01"})
        collector.wait_for(lambda spans: any(span["traceId"] == "3" * 32 for span in spans))
        time.sleep(1.2)
        assert len(collector.spans()) == before + 1


def counter(daemon, name):
    found = re.search(rf"^{name} (\S+)$", daemon.get("/metrics").body.decode(), re.M)
    return float(found[1]) if found else 0


def test_a_slow_collector_costs_traces_and_nothing_else(tmp_path):
    collector = Collector()
    collector.slow.set()
    with Daemon(tmp_path, config=configure(tmp_path / "config", collector)) as daemon:
        began = time.monotonic()
        count = 0
        while counter(daemon, "nacre_trace_spans_dropped_total") == 0:
            for _ in range(200):
                assert daemon.get("/v1/policies").status == 200
            count += 200
            assert count < 20000, "it keeps everything"
        assert time.monotonic() - began < 60 and daemon.execute("print(1)").json()["output"] == "1\n"
        assert counter(daemon, "nacre_trace_spans_total") + counter(daemon, "nacre_trace_spans_dropped_total") <= count + 100
    collector.shutdown()


@pytest.mark.parametrize("status", [None, 500, 503])
def test_a_collector_that_is_away_or_ill(tmp_path, status):
    collector = Collector(status or 200)
    if status is None:
        collector.shutdown()
        collector.server_close()
    with Daemon(tmp_path, config=configure(tmp_path / "config", collector)) as daemon:
        daemon.execute("1")
        lost = daemon.wait_for_log("Traces are lost")
        assert lost["status"] == (status or 0) and lost["address"] == collector.address
        assert daemon.execute("print(1)").json()["output"] == "1\n"


@pytest.mark.parametrize("text, why", [("endpoint: ftp://x", "an address such as"), ("headers: ['no colon']", "Name: value"),
                                       ('headers: ["a: b\\r\\nc: d"]', "Name: value"), ("sample: 2", "sample"), ("endpoint: []", "endpoint")])
def test_what_is_no_tracing(nacre, tmp_path, text, why):
    (tmp_path / "serve.yaml").write_text(f"tracing:\n  {text}\n")
    done = nacre("--config", str(tmp_path), "config", "check")
    assert done.returncode != 0 and why in done.stderr, done
