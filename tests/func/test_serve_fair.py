"""Shares: no tenant and no address takes what belongs to all, without any configuration."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import time

import pytest

from serving import Daemon

MIB = 1 << 20
HOST_MB = int(re.search(r"MemTotal: *(\d+)", open("/proc/meminfo").read())[1]) // 1024


@pytest.fixture(scope="module")
def fair(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("fair"), "--no-warm") as made:
        made.keys = {name: made.key("--tenant", name, "--role", "execute") for name in ("greedy", "modest")}
        yield made


@contextlib.contextmanager
def held(sockets):
    try:
        yield sockets
    finally:
        for client in sockets:
            client.close()


def connect(daemon, source):
    return socket.create_connection(("127.0.0.1", daemon.port), timeout=30, source_address=(source, 0))


def test_strangers_keep_nobody_out(fair):
    """Connections of a dozen addresses that show no key, more than there is place for."""
    silent = []
    with held(silent):
        for n in range(1300):
            silent.append(connect(fair, f"127.0.1.{n % 12}"))
            if n % 3 == 0:
                silent[-1].sendall(b"GET /v1/version HTTP/1.1\r\nHost: 127.0.0.1\r\n")  # and never the end of it
        for _ in range(10):
            assert fair.get("/v1/version", key=fair.keys["modest"]).status == 200
        assert fair.execute("print(1)", key=fair.keys["modest"]).json()["status"] == "success"


def test_strangers_of_the_same_address_keep_nobody_out(fair):
    silent = []
    with held(silent):
        for _ in range(700):
            silent.append(connect(fair, "127.0.0.1"))
        assert fair.get("/v1/version", key=fair.keys["modest"]).status == 200


def test_a_tenant_has_its_share_of_connections(fair):
    """Many addresses with one key: others still get in."""
    head = f"GET /v1/version HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {fair.keys['greedy']}\r\n\r\n".encode()
    clients, answers = [], []
    with held(clients):
        for n in range(900):
            clients.append(connect(fair, f"127.0.2.{n % 12}"))
            clients[-1].sendall(head)
            answers.append(clients[-1].recv(12))
        assert 400 < answers.count(b"HTTP/1.1 200") < 800 and set(answers) == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
        for _ in range(10):
            assert fair.get("/v1/version", key=fair.keys["modest"]).status == 200


def test_a_tenant_has_its_share_of_bodies(fair):
    """Bodies that are sent but for their last byte."""
    clients = []
    with held(clients):
        for _ in range(5):
            size = 90 * MIB
            client = connect(fair, "127.0.0.1")
            clients.append(client)
            client.sendall((f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {fair.keys['greedy']}\r\n"
                            f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n").encode())
            with contextlib.suppress(OSError):
                client.sendall(b" " * (size - 1))
        body = json.dumps({"language": "python", "code": "print(1)", "inputs": {"f": "x" * (20 * MIB)}}).encode()
        answer = fair.ask("POST", "/v1/execute", body, key=fair.keys["modest"])
        assert answer.status in (200, 400), answer.body  # read, whatever is thought of it
        assert fair.execute("print(1)", key=fair.keys["modest"]).json()["status"] == "success"


@pytest.mark.parametrize("limits", [{"memory_mb": 1000000}, {"disk_mb": 1048576}])
def test_more_than_the_host_has_is_refused(fair, limits):
    for answer in (fair.post("/v1/sandboxes", {"limits": limits}, key=fair.keys["modest"]),
                   fair.execute("print(1)", key=fair.keys["modest"], limits=limits)):
        assert answer.status == 400 and answer.json()["code"] == "beyond_host", answer.body
        assert next(iter(limits)) in answer.json()["detail"]


@pytest.mark.parametrize("limits", [{"cpu_cores": 1000}, {"cpu_cores": 2 * os.cpu_count()}, {"memory_mb": HOST_MB * 9 // 10}], ids=str)
def test_one_that_is_allowed_everything_keeps_nobody_waiting(fair, limits):
    job = fair.post("/v1/jobs", {"language": "shell", "code": "sleep 50", "timeout": 60, "limits": limits}, key=fair.keys["greedy"]).json()["id"]
    state = lambda: fair.get(f"/v1/jobs/{job}", key=fair.keys["greedy"]).json()["state"]  # noqa: E731
    try:
        until = time.monotonic() + 20
        while state() != "running":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert fair.execute("echo 1", "shell", key=fair.keys["modest"]).json()["status"] == "success"
        assert state() == "running", "the other one waited for its end"
    finally:
        fair.ask("DELETE", f"/v1/jobs/{job}", key=fair.keys["greedy"])


def test_a_tenant_has_its_ceiling_of_memory(fair):
    """Without any quota in the configuration: 32 times the machine's memory."""
    answers = []
    try:
        while len(answers) < 60 and (not answers or answers[-1].status == 201):
            answers.append(fair.post("/v1/sandboxes", {"limits": {"memory_mb": HOST_MB * 9 // 10, "disk_mb": 1}}, key=fair.keys["greedy"]))
        refused = answers[-1]
        assert (refused.status, refused.json()["code"], refused.json()["field"]) == (429, "quota", "memory_mb"), (len(answers), refused.body)
        assert 30 <= len(answers) <= 37
        modest = fair.post("/v1/sandboxes", {}, key=fair.keys["modest"])
        assert modest.status == 201, modest.body
    finally:
        for key in fair.keys.values():
            fair.ask("DELETE", "/v1/sandboxes", key=key)


def test_a_tenant_has_its_share_of_idempotency(fair):
    """One that floods keys makes nobody else's be forgotten."""
    first = fair.execute("print(1)", key=fair.keys["modest"], headers={"Idempotency-Key": "mine"})
    with connect(fair, "127.0.0.1") as client:
        for n in range(4300):
            body = b"[]"  # refused, and remembered
            client.sendall((f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {fair.keys['greedy']}\r\n"
                            f"Idempotency-Key: k{n}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65536)
            head, _, rest = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400"), head
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            while len(rest) < length:
                rest += client.recv(65536)
    again = fair.execute("print(1)", key=fair.keys["modest"], headers={"Idempotency-Key": "mine"})
    assert again.headers.get("idempotency-replayed") == "true" and again.body == first.body


def test_a_tenant_has_its_share_of_what_runs(tmp_path):
    """Long jobs of one tenant in all places that it can get: the next one runs at once."""
    with Daemon(tmp_path, "--no-warm", "--max-running", "4") as daemon:
        keys = {name: daemon.key("--tenant", name, "--role", "execute") for name in ("greedy", "modest")}
        daemon.get("/v1/version", key=keys["greedy"])
        jobs = [daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 25", "limits": {"memory_mb": 64}}, key=keys["greedy"]).json()["id"] for _ in range(8)]
        until = time.monotonic() + 20
        states = []
        while states.count("running") < 3 and time.monotonic() < until:
            states = [daemon.get(f"/v1/jobs/{job}", key=keys["greedy"]).json()["state"] for job in jobs]
        begun = time.monotonic()
        assert daemon.execute("echo 1", "shell", key=keys["modest"]).json()["status"] == "success"
        assert states.count("running") == 3 and time.monotonic() - begun < 20, states
        for job in jobs:
            daemon.ask("DELETE", f"/v1/jobs/{job}", key=keys["greedy"])


def test_a_tenant_has_its_share_of_the_queue(tmp_path):
    """Twelve places: one tenant gets eight, and the next still has one."""
    with Daemon(tmp_path, "--no-warm", "--max-queued", "12") as daemon:
        keys = {name: daemon.key("--tenant", name, "--role", "execute") for name in ("greedy", "modest")}
        daemon.get("/v1/version", key=keys["greedy"])
        answers = [daemon.post("/v1/jobs", {"language": "shell", "code": "sleep 1.5", "limits": {"memory_mb": 64}}, key=keys["greedy"]) for _ in range(200)]
        refused = [answer for answer in answers if answer.status == 503]
        assert refused and {answer.status for answer in answers} == {202, 503}, {answer.status for answer in answers}
        assert all(answer.json()["code"] == "busy" for answer in refused)
        assert daemon.post("/v1/jobs", {"language": "shell", "code": "true"}, key=keys["modest"]).status == 202


def analyse(daemon, name, code):
    answer = daemon.post("/v1/policy/analyse", {"language": "python", "code": code}, key=daemon.keys[name], timeout=240)
    return answer.status, time.monotonic()


BRACKETS = "x=[" * (MIB // 3 - 64)


def test_a_tenant_has_its_turn_in_analysis(fair):
    """Forty large programs of one tenant, and then one of another's: it waits for one or two of them, not for all."""
    with concurrent.futures.ThreadPoolExecutor(41) as pool:
        greedy = [pool.submit(analyse, fair, "greedy", BRACKETS) for _ in range(40)]
        concurrent.futures.wait(greedy, return_when=concurrent.futures.FIRST_COMPLETED)  # the others wait
        status, answered = pool.submit(analyse, fair, "modest", "x = [1]\n" * 12500).result()
        ends = [future.result() for future in greedy]
    assert status == 200
    before = sum(end < answered for _, end in ends)
    assert before <= 12, f"{before} of 40 were answered first: {sorted(end - answered for _, end in ends)}"


def test_a_small_program_waits_for_no_large_one(fair):
    """Large ones are read one after the other on a small machine; small ones of the same tenant beside them."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        large = [pool.submit(analyse, fair, "greedy", BRACKETS) for _ in range(8)]
        concurrent.futures.wait(large, return_when=concurrent.futures.FIRST_COMPLETED)
        status, answered = analyse(fair, "greedy", "print(1)")
        ends = [future.result() for future in large]
    assert status == 200 and sum(end > answered for _, end in ends) >= 4, [end - answered for _, end in ends]


def test_a_tenant_has_its_turn_in_the_history(fair):
    """Who reads the past is one process: of what waits for it a tenant has its share, and tenants take turns."""
    assert fair.execute("print(1)", key=fair.keys["greedy"]).status == 200

    def ask(who):
        return fair.get("/v1/history", key=fair.keys[who], timeout=60).status, time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(241) as pool:
        archive = fair.aides()["archive"]
        os.kill(archive, signal.SIGSTOP)
        try:
            greedy = [pool.submit(ask, "greedy") for _ in range(240)]
            until = time.monotonic() + 20
            while sum(future.done() for future in greedy) < 60 and time.monotonic() < until:
                time.sleep(0.05)
            refused = sum(future.done() for future in greedy)
            modest = pool.submit(ask, "modest")
            time.sleep(0.5)
        finally:
            os.kill(archive, signal.SIGCONT)
        status, answered = modest.result()
        ends = [future.result() for future in greedy]
    assert status == 200 and 60 <= refused <= 80, (status, refused)  # two thirds of 256 wait
    assert sum(end[0] == 200 and end[1] < answered for end in ends) <= 10, "it waited for the other tenant"


def test_a_tenant_has_its_share_of_sandboxes(fair):
    """Of 2,000 in all: one tenant alone gets two thirds, and there is place for the next."""
    small = {"memory_mb": 8, "disk_mb": 1, "max_processes": 2}
    made, until = 0, time.monotonic() + 120
    try:
        while True:
            answer = fair.post("/v1/sandboxes", {"limits": small, "timeout": 600}, key=fair.keys["greedy"])
            if answer.status == 503 and made > 1300:
                break
            assert answer.status in (201, 503) and time.monotonic() < until, (made, answer.body)
            made += answer.status == 201
        assert made in (1333, 1334) and answer.json()["code"] == "busy", (made, answer.body)
        assert fair.post("/v1/sandboxes", {"limits": small}, key=fair.keys["modest"]).status == 201
    finally:
        for key in fair.keys.values():
            fair.ask("DELETE", "/v1/sandboxes", key=key)
