"""Values of secrets: the daemon forgets them, and what a host sends back of them is masked."""

import base64
import gzip
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from serving import Daemon

VALUE = "pearl/5\"and \\more+of-it"
OTHER = "s3cr3t-" + "0123456789abcdef" * 8


class Echo(http.server.ThreadingHTTPServer):
    """Sends back what it was sent, in the way that the path names."""

    def __init__(self):
        echo = self
        self.heads = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                echo.heads.append(dict(self.headers))
                sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
                data = echo.spell(self.path[1:], sent)
                self.send_response(200)
                self.send_header("X-Sent", sent)
                if self.path == "/gzip":
                    data = gzip.compress(data)
                    self.send_header("Content-Encoding", "gzip")
                if self.path == "/chunks":
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for byte in data:
                        self.wfile.write(b"1\r\n%c\r\n" % byte)
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                    return
                if self.path == "/slowly":
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    for at in range(0, len(data), 3):
                        self.wfile.write(data[at:at + 3])
                        self.wfile.flush()
                        time.sleep(0.01)
                    return
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.3", 0), Handler)
        self.name = f"127.0.0.3:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @staticmethod
    def spell(how, sent):
        spelt = {"base64": lambda: base64.b64encode(b"user:" + sent.encode()).decode(), "hex": lambda: sent.encode().hex(),
                 "url": lambda: urllib.parse.quote(sent, safe=""), "json": lambda: json.dumps({"sent": sent})}.get(how, lambda: sent)()
        return f"before {spelt} behind".encode()


@pytest.fixture(scope="module")
def echo():
    made = Echo()
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, echo):
    home = tmp_path_factory.mktemp("secrets")
    (home / "config").mkdir()
    (home / "config/nacre.yaml").write_text("log:\n  level: info\n")
    (home / "config/security_policies.yaml").write_text(f"network:\n  inner: ['{echo.name}']\n")
    for path in (home, home / "config"):
        path.chmod(0o755)
    with Daemon(home, config=home / "config") as made:
        yield made


CODE = """
import os, urllib.request, urllib.error
def ask(how):
    request = urllib.request.Request('http://HOST/' + how, headers={'Authorization': 'Bearer ' + os.environ['TOKEN'], 'Range': 'bytes=0-9', 'Accept-Encoding': 'gzip'})
    try:
        reply = urllib.request.urlopen(request, timeout=20)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), ''
    return reply.status, reply.read().decode(), reply.headers['X-Sent']
"""


def run(daemon, echo, code, value=VALUE, **more):
    terms = {"value": value, "host": echo.name, "plain": True, **more}
    answer = daemon.execute(CODE.replace("HOST", echo.name) + code, network={"allow": [echo.name]}, secrets={"TOKEN": terms})
    assert answer.status == 200, answer.body
    return answer.json()


def where(pid, needles):
    """The mappings of a process in which one of the texts stands."""
    found = []
    for line in open(f"/proc/{pid}/maps"):
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if "r" not in line.split()[1] or "[v" in line:
            continue
        try:
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                memory.seek(first)
                data = memory.read(last - first)
        except (OSError, ValueError, OverflowError):
            continue
        for needle in needles:
            found += [(line.strip(), hex(first + match.start()), data[max(0, match.start() - 40):match.end() + 20])
                      for match in re.finditer(re.escape(needle), data)]
    return found


def forgotten(daemon, value):
    """Nothing of it is left in the daemon, nor in who holds and analyses for it, after a moment."""
    needles = [value.encode(), json.dumps(value)[1:-1].encode()]
    until = time.monotonic() + 3
    while True:
        found = where(daemon.pid, needles)
        if not found:
            break
        assert time.monotonic() < until, found
        time.sleep(0.2)
    for pid in (daemon.process.pid, daemon.aides()["analyst"], daemon.aides()["recorder"]):
        assert where(pid, needles) == []


def test_what_comes_back_is_masked(daemon, echo):
    """As it is, in encodings, in the head, in chunks of one byte and slowly."""
    code = "for how in ('plain', 'base64', 'hex', 'url', 'json', 'chunks', 'slowly'): print(*ask(how))"
    echo.heads.clear()
    reply = run(daemon, echo, code)
    lines = reply["output"].splitlines()
    assert len(lines) == 7, reply
    for line, how in zip(lines, ("plain", "base64", "hex", "url", "json", "chunks", "slowly")):
        assert "before" in line and "behind" in line and "****" in line, (how, line)
        spelt = Echo.spell(how, VALUE).decode().split(" ", 1)[1].rsplit(" ", 1)[0]
        assert spelt not in line and VALUE not in line, (how, line)
        assert len(line) == len(f"200 before {spelt} behind {VALUE}"), (how, line)
    assert {head["Authorization"] for head in echo.heads} == {f"Bearer {VALUE}"}  # the host got it
    assert {head["Accept-Encoding"] for head in echo.heads} == {"identity"} and not any("Range" in head for head in echo.heads)
    denials = [denial for denial in reply["denials"] if denial["id"] == "network.masked"]
    assert denials and denials[0]["count"] == 7 and denials[0]["layer"] == "egress", reply["denials"]
    history = daemon.get(f"/v1/history/{reply['id']}/stdout").body.decode()
    assert VALUE not in history and "****" in history
    assert VALUE not in json.dumps(reply)


