"""Commands of sandboxes over WebSockets: their streams, terminals and ends, and clients of all kinds."""

import hashlib
import json
import os
import signal
import socket
import ssl
import subprocess
import time

import pytest

from conftest import open_way
from serving import Daemon
from test_sandboxes import USER, Sandbox, daemon, sandbox  # noqa: F401: fixtures
from websocket import BINARY, CLOSE, PING, PONG, TEXT, WebSocket, frame


def start(box, command, query="", **options):
    web = WebSocket(box.daemon, box.path("/exec") + query, key=box.key)
    assert web.status == 101, web.head + web.data.decode()
    web.tell(type="start", command=command, **options)
    return web


def begun(box, command, query="", **options):
    web = start(box, command, query, **options)
    told = web.message()
    assert told["type"] == "started", told
    return web, told["command"]["id"]


def gone(box, identity):
    until = time.monotonic() + 60
    while box.command(identity)["state"] == "running" and time.monotonic() < until:
        time.sleep(0.05)
    return box.command(identity)


def test_streams_and_an_end(sandbox):
    web, identity = begun(sandbox, "cat; echo err >&2; exit 3")
    web.input(b"one ")
    web.input(bytes(range(256)))
    web.tell(type="end")
    out, err, end = web.until_exit()
    assert (out, err, web.code) == (b"one " + bytes(range(256)), b"err\n", 1000)
    assert end["type"] == "exit" and (end["command"]["exit_code"], end["command"]["id"]) == (3, identity)
    assert sandbox.command(identity)["stderr"] == "err\n"


def test_a_terminal(sandbox):
    web, identity = begun(sandbox, ["sh"], terminal=True, rows=30, columns=90)
    web.input(b"stty size; tty\n")
    seen = b""
    while b"30 90" not in seen or b"/dev/pts" not in seen:
        seen += web.receive()[1][1:]
    web.tell(type="resize", rows=40, columns=100)
    web.input(b"stty size; trap 'echo caught' INT; sleep 5 & echo re''ady; wait\n")
    while b"40 100" not in seen or b"ready" not in seen:
        seen += web.receive()[1][1:]
    web.tell(type="signal", signal="INT")
    while b"caught" not in seen:
        seen += web.receive()[1][1:]
    web.input(b"kill %1; exit 7\n")
    assert web.until_exit()[2]["command"]["exit_code"] == 7


def test_much_both_ways(sandbox):
    """More than any buffer, to a command that takes it slowly and to a client that does."""
    web, _ = begun(sandbox, "sleep 1; sha256sum; head -c 50000000 /dev/zero")
    data = os.urandom(65536)
    for _ in range(200):
        web.input(data)
    web.tell(type="end")
    time.sleep(1)
    out, _, end = web.until_exit()
    assert out.startswith(hashlib.sha256(data * 200).hexdigest().encode()) and len(out) > 50000000 and end["command"]["exit_code"] == 0
    data = os.urandom(100000)  # one that is echoed while it is sent
    web, _ = begun(sandbox, "head -c 1000000")
    for _ in range(10):
        web.input(data)
    assert web.until_exit()[0] == data * 10


def rss(daemon):  # noqa: F811
    return int(next(line for line in open(f"/proc/{daemon.pid}/status") if line.startswith("VmRSS")).split()[1])


def test_a_client_that_does_not_read(daemon, sandbox):  # noqa: F811
    """The command waits, the daemon's memory does not grow, and in the end the client is cut off."""
    before = rss(daemon)
    webs = [begun(sandbox, "i=0; while :; do i=$((i+1)); echo $i >n; head -c 100000 /dev/zero; done") for _ in range(4)]
    time.sleep(3)
    first = sandbox.run("cat n")["stdout"]
    time.sleep(1)
    assert sandbox.run("cat n")["stdout"] == first and rss(daemon) - before < 16000
    time.sleep(30)
    assert [gone(sandbox, identity)["status"] for _, identity in webs] == ["cancelled"] * 4


