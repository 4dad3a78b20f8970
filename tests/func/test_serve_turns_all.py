"""nacre serve: each route of the table takes what is hard to read, of the largest size that it allows, in turns of at most 20 ms."""

import io
import json
import pathlib
import re
import tarfile

import pytest

from serving import Daemon
from test_serve_turns import INSTRUMENTED, MIB, quick
from websocket import BINARY, TEXT, WebSocket

pytestmark = pytest.mark.skipif(INSTRUMENTED, reason="instrumented code is slower than what is measured")

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPENAPI = json.loads((ROOT / "docs/openapi.json").read_text())
SENT_MAX = 96 * MIB  # of the one route that takes more
TEXT_MAX = 128 * 1024  # a message of a WebSocket


def number_of(words, names):
    """The value of a maximum as C has it: products and sums of numbers and of other names."""
    while re.search(r"[A-Z]\w+", re.sub(r"\b\d+U?L*\b", "", words)):
        words = re.sub(r"\bNC_\w+\b|\b[A-Z]\w+_MAX\b", lambda found: f"({names[found[0]]})", words)
    return eval(re.sub(r"(\d)U?L*\b", r"\1", words), {"__builtins__": {}})  # only digits and operators are left


def routes():
    """(method, path, maximum of the body, whether it is a WebSocket) of each route there is."""
    source = (ROOT / "src/server/rest/routes.c").read_text()
    names = dict(re.findall(r"^#define (\w+) (.+?)(?: /\*.*)?$", (ROOT / "src/base/limits.h").read_text() + source, re.M))
    rows = re.findall(r'\{"([A-Z]+)",\s*"([^"]+)",\s*\w+,\s*([^,]+),\s*([^,]+),\s*\w+\}', source)
    assert len(rows) == source.count("nc_rest_")
    return [(method, path, number_of(maximum, names), "SOCKET" in flags) for method, path, flags, maximum in rows]


