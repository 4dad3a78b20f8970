"""What the daemon holds for clients that do not read is bounded: for one, for a tenant, and in all."""

import hashlib
import json
import socket
import time

import pytest

from serving import Daemon
from test_sandboxes import Sandbox

MIB = 1 << 20
READERS = 60


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("memory"), "--no-warm") as made:
        yield made


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    made.ask("DELETE")


def ask_without_reading(daemon, path, method="GET", body=b""):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(30)
    client.connect(("127.0.0.1", daemon.port))
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    client.sendall(head.encode() + b"\r\n" + body)
    return client


def wait_for_bytes(clients):
    """Each has its first bytes, so that what is to be held for it is held."""
    for client in clients:
        assert client.recv(12) == b"HTTP/1.1 200"


def most(daemon, seconds=3):
    found, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        found = max(found, pss(daemon.pid))
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("path", ["/workspace/sparse", "/workspace/endless"])
def test_readers_that_do_not_read_a_file(daemon, path):
    boxes = [Sandbox(daemon) for _ in range(8)]  # each does eight things with its files at once
    for box in boxes:
        box.run("truncate -s 1T sparse 2>/dev/null || truncate -s 8G sparse; ln -s /proc/self/pagemap endless")
    before = pss(daemon.pid)
    clients = [ask_without_reading(daemon, f"/v1/sandboxes/{boxes[i % 8].id}/files?path={path}") for i in range(READERS)]
    try:
        wait_for_bytes(clients)
        assert most(daemon) - before < 40 * MIB
        assert daemon.get("/healthz").status == 200
    finally:
        for client in clients:
            client.close()
        for box in boxes:
            box.ask("DELETE")


def test_there_is_an_end_to_readers(daemon):
    """Beyond a tenant's share they are told to come again."""
    boxes = [Sandbox(daemon) for _ in range(9)]
    for box in boxes:
        box.run("truncate -s 8G sparse")
    clients = [ask_without_reading(daemon, f"/v1/sandboxes/{boxes[i % 9].id}/files?path=/workspace/sparse") for i in range(72)]
    try:
        status = [client.recv(12).split()[1] for client in clients]
        assert status.count(b"200") == 64 and status.count(b"503") == 8
    finally:
        for client in clients:
            client.close()
        for box in boxes:
            box.ask("DELETE")


def test_a_large_file_is_read_whole(daemon, sandbox):
    sandbox.run("head -c 80000000 /dev/urandom >big; sha256sum <big >sum", timeout=60)
    answer = sandbox.ask("GET", "/files?path=/workspace/big")
    assert answer.status == 200 and len(answer.body) == 80000000
    assert hashlib.sha256(answer.body).hexdigest() == sandbox.ask("GET", "/files?path=/workspace/sum").body.split()[0].decode()


def test_small_files_keep_the_connection(daemon, sandbox):
    sandbox.run("echo hi >f; : >empty")
    answer = sandbox.ask("GET", "/files?path=/workspace/f")
    assert answer.body == b"hi\n" and answer.headers["content-length"] == "3"
    answer = sandbox.ask("GET", "/files?path=/workspace/empty")
    assert answer.status == 200 and answer.body == b""


@pytest.mark.parametrize("path", ["/proc/self/mem", "/dev/tty", "/dev/zero", "/proc/self/fd/0", "/proc/1/environ", "/proc/self/attr/exec"])
def test_what_cannot_be_read_is_no_fault_of_ours(daemon, sandbox, path):
    answer = sandbox.ask("GET", f"/files?path={path}")
    assert 400 <= answer.status < 500 or answer.status == 200, answer.body
    if answer.status != 200:
        assert answer.json()["code"] and answer.json()["detail"]


def test_replies_that_nobody_takes(daemon):
    """Whole replies of many megabytes: the oldest that nobody takes go."""
    before = pss(daemon.pid)
    body = json.dumps({"language": "python", "code": "open('f', 'wb').write(bytes(12000000))", "capture": ["f"]}).encode()
    clients = []
    try:
        for _ in range(12):
            clients.append(ask_without_reading(daemon, "/v1/execute", "POST", body))
            assert clients[-1].recv(12).startswith(b"HTTP/1.1 200")
        until = time.monotonic() + 20
        while pss(daemon.pid) - before > 110 * MIB:
            assert time.monotonic() < until, (pss(daemon.pid) - before) / MIB
            time.sleep(0.2)
    finally:
        for client in clients:
            client.close()


def test_listings_that_are_too_long_end(daemon, sandbox):
    sandbox.run("cd /tmp; mkdir many; cd many; python3 -c \"for i in range(9000): open('x' * 240 + str(i), 'w')\"", timeout=60)
    answer = sandbox.ask("GET", "/files/list?path=/tmp/many")
    assert answer.status in (200, 413)


def test_what_commands_printed_is_bounded(daemon):
    """Commands that printed 2 MiB each, in several sandboxes: what is remembered of them is the tenant's, and bounded."""
    boxes = [Sandbox(daemon) for _ in range(3)]
    before = pss(daemon.pid)
    newest = {}
    for n in range(40):
        for box in boxes:
            newest[box.id] = box.run("head -c 1100000 /dev/zero | tr '\\0' x; head -c 1100000 /dev/zero | tr '\\0' y >&2")["id"]
    assert pss(daemon.pid) - before < 100 * MIB
    for box in boxes:
        known = box.ask("GET", "/commands").json()["commands"]
        assert 1 <= len(known) <= 10 and known[0]["id"] == newest[box.id]
        assert len(box.command(newest[box.id])["stdout"]) > 1000000
        box.ask("DELETE")


def test_there_is_an_end_to_watches(daemon):
    boxes = [Sandbox(daemon) for _ in range(9)]
    clients = [ask_without_reading(daemon, f"/v1/sandboxes/{boxes[i % 9].id}/watch?path=/workspace") for i in range(36)]
    try:
        status = [client.recv(12).split()[1] for client in clients]
        assert status.count(b"200") == 32 and status.count(b"503") == 4
    finally:
        for client in clients:
            client.close()
        for box in boxes:
            box.ask("DELETE")