def test_clients_that_hang_up(sandbox):
    web, identity = begun(sandbox, "sleep 4721")
    web.client.close()
    assert gone(sandbox, identity)["status"] == "cancelled"
    web, identity = begun(sandbox, "sleep 0.8; echo end", "?on_hangup=stay")
    web.send(CLOSE, b"\x03\xe8")
    assert web.close_code() == 1000
    ended = sandbox.wait(identity)
    assert (ended["status"], ended["stdout"]) == ("success", "end\n")
    # one whose command takes no input
    web, identity = begun(sandbox, "sleep 4722")
    for _ in range(4):
        web.input(bytes(45000))
    time.sleep(0.5)
    web.client.close()
    assert gone(sandbox, identity)["status"] == "cancelled"
    assert WebSocket(sandbox.daemon, sandbox.path("/exec?on_hangup=maybe")).status == 400


def test_attach(sandbox):
    slow = sandbox.run("cat; echo end; exit 4", background=True, keep_input=True)
    path = sandbox.path(f"/commands/{slow['id']}/attach")
    webs = [WebSocket(sandbox.daemon, path) for _ in range(3)]
    assert [web.message()["command"]["id"] for web in webs] == [slow["id"]] * 3
    webs[0].input(b"hello ")
    assert webs[1].receive() == (BINARY, b"\1hello ")
    webs[2].client.close()  # it stays
    time.sleep(0.2)
    webs[1].input(b"again")
    webs[1].tell(type="end")
    assert [web.until_exit()[0] for web in webs[:2]] == [b"hello againend\n", b"againend\n"]
    assert sandbox.wait(slow["id"])["exit_code"] == 4
    events = sandbox.ask("GET", f"/commands/{slow['id']}/events").body  # and whoever listens otherwise has all of it
    assert b"hello " in events and b"again" in events
    assert WebSocket(sandbox.daemon, path).status == 409 and WebSocket(sandbox.daemon, sandbox.path("/commands/pr_none/attach")).status == 404
    running = sandbox.run("sleep 60", background=True)
    path = sandbox.path(f"/commands/{running['id']}/attach")
    webs = [WebSocket(sandbox.daemon, path) for _ in range(9)]
    assert [web.status for web in webs] == [101] * 7 + [409] * 2
    ender = WebSocket(sandbox.daemon, sandbox.path("/exec"))
    for web in webs:
        web.client.close()
    ender.client.close()
    time.sleep(0.5)
    web = WebSocket(sandbox.daemon, path + "?on_hangup=end")
    assert web.status == 101
    web.client.close()
    assert gone(sandbox, running["id"])["status"] == "cancelled"


@pytest.mark.parametrize("data, code", [
    (frame(TEXT, b"{}", mask=None), 1002), (frame(TEXT, b"{}", reserved=4), 1002), (frame(3), 1002), (frame(11), 1002), (frame(0, b"x"), 1002),
    (frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), 1002), (frame(PING, b"x" * 126), 1002), (frame(PING, fin=False), 1002),
    (b"\x81\xfe\x00\x05\0\0\0\0hello", 1002), (b"\x81\xff" + bytes(7) + b"\x05\0\0\0\0hello", 1002), (b"\x81\xff\xff" + b"\xff" * 7 + bytes(4), 1009),
    (frame(TEXT, b"\xff\xfe"), 1007), (frame(CLOSE, b"\x03"), 1002), (frame(CLOSE, b"\x03\xed"), 1002), (frame(CLOSE, b"\x03\xe8\xff"), 1007),
    (frame(TEXT, b" " * 200000), 1009), (frame(TEXT, b"x" * 100000, fin=False) + frame(0, b"x" * 100000), 1009), (frame(BINARY, b"\0x"), 1008),
    (frame(TEXT, b"[]"), 1008), (frame(TEXT, b"nonsense"), 1008), (frame(TEXT, b'{"type": "resize"}'), 1008), (frame(TEXT, b'{"type": "start"}'), 1008),
    (frame(TEXT, b'{"type": "start", "command": "x", "nope": 1}'), 1008), (frame(CLOSE), None), (frame(CLOSE, b"\x0f\xa0bye"), 4000),
    (frame(TEXT, b"[" * 100000), 1008)])