def test_what_cannot_be_searched_is_refused(daemon, echo):
    reply = run(daemon, echo, "print(*ask('gzip'))")
    assert "network.unsearchable" in reply["output"] and reply["output"].startswith("403 "), reply["output"]
    assert "network.unsearchable" in {denial["id"] for denial in reply["denials"]}


def test_masking_can_be_left_out(daemon, echo):
    reply = run(daemon, echo, "print(*ask('plain'))", mask=False)
    assert VALUE in reply["output"] and reply["denials"] == []
    answer = daemon.execute("1", network={"allow": [echo.name]}, secrets={"T": {"value": "abc", "host": echo.name, "plain": True}})
    assert answer.status == 400 and "cannot be masked" in answer.json()["detail"]
    assert run(daemon, echo, "print(*ask('plain'))", value="abc", mask=False)["output"].endswith("abc\n")


def test_a_value_that_is_refused_is_not_repeated(daemon, echo):
    answer = daemon.execute("1", network={"allow": [echo.name]}, secrets={"T": {"value": "line\nof a key", "host": echo.name}})
    assert answer.status == 400 and b"of a key" not in answer.body


@pytest.mark.parametrize("size", (0, 300_000, 9_000_000))
def test_executions_are_forgotten(daemon, echo, as_root, size):
    """While it runs, and after it: bodies of some bytes, those that a thread reads, and those that wait in a file."""
    value = f"{size}-{OTHER}"
    files = {"data.txt": "x" * size} if size else {}
    body = {"language": "python", "code": CODE.replace("HOST", echo.name) + "print(*ask('plain'))\nimport time; time.sleep(6)", "files": files,
            "network": {"allow": [echo.name]}, "secrets": {"TOKEN": {"value": value, "host": echo.name, "plain": True}}}
    # a connection that stays open, as those of most clients do
    with daemon.connect() as client:
        data = json.dumps(body).encode()
        client.sendall(f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        time.sleep(3)
        forgotten(daemon, value)
        assert where(daemon.pid, [b"import time; time.sleep(6)"])  # that is found which is there
        assert b'"success"' in client.recv(1 << 20)
        forgotten(daemon, value)
    assert any(head["Authorization"] == f"Bearer {value}" for head in echo.heads)


def test_chunked_bodies_are_forgotten(daemon, echo, as_root):
    value = f"chunked-{OTHER}"
    body = json.dumps({"language": "python", "code": "print(1)", "network": {"allow": [echo.name]},
                       "secrets": {"TOKEN": {"value": value, "host": echo.name, "plain": True}}}).encode()
    with daemon.connect() as client:
        client.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 50):
            client.sendall(b"%x\r\n%s\r\n" % (len(body[at:at + 50]), body[at:at + 50]))
        client.sendall(b"0\r\n\r\n")
        assert b'"success"' in client.recv(1 << 20)
        forgotten(daemon, value)


def test_sandboxes_are_forgotten(daemon, echo, as_root):
    """And the next daemon goes on with them, and lists can be changed, though nobody here knows the value."""
    value = f"box-{OTHER}"
    made = daemon.post("/v1/sandboxes", {"network": {"allow": [echo.name]}, "secrets": {"TOKEN": {"value": value, "host": echo.name, "plain": True}}})
    assert made.status == 201, made.body
    box = made.json()["id"]

    def asks():
        done = daemon.post(f"/v1/sandboxes/{box}/commands", {"command": ["python3", "-c", CODE.replace("HOST", echo.name) + "print(*ask('plain'))"]}).json()
        return done.get("stdout") or done.get("output") or json.dumps(done)
    assert "before *****" in asks()
    forgotten(daemon, value)
    changed = daemon.post(f"/v1/sandboxes/{box}/network", {"allow": [echo.name], "max_requests": 50})
    assert changed.status in (200, 204), changed.body
    assert "before *****" in asks()
    daemon.die()
    assert "before *****" in asks()
    forgotten(daemon, value)
    assert echo.heads[-1]["Authorization"] == f"Bearer {value}"
    assert daemon.ask("DELETE", f"/v1/sandboxes/{box}").status in (200, 204)
    time.sleep(1)
    forgotten(daemon, value)
    assert where(daemon.aides()["egress"], [value.encode()]) == []


def test_bodies_in_tls_are_forgotten(tmp_path, echo, as_root):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    (tmp_path / "config").mkdir()
    (tmp_path / "config/security_policies.yaml").write_text(f"network:\n  inner: ['{echo.name}']\n")
    for path in (tmp_path, tmp_path / "config"):
        path.chmod(0o755)
    value = f"tls-{OTHER}"
    body = json.dumps({"language": "python", "code": "print(1)", "network": {"allow": [echo.name]}, "files": {"data.txt": "x" * 40_000},
                       "secrets": {"TOKEN": {"value": value, "host": echo.name, "plain": True}}}).encode()
    with Daemon(tmp_path, "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"), config=tmp_path / "config") as daemon:
        with context.wrap_socket(daemon.connect(), server_hostname="localhost") as client:
            client.sendall(f"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            assert b'"success"' in client.recv(1 << 20)
            forgotten(daemon, value)  # while the connection stays
