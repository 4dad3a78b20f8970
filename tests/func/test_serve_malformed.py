"""nacre serve: a hundred requests that are wrong, each with the answer that it has to get, and a daemon that goes on."""

import concurrent.futures
import json
import os
import random
import subprocess

import pytest

from serving import Answer, Daemon

GOOD = b'{"language": "python", "code": "1"}'
CLOSES = 0  # no answer: the connection ends


def request(line=b"GET /healthz HTTP/1.1", *headers, host=b"localhost", body=b""):
    lines = [line, *([b"Host: " + host] if host is not None else []), b"Connection: close", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def post(*headers, body=GOOD, path=b"/v1/execute", kind=b"application/json", length=True):
    more = [b"Content-Type: " + kind] if kind is not None else []
    if length:
        more.append(b"Content-Length: %d" % len(body))
    return request(b"POST " + path + b" HTTP/1.1", *more, *headers, body=body)


def chunked(body, *headers):
    return request(b"POST /v1/execute HTTP/1.1", b"Content-Type: application/json", b"Transfer-Encoding: chunked", *headers, body=body)


def fault(value):
    return post(body=value if isinstance(value, bytes) else json.dumps(value).encode())


def field(**members):
    return fault({"language": "python", "code": "1", **members})


# name: (bytes, statuses that are right)
CORPUS = {
    # the request line
    "empty line only": (b"\r\n\r\n", {CLOSES, 400, 408}),
    "no method": (request(b"/healthz HTTP/1.1"), {CLOSES, 400, 404, 405}),
    "no target": (request(b"GET"), {CLOSES, 400}),
    "no version": (request(b"GET /healthz"), {CLOSES, 400}),
    "version 0.9": (request(b"GET /healthz HTTP/0.9"), {CLOSES, 400, 505}),
    "version 2": (request(b"GET /healthz HTTP/2.0"), {CLOSES, 400, 505}),
    "version 3.7": (request(b"GET /healthz HTTP/3.7"), {CLOSES, 400, 505}),
    "version garbage": (request(b"GET /healthz HTTQ/1.1"), {CLOSES, 400, 505}),
    "binary": (bytes(range(256)) * 4 + b"\r\n\r\n", {CLOSES, 400}),
    "tls hello": (bytes.fromhex("16030100a5010000a10303") + b"\0" * 100 + b"\r\n\r\n", {CLOSES, 400}),
    "http2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {CLOSES, 400, 505}),
    "socks": (b"\x05\x01\x00\r\n\r\n", {CLOSES, 400}),
    "long method": (request(b"G" * 5000 + b" /healthz HTTP/1.1"), {404, 405, 400, 431, 501}),
    "unknown method": (request(b"BREW /healthz HTTP/1.1"), {405}),
    "small method": (request(b"get /healthz HTTP/1.1"), {405}),
    "trace": (request(b"TRACE /healthz HTTP/1.1"), {405}),
    "connect": (request(b"CONNECT evil.example:443 HTTP/1.1"), {400, 404, 405}),
    "method of another path": (request(b"DELETE /v1/version HTTP/1.1"), {405}),
    "put without length": (request(b"PUT /v1/jobs HTTP/1.1"), {405}),
    # the target
    "unknown path": (request(b"GET /v2/execute HTTP/1.1"), {404}),
    "slash behind": (request(b"GET /healthz/ HTTP/1.1"), {404}),
    "two slashes": (request(b"GET //healthz HTTP/1.1"), {400}),
    "dots": (request(b"GET /v1/../healthz HTTP/1.1"), {400}),
    "dots escaped": (request(b"GET /v1/%2e%2e/healthz HTTP/1.1"), {400}),
    "slash escaped": (request(b"GET /v1%2fversion HTTP/1.1"), {400}),
    "nul escaped": (request(b"GET /healthz%00 HTTP/1.1"), {400}),
    "nul": (request(b"GET /heal\0thz HTTP/1.1"), {CLOSES, 400, 404}),
    "bad escape": (request(b"GET /healthz%zz HTTP/1.1"), {400}),
    "backslash": (request(b"GET \\healthz HTTP/1.1"), {400}),
    "absolute form": (request(b"GET http://evil.example/healthz HTTP/1.1"), {400}),
    "star": (request(b"GET * HTTP/1.1"), {400}),
    "no slash": (request(b"GET healthz HTTP/1.1"), {400}),
    "high bytes": (request(b"GET /h\xffalthz HTTP/1.1"), {400}),
    "long part": (request(b"GET /v1/jobs/" + b"a" * 500 + b" HTTP/1.1"), {404}),
    "long target": (request(b"GET /v1/history?since=" + b"a" * 9000 + b" HTTP/1.1"), {414}),
    "target of 64 KiB": (request(b"GET /" + b"a" * 65536 + b" HTTP/1.1"), {414, 431, 413}),
    "id of an attacker": (request(b"GET /v1/jobs/'OR'1 HTTP/1.1"), {400}),
    # the query
    "limit is no number": (request(b"GET /v1/history?limit=x HTTP/1.1"), {400}),
    "limit is negative": (request(b"GET /v1/history?limit=-1 HTTP/1.1"), {400}),
    "limit is huge": (request(b"GET /v1/history?limit=99999999999999999999 HTTP/1.1"), {400}),
    "before is a float": (request(b"GET /v1/history?before=1.5 HTTP/1.1"), {400}),
    "since is nothing": (request(b"GET /v1/history?since=yesterday HTTP/1.1"), {400}),
    "since is sql": (request(b"GET /v1/history?since=2026'%20OR%201=1-- HTTP/1.1"), {400}),
    "status is sql": (request(b"GET /v1/history?status=x'%20OR%20'1'='1 HTTP/1.1"), {200}),
    "state is none": (request(b"GET /v1/jobs?state=asleep HTTP/1.1"), {400}),
    "timeout is no number": (request(b"GET /v1/jobs/x/wait?timeout=soon HTTP/1.1"), {404}),
    "head is none": (request(b"GET /v1/audit/verify?head=1:00 HTTP/1.1"), {400}),
    # the headers
    "no host": (request(host=None), {400}),
    "two hosts": (request(b"GET /healthz HTTP/1.1", b"Host: localhost"), {400}),
    "empty host": (request(host=b""), {400, 403}),
    "foreign host": (request(b"GET /v1/version HTTP/1.1", host=b"evil.example"), {403}),
    "header without colon": (request(b"GET /healthz HTTP/1.1", b"NoColonHere"), {CLOSES, 400, 200}),
    "blank before colon": (request(b"GET /healthz HTTP/1.1", b"X-A : 1"), {CLOSES, 400, 200}),
    "folded header": (request(b"GET /healthz HTTP/1.1", b"X-A: 1\r\n 2"), {CLOSES, 400, 200}),
    "empty name": (request(b"GET /healthz HTTP/1.1", b": 1"), {CLOSES, 400, 200}),
    "nul in a value": (request(b"GET /healthz HTTP/1.1", b"X-A: a\0b"), {CLOSES, 400, 200}),
    "101 headers": (request(b"GET /healthz HTTP/1.1", *(b"X-%d: 1" % i for i in range(101))), {431}),
    "header of 17 KiB": (request(b"GET /healthz HTTP/1.1", b"X-A: " + b"a" * 17000), {431}),
    "header of 1 MiB": (request(b"GET /healthz HTTP/1.1", b"X-A: " + b"a" * (1 << 20)), {431, CLOSES}),
    "bare line feeds": (b"GET /healthz HTTP/1.1\nHost: localhost\nConnection: close\n\n", {200, 400}),
    "bad event": (request(b"GET /v1/jobs/x/events HTTP/1.1", b"Last-Event-ID: minus"), {404}),
    "two keys": (request(b"GET /v1/version HTTP/1.1", b"X-API-Key: a", b"X-API-Key: b"), {400}),
    # the length of the body
    "no length": (post(length=False), {411}),
    "negative length": (post(b"Content-Length: -1", length=False), {CLOSES, 400}),
    "signed length": (post(b"Content-Length: +35", length=False), {CLOSES, 400}),
    "length in hex": (post(b"Content-Length: 0x23", length=False), {CLOSES, 400}),
    "length is a word": (post(b"Content-Length: long", length=False), {CLOSES, 400}),
    "length too long": (post(b"Content-Length: 99999999999999999999999", length=False), {CLOSES, 400, 413}),
    "two lengths": (post(b"Content-Length: 1"), {400}),
    "same length twice": (post(b"Content-Length: %d" % len(GOOD)), {400}),
    "length list": (post(b"Content-Length: 35, 35", length=False), {CLOSES, 400}),
    "length and chunks": (post(b"Transfer-Encoding: chunked"), {400}),
    "unknown encoding": (post(b"Transfer-Encoding: gzip", length=False), {400, 501}),
    "chunked and more": (post(b"Transfer-Encoding: chunked, identity", length=False), {400, 501}),
    "encoding twice": (chunked(b"0\r\n\r\n", b"Transfer-Encoding: chunked"), {400}),
    "chunked in 1.0": (b"POST /v1/execute HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "larger than it may": (request(b"POST /v1/policy/analyse HTTP/1.1", b"Content-Type: application/json", b"Content-Length: 2097153"), {413}),
    "body for a get": (request(b"GET /healthz HTTP/1.1", b"Content-Length: 5", body=b"hello"), {413}),
    "chunk size is no number": (chunked(b"xyz\r\nabc\r\n0\r\n\r\n"), {CLOSES, 400}),
    "chunk size is negative": (chunked(b"-5\r\nabc\r\n0\r\n\r\n"), {CLOSES, 400}),
    "chunk size overflows": (chunked(b"ffffffffffffffffffff\r\nabc\r\n0\r\n\r\n"), {CLOSES, 400, 413}),
    "chunk too short": (chunked(b"2\r\nabcdef\r\n0\r\n\r\n"), {CLOSES, 400}),
    "empty body": (post(body=b""), {400}),
    # the body
    "not json": (fault(b"hello"), {400}),
    "cut json": (fault(b'{"language": "python"'), {400}),
    "two values": (fault(b"{}{}"), {400}),
    "a list": (fault([]), {400}),
    "null": (fault(b"null"), {400}),
    "a key twice": (fault(b'{"language":"python","language":"shell","code":"1"}'), {400}),
    "deep": (fault(b"[" * 5000), {400}),
    "deep objects": (fault(b'{"a":' * 100 + b"1" + b"}" * 100), {400}),
    "many values": (fault(b'{"labels":[' + b",".join([b"1"] * 50000) + b"]}"), {400}),
    "bad utf-8": (fault(b'{"language":"python","code":"\xff\xfe"}'), {400}),
    "nul in code": (fault(b'{"language":"python","code":"a\\u0000b"}'), {400}),
    "lone surrogate": (fault(b'{"language":"python","code":"\\ud800"}'), {400}),
    "nan": (fault(b'{"language":"python","code":"1","timeout":NaN}'), {400}),
    "huge number": (fault(b'{"language":"python","code":"1","timeout":1e999}'), {400}),
    "no code": (fault({"language": "python"}), {400}),
    "unknown language": (fault({"language": "cobol", "code": "1"}), {400}),
    "unknown field": (field(sudo=True), {400}),
    "negative timeout": (field(timeout=-5), {400}),
    "path that leaves": (field(files=[{"path": "../../etc/passwd", "content": "x"}]), {400}),
    "tenant of another": (field(tenant="other"), {403}),
    "not the type": (post(kind=b"text/plain"), {415}),
    "no type": (post(kind=None), {415}),
    "bad idempotency key": (post(b"Idempotency-Key: " + b"k" * 256), {400}),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("malformed")) as daemon:
        yield daemon
    assert daemon.code == 0


def test_there_are_a_hundred():
    assert len(CORPUS) >= 100


@pytest.mark.parametrize("name", CORPUS)
def test_answer(daemon, name):
    data, right = CORPUS[name]
    raw = daemon.raw(data, timeout=20, half_close="cut" in name)
    status = Answer(raw).status if raw else CLOSES
    assert status in right, raw[:300]
    answer = Answer(raw) if raw else None
    if answer and status >= 400 and answer.headers.get("content-type", "").startswith("application/problem+json"):
        problem = answer.json()
        assert problem["status"] == status and problem["code"] and "remedy" in problem
    elif answer and status >= 400:
        assert "x-request-id" not in answer.headers  # libmicrohttpd's own
    # whatever it was, others are served
    assert daemon.get("/healthz").status == 200


def test_smuggling(daemon):
    """Two requests in one must not come out of what is one."""
    inner = b"GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n"
    raw = daemon.raw(request(b"POST /v1/policy/analyse HTTP/1.1", b"Content-Type: application/json", b"Content-Length: 4",
                             b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + inner))
    assert raw.count(b"HTTP/1.1 ") == 1 and Answer(raw).status == 400


def test_fuzzed(daemon):
    """Good requests with bytes changed, put in, left out: an answer or an end, and a daemon that goes on."""
    chance = random.Random(int(os.environ.get("NACRE_FUZZ_SEED", "6")))
    seeds = [post(), request(b"GET /v1/history?limit=3 HTTP/1.1"), chunked(b"23\r\n" + GOOD + b"\r\n0\r\n\r\n")]
    broken = []
    for _ in range(300):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            kind = chance.randrange(3)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 20)))
            else:
                del data[at:at + chance.randint(1, 20)]
        broken.append(data)

    def send(data):
        with daemon.connect(15) as client:
            try:
                client.sendall(data)
                client.shutdown(1)
                while client.recv(65536):
                    pass
            except OSError:
                pass

    # some are waited for until their head is late: all at once
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        list(pool.map(send, broken))
    assert daemon.get("/healthz").status == 200
    assert daemon.process.poll() is None
    worker = subprocess.run(["ps", "-o", "rss=", "-p", str(daemon.pid)], capture_output=True, text=True).stdout
    assert int(worker) < 64 * 1024