def test_who_speaks_wrongly_is_told_why(sandbox, data, code):
    web = WebSocket(sandbox.daemon, sandbox.path("/exec"), extra=data)
    assert web.status == 101 and web.close_code() == code
    if code in (1008, 4000, None):
        if code == 1008:
            web.send(CLOSE)
        web.client.settimeout(5)
        assert web.client.recv(100) == b""
    web.client.close()
    assert sandbox.run("true")["exit_code"] == 0


def test_fragments_and_pings(sandbox):
    web = WebSocket(sandbox.daemon, sandbox.path("/exec"))
    order = json.dumps({"type": "start", "command": "cat"}).encode()
    for i, byte in enumerate(order):
        web.send(TEXT if i == 0 else 0, bytes([byte]), fin=i == len(order) - 1)
        if i % 7 == 0:
            web.send(PING, bytes([i]))
            assert web.receive() == (PONG, bytes([i]))
    assert web.message()["type"] == "started"
    for byte in frame(BINARY, b"\0slowly"):  # in pieces of one byte
        web.client.sendall(bytes([byte]))
    assert web.receive() == (BINARY, b"\1slowly")
    web.tell(type="signal", signal="NOPE")
    assert web.message()["code"] == "bad_request" and web.close_code() == 1008


def test_greetings(daemon, sandbox):  # noqa: F811
    path = sandbox.path("/exec")
    for headers, status in (({"Upgrade": None}, 426), ({"Upgrade": "h2c"}, 426), ({"Connection": "close"}, 426), ({"Sec-WebSocket-Version": "8"}, 426),
                            ({"Sec-WebSocket-Key": "short"}, 400), ({"Sec-WebSocket-Key": None}, 400), ({"Sec-WebSocket-Key": "!" * 24}, 400),
                            ({"Origin": "http://evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Origin": "null"}, 403),
                            ({"Origin": f"http://127.0.0.1:{daemon.port}"}, 403)):
        web = WebSocket(daemon, path, headers=headers)
        assert web.status == status, (headers, web.head)
    # a page of ours without keys brings the token
    token = daemon.get("/v1/token").json()["token"]
    web = WebSocket(daemon, path, headers={"Origin": f"http://127.0.0.1:{daemon.port}", "Sec-WebSocket-Protocol": f"nacre.v1, nacre.token.{token}"})
    assert web.status == 101 and "Sec-WebSocket-Protocol: nacre.v1" in web.head and token not in web.head
    assert WebSocket(daemon, path, headers={"Origin": f"http://127.0.0.1:{daemon.port}", "Sec-WebSocket-Protocol": "nacre.token.0"}).status == 403
    # who says nothing is cut off
    web = WebSocket(daemon, path)
    assert web.message()["code"] == "timeout" and web.close_code() == 1008


def test_keys_tenants_and_roles(tmp_path):
    with Daemon(tmp_path) as own:
        one, two = own.key("--tenant", "one"), own.key("--tenant", "two")
        reader = own.key("--tenant", "one", "--role", "read")
        box = Sandbox(own, key=one)
        running = box.run("sleep 60", background=True)
        for path in (box.path("/exec"), box.path(f"/commands/{running['id']}/attach")):
            for key, status in ((one, 101), (two, 404), (reader, 403), (None, 401), ("nk_000000000000_" + "0" * 48, 401)):
                assert WebSocket(own, path, key=key).status == status, (path, key)
            protocol = {"Sec-WebSocket-Protocol": f"nacre.v1,nacre.key.{one}", "Origin": f"http://127.0.0.1:{own.port}"}
            assert WebSocket(own, path, headers=protocol).status == 101
            assert WebSocket(own, path, headers={**protocol, "Origin": "http://evil.example"}).status == 403
            assert WebSocket(own, path, headers={"Sec-WebSocket-Protocol": f"nacre.key.{two}"}).status == 404
        # names of protocols are keys for WebSockets only
        assert own.get(box.path(), headers={"Sec-WebSocket-Protocol": f"nacre.key.{one}"}).status == 401


def test_the_policy_reads_these_commands_too(daemon):  # noqa: F811
    strict = Sandbox(daemon, policy="strict")
    web = start(strict, "rm -rf / --no-preserve-root")
    assert web.message()["code"] == "policy" and web.close_code() == 1008
    strict.ask("DELETE")