def schema_of(method, path):
    schema = OPENAPI["paths"][path][method.lower()].get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def filled(n, before, piece, after=b""):
    """As many pieces as n bytes have room for."""
    return before + piece * ((n - len(before) - len(after)) // len(piece)) + after


def forms(n, schema):
    """Bodies of n bytes at most that are hard to read: by their form, and as a value of each field that the route knows."""
    yield "deep", filled(n, b"", b"[")
    yield "deep pairs", filled(n, b"", b'{"a":')
    yield "nested values", filled(n, b'{"a":[', b'[[[["a",{"b":[]}]]]],', b"1]}")
    yield "commas", filled(n, b"[", b",")
    yield "numbers", filled(n, b"[1", b",1", b"]")
    yield "a long number", filled(n, b"", b"7")
    yield "blanks", filled(n, b"", b" ", b"{}")
    yield "no UTF-8", filled(n, b'{"a":"', b"\xff", b'"}')
    yield "garbage", filled(n, b"", bytes(range(256)))
    fields = [(f"{i:x}".encode() + b"y" * 40) for i in range(min(30000, n // 60))]
    yield "unknown fields", b"{" + b",".join(b'"%s":1' % field for field in fields) + b"}"
    yield "one name twice", filled(n, b'{"a":1', b',"a":1', b"}")
    for name in schema.get("properties", {}):
        start = f'{{"{name}":'.encode()
        yield f"{name}: a text", filled(n, start + b'"', b"x", b'"}')
        yield f"{name}: escapes", filled(n, start + b'"', b"\\u0041", b'"}')
        yield f"{name}: a list", filled(min(n, 190000), start + b'["a"', b',"a"', b"]}")
        pairs = b",".join(b'"k%d":"v"' % i for i in range(min(15000, n // 16)))
        yield f"{name}: an object", start + b"{" + pairs + b"}}"


def archive(n):
    """Very many small members, some with names of their longest."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        while out.tell() < n - 8192:
            tar.addfile(tarfile.TarInfo(f"d/{'n' * (out.tell() % 240)}{out.tell()}"))
    return out.getvalue()


class Driver:
    """A daemon with one of everything, and what was sent to it."""

    def __init__(self, daemon):
        self.daemon, self.driven = daemon, set()
        self.execution = daemon.execute("print('x' * 30000000)", labels={f"k{i}": "v" * 200 for i in range(16)}).json()["id"]
        self.job = daemon.post("/v1/jobs", {"language": "shell", "code": "true"}).json()["id"]
        self.begin()
        self.snapshot = daemon.post(f"/v1/sandboxes/{self.sandbox}/snapshots", {}).json()["id"]

    def begin(self):
        made = self.daemon.post("/v1/sandboxes", {"limits": {"memory_mb": 128, "disk_mb": 256}})
        assert made.status == 201, made.body
        self.sandbox = made.json()["id"]
        self.command = self.start({"command": "exec cat >/dev/null", "keep_input": True})

    def start(self, request):
        answer = self.daemon.post(f"/v1/sandboxes/{self.sandbox}/commands", {**request, "background": True})
        assert answer.status in (201, 202), answer.body
        return answer.json()["id"]

    def path(self, path):
        kind = path.split("/")[2] if path.count("/") > 1 else ""
        identity = {"jobs": self.job, "history": self.execution, "snapshots": self.snapshot}.get(kind, self.sandbox)
        return path.replace("{id}", identity).replace("{command}", self.command).replace("{which}", "stdout")

    def send(self, method, path, what, body=None, query="", kind="application/json", refused=(503,)):
        """Whatever it is, it is answered in short turns."""
        target = self.path(path) + query
        answer = quick(self.daemon, f"{method} {path} {what}",
                       lambda: self.daemon.ask(method, target, body, timeout=240, headers={"Content-Type": kind} if body is not None else None))
        assert 200 <= answer.status < 500 or answer.status in refused, (method, path, what, answer.body[:500])
        self.driven.add((method, path))
        return answer


def drive_body(drive, method, path, maximum):
    schema, n = schema_of(method, path), min(maximum, SENT_MAX) - 64
    kind = next(iter(OPENAPI["paths"][path][method.lower()]["requestBody"]["content"]))
    for name, body in forms(n, schema):
        drive.send(method, path, name, body, "?path=/workspace/a" if method == "PUT" else "", kind)
        if drive.daemon.get(drive.path("/v1/sandboxes/{id}/commands/{command}")).json().get("state") != "running":
            drive.command = drive.start({"command": "exec cat >/dev/null", "keep_input": True})
    if path.endswith("/archive"):
        drive.send(method, path, "many members", archive(16 * MIB), "?path=/workspace/b", kind)


def drive_socket(drive, path):
    """A first message of each form; the closing of the connection is the answer."""
    def meet(kind, data):
        client = WebSocket(drive.daemon, drive.path(path))
        assert client.status == 101, client.head
        client.send(kind, data)
        try:
            while client.receive()[0] != 8:
                pass
        except (EOFError, ConnectionResetError):
            pass
        client.client.close()

    n = TEXT_MAX - 1024
    for name, data in forms(n, schema_of("POST", "/v1/sandboxes/{id}/commands")):
        quick(drive.daemon, f"{path} {name}", lambda: meet(TEXT, data))
    for field in ("command", "env", "a"):
        quick(drive.daemon, f"{path} nested {field}", lambda: meet(TEXT, filled(n, b'{"type":"start","%s":[' % field.encode(), b'[[[["a",{"b":[]}]]]],', b"1]}")))
    quick(drive.daemon, f"{path} brackets", lambda: meet(TEXT, json.dumps({"type": "start", "command": "$(" * (n // 2 - 64)}).encode()))
    quick(drive.daemon, f"{path} data", lambda: meet(BINARY, b"\1" * n))
    drive.driven.add(("GET", path))


def drive_watch(drive, path):
    """Some thousand things happen in a directory that is watched."""
    def read():
        with drive.daemon.connect(60) as client:
            client.sendall(f"GET {drive.path(path)}?path=/workspace HTTP/1.1\r\nHost: 127.0.0.1:{drive.daemon.port}\r\n\r\n".encode())
            data, begun = b"", False
            while b"the-last-one" not in data:
                piece = client.recv(1 << 16)
                assert piece, data[-500:]
                data += piece
                if b"event: ready" in data and not begun:
                    begun = bool(drive.start({"command": "seq 3000 | xargs touch; rm -f *; touch the-last-one"}))
            return data
    assert b"event: created" in quick(drive.daemon, path, read)
    drive.driven.add(("GET", path))


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("all"), "--no-warm") as daemon:
        daemon.ask("GET", "/readyz")
        yield Driver(daemon)


def test_every_route(drive):
    """What is deleted comes last, and what ends a sandbox is followed by another one."""
    table = sorted(routes(), key=lambda row: row[0] == "DELETE")
    for method, path, maximum, is_socket in table:
        if drive.daemon.get(drive.path("/v1/sandboxes/{id}")).status != 200:
            drive.begin()
        if is_socket:
            drive_socket(drive, path)
        elif path.endswith("/watch"):
            drive_watch(drive, path)
        elif maximum:
            drive_body(drive, method, path, maximum)
        else:
            if path.endswith("/events") and "{command}" in path:
                drive.command = drive.start({"command": "seq 300000"})  # it ends, and with it the stream
            for query in ("", "?path=/" + "a/" * 7000, "?" + "&".join(f"{name}={'%41' * 300}" for name in ("after", "label", "since", "state", "limit", "path", "from", "to"))):
                drive.send(method, path, query[:20], query=query)
    assert drive.driven == {(method, path) for method, path, *_ in table}