def test_the_sandbox_goes(daemon):  # noqa: F811
    box = Sandbox(daemon)
    web, _ = begun(box, "sleep 4723")
    waiting = WebSocket(daemon, box.path("/exec"))
    box.ask("DELETE")
    assert web.until_exit()[2]["command"]["status"] == "cancelled"
    time.sleep(0.3)
    waiting.tell(type="start", command="true")
    assert waiting.message()["code"] == "no_sandbox"


def test_a_daemon_that_stops(tmp_path):
    with Daemon(tmp_path) as own:
        box = Sandbox(own)
        webs = [begun(box, "while :; do head -c 100000 /dev/zero; done")[0] for _ in range(3)] + [begun(box, "sleep 4724")[0]]
        idle = WebSocket(own, box.path("/exec"))
        began = time.monotonic()
        os.kill(own.pid, signal.SIGTERM)
        assert webs[3].close_code() == idle.close_code() == 1001
        assert own.process.wait(30) == 0 and time.monotonic() - began < 15


def test_with_tls(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem",
                    "-days", "1", "-subj", "/CN=localhost"], check=True, capture_output=True)
    with Daemon(tmp_path, "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")) as own:
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")

        class Plain:  # what makes sandboxes: the daemon's clients know no TLS
            port = own.port

            @staticmethod
            def connect(timeout=30):
                return context.wrap_socket(socket.create_connection(("127.0.0.1", own.port), timeout=timeout), server_hostname="localhost")
        own.connect = Plain.connect
        box = Sandbox(own)
        web, _ = begun(box, "cat; head -c 3000000 /dev/zero")
        for _ in range(50):
            web.input(b"x" * 60000)
        web.tell(type="end")
        out = web.until_exit()[0]
        assert len(out) == 6000000 and out.count(b"x") == 3000000
        web, identity = begun(box, "sleep 4725")
        web.client.close()
        assert gone(box, identity)["status"] == "cancelled"


def test_an_ordinary_users_daemon(programs, tmp_path_factory):
    home = tmp_path_factory.mktemp("user")
    os.chown(home, 1000, 1000)
    open_way(home)
    with Daemon(home, prefix=USER, program=programs / "nacre") as own:
        box = Sandbox(own)
        web, _ = begun(box, ["sh"])
        busy = start(box, "true")
        assert busy.message()["code"] == "busy"
        assert start(box, "tty", terminal=True).message()["code"] == "not_supported"
        assert box.ask("POST", "/commands", {"command": "tty", "terminal": True}).status == 501
        web.input(b"echo a''b; exit 5\n")
        out, _, end = web.until_exit()
        assert out == b"ab\n" and end["command"]["exit_code"] == 5
        web, identity = begun(box, "sleep 60")
        web.client.close()
        assert gone(box, identity)["state"] == "ended" and box.run("echo alive")["stdout"] == "alive\n"


def test_a_daemon_that_dies(tmp_path):
    """The command goes on, and whoever attaches to it has it again, terminal and all."""
    with Daemon(tmp_path) as own:
        box = Sandbox(own)
        web, identity = begun(box, ["sh"], terminal=True, rows=30, columns=90)
        web.input(b"echo be''gun\n")
        while b"begun" not in web.receive()[1]:
            pass
        own.die()
        with pytest.raises((EOFError, ConnectionResetError)):
            while True:
                web.receive()
        web = WebSocket(own, box.path(f"/commands/{identity}/attach"))
        assert web.message()["command"]["id"] == identity
        web.tell(type="resize", rows=41, columns=101)
        web.input(b"stty size; echo a''live; exit 6\n")
        out, _, end = web.until_exit()
        assert b"41 101" in out and b"alive" in out and end["command"]["exit_code"] == 6


def test_head_upgrades_nothing(sandbox):  # noqa: F811
    fields = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
    lines = [f"HEAD {sandbox.path('/exec')} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in fields.items())]
    with sandbox.daemon.connect(5) as client:
        client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        head = client.recv(65536)
    assert head.startswith(b"HTTP/1.1 405 ") and b"\r\nAllow: GET\r\n" in head, head
    assert sandbox.ask("POST", "/exec", {}).headers["allow"] == "GET"
    assert sandbox.daemon.ask("HEAD", "/v1/version").status == 200
