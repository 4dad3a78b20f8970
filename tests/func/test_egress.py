"""The one door to the network, attacked: what is judged is what is dialled, and nothing else gets through."""

import contextlib
import ctypes
import os
import re
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import BUILD
from egresswire import (ASK, CHANGE, EGRESS_ID, HELLO, METER, OPEN, VERSION, Egress, Host, NameServer, answer, connect, echo,
                        get, inner, listen, ok, read_all, read_head, read_reply, rule, secret, status, talk, terms,
                        wait_for)
from serving import descriptors
from wire import plain_message as message

A, CNAME, AAAA = NameServer.A, NameServer.CNAME, NameServer.AAAA
PUBLIC = "93.184.216.34"


@pytest.fixture
def hosts():
    """Where the user of nacre-egress can read it, too."""
    with tempfile.NamedTemporaryFile("w", prefix="nacre-hosts-") as file:
        file.write("# names of this test\n127.0.0.1 localhost good.test other.test sub.good.test  # here\n::1 six.test\nx y\n")
        file.flush()
        os.chmod(file.name, 0o644)
        yield file.name


@pytest.fixture
def egress(hosts):
    door = Egress(hosts=hosts).hello()
    yield door
    status_, errors = door.close()
    assert (status_, errors) == (0, "")


@pytest.fixture
def web():
    host = Host(answer(ok()))
    yield host
    host.close()


@pytest.fixture
def mirror():
    host = Host(echo)
    yield host
    host.close()


def head_of(method, target, host, *fields, version="HTTP/1.1"):
    lines = [f"{method} {target} {version}", *([f"Host: {host}"] if host else []), *fields]
    return "\r\n".join([*lines, "", ""]).encode()


# ---- what is listed ----

def test_what_is_listed_is_let_through_and_nothing_else(egress, web):
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    assert status(get(port, f"http://good.test:{web.port}/x?y=z")) == 200
    assert web.seen == [f"GET /x?y=z HTTP/1.1\r\nHost: good.test:{web.port}\r\nConnection: close\r\n\r\n".encode()]
    for url in (f"http://other.test:{web.port}/", f"http://sub.good.test:{web.port}/", f"http://xgood.test:{web.port}/",
                f"http://good.test.evil:{web.port}/", f"http://127.0.0.1:{web.port}/", "http://good.test/",
                "http://good.test:22/"):
        reply = get(port, url)
        assert status(reply) == 403, url
        assert b'"remedy":"' in reply
    assert len(web.seen) == 1
    assert egress.reasons() == ["allowed"] + ["not-listed"] * 4 + ["literal"] + ["port"] * 2


def test_nothing_listed_means_nothing(egress, web):
    port = egress.open()
    assert status(get(port, f"http://good.test:{web.port}/")) == 403
    _, line = connect(port, f"good.test:{web.port}")
    assert line == "HTTP/1.1 403 Forbidden"
    assert not web.seen


def test_a_wildcard_is_whole_labels_below(egress, web):
    port = egress.open(rules=inner(f"*.good.test:{web.port}"))
    assert status(get(port, f"http://sub.good.test:{web.port}/")) == 200
    for name in ("good.test", "xgood.test", "sub.good.test.evil"):
        assert status(get(port, f"http://{name}:{web.port}/")) == 403, name


def test_deny_beats_allow_whatever_the_order(egress, web):
    both = [rule("*.good.test", deny=True), *inner(f"sub.good.test:{web.port}", f"good.test:{web.port}")]
    for box, rules in enumerate((both, both[::-1]), 1):
        port = egress.open(box, rules=rules)
        assert status(get(port, f"http://good.test:{web.port}/")) == 200
        assert status(get(port, f"http://sub.good.test:{web.port}/")) == 403
        _, line = connect(port, f"sub.good.test:{web.port}")
        assert " 403 " in line
    assert "denied" in egress.reasons()


def test_methods_and_paths_of_plain_http(egress, web):
    port = egress.open(rules=[rule(f"good.test:{web.port}", inner=True, methods=["GET"], paths=["/api", "/files/"])])
    url = f"http://good.test:{web.port}"
    for path in ("/api", "/api/", "/api/x", "/api?x", "/files/a"):
        assert status(get(port, url + path)) == 200, path
    for path in ("/apix", "/", "/files", "/api/../secret", "/api/%2e%2e/secret", "/api/..%2fsecret", "/api//x", "/api/./x",
                 "/api\\..\\x", "//api", "/api/%252e%252e/x", "/api/..;/secret", "/api/%2E./x", "/api/%00"):
        assert status(get(port, url + path)) == 403, path
    assert status(get(port, url + "/api", method="POST", head="Content-Length: 0\r\n")) == 403
    assert status(get(port, url + "/api", method="PROPFIND")) == 403
    _, line = connect(port, f"good.test:{web.port}")
    assert " 403 " in line
    assert set(egress.reasons()) == {"allowed", "path", "method", "plain-only"}


def test_a_denied_path_denies_what_may_hide_it(egress, web):
    rules = [*inner(f"good.test:{web.port}"), rule("good.test", deny=True, paths=["/admin"])]
    port = egress.open(rules=rules)
    url = f"http://good.test:{web.port}"
    assert status(get(port, url + "/public")) == 200
    for path in ("/admin", "/admin/x", "/public/../admin", "/%61dmin/../x", "//admin"):
        assert status(get(port, url + path)) == 403, path
    _, line = connect(port, f"good.test:{web.port}")
    assert " 403 " in line


SPELLINGS = ["127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.0.0.01", "0",
             "127.0.0.1.", "0x7f.0.0.0x1", "%31%32%37.0.0.1", "127.0.0.1%00", "127%2e0.0.1", "[::ffff:0x7f.1]",
             "[::1%25lo]", "[fe80::1%lo]", "::1", "user@127.0.0.1", "good.test@127.0.0.1", "127.0.0.1#@good.test",
             "127.0.0.1\\@good.test", "good.test:80@127.0.0.1", "good..test", "-good.test", "good_.test",
             "\u2460\u2461\u2466.0.0.1", "127\u30020.0.1", "b\u00fccher.test"]
LISTED_NOWHERE = ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
                  "[2002:7f00:1::]", "[::]", "0.0.0.0", "169.254.169.254", "[fd00:ec2::254]", "localhost", "LOCALHOST."]


@pytest.mark.parametrize("spelling", SPELLINGS + LISTED_NOWHERE)
def test_addresses_in_every_spelling(egress, web, spelling):
    """Everything is listed by name that could be; no spelling of an address gets through as one."""
    port = egress.open(rules=inner(f"good.test:{web.port}", f"*.0.test:{web.port}"))
    target = f"{spelling}:{web.port}"
    for data in (f"GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n",
                 f"GET http://{target}/ HTTP/1.1\r\nHost: good.test:{web.port}\r\n\r\n",
                 f"GET http://good.test:{web.port}/ HTTP/1.1\r\nHost: {target}\r\n\r\n",
                 f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"):
        assert status(talk(port, data.encode())) in (400, 403)
    assert socks(port, spelling.encode(), web.port)[:2] == b"\x05\x02"
    assert not web.seen


def test_an_address_that_is_listed_is_dialled(egress, web):
    port = egress.open(rules=[rule(f"127.0.0.1:{web.port}")])
    assert status(get(port, f"http://127.0.0.1:{web.port}/")) == 200
    assert status(get(port, f"http://[::ffff:127.0.0.1]:{web.port}/")) == 403
    assert status(get(port, f"http://127.0.0.2:{web.port}/")) == 403
    # a name that leads there is something else
    assert status(get(port, f"http://good.test:{web.port}/")) == 403
    assert egress.reasons() == ["allowed", "literal", "literal", "not-listed"]
    assert egress.decisions[0]["address"] == "127.0.0.1"


# ---- names that lead inside ----

def test_names_that_lead_inside_are_refused(egress, web):
    port = egress.open(rules=[rule(f"good.test:{web.port}"), rule("six.test:80"), rule("localhost:80")])
    for name in (f"good.test:{web.port}", "six.test:80", "localhost:80"):
        assert status(get(port, f"http://{name}/")) == 403
        _, line = connect(port, name)
        assert " 403 " in line
    assert egress.reasons() == ["private"] * 6
    assert egress.decisions[0]["address"] == "127.0.0.1"
    assert not web.seen


@pytest.mark.parametrize("inside", [
    "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "127.0.0.1", "127.255.0.1", "169.254.169.254", "0.0.0.0",
    "0.1.2.3", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.88.99.1", "::1", "::", "::ffff:10.0.0.1",
    "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "2001:db8::1",
    "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "3fff::1", "100::1", "2001:20::1"])
def test_answers_that_lead_inside(inside):
    kind = AAAA if ":" in inside else A
    server = NameServer({"rebind.test": [(kind, inside)]})
    door = Egress(servers=f"127.0.0.1:{server.port}").hello()
    port = door.open(rules=[rule("rebind.test")])
    assert status(get(port, "http://rebind.test/")) == 403
    assert door.reasons() == ["private"]
    assert socket.inet_pton(socket.AF_INET6 if kind == AAAA else socket.AF_INET, door.decisions[0]["address"]) \
        == socket.inet_pton(socket.AF_INET6 if kind == AAAA else socket.AF_INET, inside)
    assert door.close() == (0, "")
    server.close()


@pytest.mark.parametrize("never", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "::ffff:127.0.0.1", "fd00:ec2::254"])
def test_an_inner_entry_reaches_no_metadata(never):
    server = NameServer({"meta.test": [(AAAA if ":" in never else A, never)]})
    door = Egress(servers=f"127.0.0.1:{server.port}").hello()
    port = door.open(rules=inner("meta.test"))
    assert status(get(port, "http://meta.test/")) == 403
    assert door.reasons() == ["private"]
    door.close()
    server.close()


# ---- a world with public addresses ----

def in_network(path, function):
    """The result of a function that runs in another network: sockets stay where they were made."""
    result = []

    def run():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(path) as network:
            assert libc.setns(network.fileno(), 0x40000000) == 0, os.strerror(ctypes.get_errno())
        result.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


@contextlib.contextmanager
def network(name):
    name = f"nacre-test-{os.getpid()}-{name}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield f"/run/netns/{name}"
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


class World:
    """Two networks with a cable: here is the host of the door, there is the internet."""

    def __init__(self, here, there):
        self.here, self.there = here, there

    def ip(self, where, *args):
        subprocess.run(["ip", "-n", os.path.basename(where), *args], check=True, capture_output=True)


@pytest.fixture
def world(as_root):
    with network("here") as here, network("there") as there:
        made = World(here, there)
        made.ip(here, "link", "add", "cable", "type", "veth", "peer", "name", "end", "netns", os.path.basename(there))
        for where, device, address in ((here, "cable", "93.184.216.1/24"), (there, "end", f"{PUBLIC}/24"),
                                       (there, "end", "10.9.9.9/24"), (here, "cable", "10.9.9.1/24")):
            made.ip(where, "addr", "add", address, "dev", device)
        made.ip(here, "link", "set", "cable", "up")
        made.ip(there, "link", "set", "end", "up")
        yield made


@contextlib.contextmanager
def door_in(world, table, **options):
    server = in_network(world.here, lambda: NameServer(table))
    door = Egress(servers=f"127.0.0.1:{server.port}", wrapper=["nsenter", f"--net={world.here}"], **options).hello()
    try:
        yield door
    finally:
        assert door.close() == (0, "")
        server.close()


def test_public_hosts_are_reached_and_only_those(world):
    there = in_network(world.there, lambda: Host(answer(ok(b"public")), "0.0.0.0", 80))
    here = in_network(world.here, lambda: Host(answer(ok(b"own")), "0.0.0.0", 80))
    table = {"far.test": [(A, PUBLIC)], "alias.test": [(CNAME, "b.test"), (CNAME, "c.test"), (A, PUBLIC)],
             "sly.test": [(CNAME, "in.test"), (A, "10.9.9.9")], "mixed.test": [(A, PUBLIC), (A, "10.9.9.9")],
             "mixed6.test": [(A, PUBLIC), (AAAA, "::1")], "own.test": [(A, "93.184.216.1")], "none.test": [],
             "loop.test": [(CNAME, "loop.test")]}
    with door_in(world, table) as door:
        port = door.open(rules=[rule(f"{name}") for name in table] + [rule("nowhere.test")])
        assert b"public" in get(port, "http://far.test/")
        assert b"public" in get(port, "http://alias.test/")
        for name in ("sly.test", "mixed.test", "mixed6.test", "own.test"):
            assert status(get(port, f"http://{name}/")) == 403, name
        for name in ("none.test", "nowhere.test", "loop.test"):
            assert status(get(port, f"http://{name}/")) == 502, name
        assert door.reasons()[:6] == ["allowed", "allowed", "private", "private", "private", "private"]
        assert [decision["address"] for decision in door.decisions[:6]] == [
            PUBLIC, PUBLIC, "10.9.9.9", "10.9.9.9", "::1", "93.184.216.1"]
    assert not here.seen and len(there.seen) == 2
    there.close()
    here.close()


def test_addresses_that_the_host_gets_later_are_its_own(world):
    here = in_network(world.here, lambda: Host(answer(ok(b"own")), "0.0.0.0", 80))
    with door_in(world, {"later.test": [(A, "93.184.217.7")]}) as door:
        port = door.open(rules=[rule("later.test")])
        world.ip(world.here, "addr", "add", "93.184.217.7/32", "dev", "lo")
        assert status(get(port, "http://later.test/")) == 403
        assert door.reasons() == ["private"]
        # a whole block that leads back here
        world.ip(world.here, "addr", "del", "93.184.217.7/32", "dev", "lo")
        world.ip(world.here, "route", "add", "local", "93.184.217.0/24", "dev", "lo")
        assert status(get(port, "http://later.test/")) == 403
        assert door.reasons() == ["private"] * 2
    assert not here.seen
    here.close()


def test_a_name_that_changes_is_dialled_at_what_was_checked(world):
    """First public, then private: each request is looked up once, and the second is refused."""
    there = in_network(world.there, lambda: Host(answer(ok(b"public")), PUBLIC, 80))
    inside = in_network(world.there, lambda: Host(answer(ok(b"inside")), "10.9.9.9", 80))
    answers = {"rebind.test": lambda times: [(A, PUBLIC if times % 2 else "10.9.9.9")]}
    with door_in(world, answers) as door:
        port = door.open(rules=[rule("rebind.test")])
        for _ in range(5):
            assert b"public" in get(port, "http://rebind.test/")
            assert status(get(port, "http://rebind.test/")) == 403
    assert len(there.seen) == 5 and not inside.seen
    there.close()
    inside.close()


def test_huge_answers(world):
    """Sixty addresses come over TCP and are all checked; more than are checked are none."""
    there = in_network(world.there, lambda: Host(answer(ok(b"public")), PUBLIC, 80))
    many = [(A, PUBLIC)] * 60
    table = {"many.test": many, "last.test": many[:59] + [(A, "10.9.9.9")], "flood.test": many * 40}
    with door_in(world, table) as door:
        port = door.open(rules=[rule(name) for name in table])
        assert b"public" in get(port, "http://many.test/")
        assert status(get(port, "http://last.test/")) == 403
        assert status(get(port, "http://flood.test/")) in (403, 502)
    assert len(there.seen) == 1
    there.close()


# ---- HTTP that is read in two ways ----

MALFORMED = {
    "two lengths": ["Content-Length: 0", "Content-Length: 5"],
    "equal lengths": ["Content-Length: 5", "Content-Length: 5"],
    "a list of lengths": ["Content-Length: 5, 5"],
    "length and chunks": ["Content-Length: 5", "Transfer-Encoding: chunked"],
    "chunks and length": ["Transfer-Encoding: chunked", "Content-Length: 5"],
    "two encodings": ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    "identity": ["Transfer-Encoding: identity"],
    "gzip and chunked": ["Transfer-Encoding: gzip, chunked"],
    "chunked in disguise": ["Transfer-Encoding: xchunked"],
    "chunked with a tab": ["Transfer-Encoding: \x0bchunked"],
    "signed": ["Content-Length: +5"],
    "negative": ["Content-Length: -5"],
    "hexadecimal": ["Content-Length: 0x5"],
    "empty length": ["Content-Length: "],
    "leading zero": ["Content-Length: 05"],
    "huge": ["Content-Length: 99999999999999999999"],
    "blank before the colon": ["Content-Length : 5"],
    "blank before chunked's colon": ["Transfer-Encoding : chunked"],
    "folded": ["X: a", " b"],
    "folded encoding": ["Transfer-Encoding:", " chunked"],
    "bare CR": ["X: a\rTransfer-Encoding: chunked"],
    "bare LF": ["X: a\nTransfer-Encoding: chunked"],
    "NUL": ["X: a\0b"],
    "no colon": ["nonsense"],
    "no name": [": x"],
    "control character": ["X: a\x01b"],
    "second host": ["Host: other.test"],
    "the same host twice": ["Host: good.test:PORT"],
    "length that is taken away": ["Content-Length: 5", "Connection: content-length"],
    "host that is taken away": ["Connection: Host"],
}


@pytest.mark.parametrize("trick", MALFORMED)
def test_requests_that_are_read_in_two_ways(egress, web, trick):
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    host = f"good.test:{web.port}"
    fields = [field.replace("PORT", str(web.port)) for field in MALFORMED[trick]]
    smuggled = head_of("GET", f"http://{host}/smuggled", host)
    reply = talk(port, head_of("POST", f"http://{host}/", host, *fields) + b"0\r\n\r\n" + smuggled, shut=True)
    assert status(reply) == 400 and len(re.findall(rb"HTTP/1.1 \d", reply)) == 1
    assert egress.reasons() == ["malformed"]
    assert not web.seen


@pytest.mark.parametrize("line", [
    "GET  http://good.test/ HTTP/1.1", "GET http://good.test/  HTTP/1.1", " GET http://good.test/ HTTP/1.1",
    "GET\thttp://good.test/\tHTTP/1.1", "GET http://good.test/ HTTP/1.2", "GET http://good.test/ HTTP/2.0",
    "GET http://good.test/ http/1.1", "GET http://good.test/", "G@T http://good.test/ HTTP/1.1",
    "GET http://good.test/\x7f HTTP/1.1", "GET http://good.test/# HTTP/1.1", "GET http://good.test/a b HTTP/1.1", ""])
def test_lines_that_are_none(egress, line):
    port = egress.open(rules=inner("good.test"))
    assert status(talk(port, f"{line}\r\nHost: good.test\r\n\r\n".encode())) == 400


@pytest.mark.parametrize("target", ["/", "*", "https://good.test/", "ftp://good.test/", "good.test:80", "http:/good.test/"])
def test_what_is_not_for_a_proxy_is_told_so(egress, target):
    port = egress.open(rules=inner("good.test"))
    reply = talk(port, f"GET {target} HTTP/1.1\r\nHost: good.test\r\n\r\n".encode())
    assert status(reply) == 400 and b"http_proxy=http://127.0.0.1:888" in reply


def test_host_and_target_must_agree(egress, web):
    port = egress.open(rules=inner(f"good.test:{web.port}", f"other.test:{web.port}"))
    target = f"http://good.test:{web.port}/"
    for host in (f"other.test:{web.port}", "good.test", "good.test:1", f"good.test.:{web.port}x", ""):
        assert status(talk(port, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())) == 400, host
    assert status(talk(port, f"GET {target} HTTP/1.1\r\n\r\n".encode())) == 400
    assert not web.seen
    # one host in two spellings is one host, and goes out in one
    assert status(get(port, f"http://GOOD.test.:{web.port}/", f"good.TEST:{web.port}")) == 200
    assert f"Host: good.test:{web.port}\r\n".encode() in web.seen[0]


def test_what_is_for_the_proxy_stays_here(egress, web):
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    head = ("Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
            "Upgrade: websocket\r\nX-Mine: 1\r\nConnection: x-hop\r\nX-Hop: 2\r\n")
    assert status(get(port, f"http://good.test:{web.port}/", head=head)) == 200
    assert web.seen[0].count(b"\r\n") == 5 and b"X-Mine: 1" in web.seen[0]


def test_each_request_of_a_connection_is_judged(egress, web):
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    good, bad = f"good.test:{web.port}", f"other.test:{web.port}"
    pipelined = b"".join(head_of("GET", f"http://{host}/{i}", host) for i, host in enumerate((good, good, bad, good)))
    reply = talk(port, pipelined)
    assert reply.count(b"HTTP/1.1 200 OK") == 2 and reply.count(b"HTTP/1.1 403 ") == 1
    assert [head.split()[1] for head in web.seen] == [b"/0", b"/1"]
    assert egress.reasons() == ["allowed", "allowed", "not-listed"]


def test_a_changed_list_counts_for_the_next_request_of_a_connection(egress, web):
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    host = f"good.test:{web.port}"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(head_of("GET", f"http://{host}/1", host))
        assert b"200 OK" in read_reply(client)
        assert egress.change(rules=[rule("bad pattern")]) != 0  # the old list stays
        client.sendall(head_of("GET", f"http://{host}/2", host))
        assert b"200 OK" in read_reply(client)
        assert egress.change(rules=[]) == 0
        client.sendall(head_of("GET", f"http://{host}/3", host))
        assert b" 403 " in read_reply(client)
    assert len(web.seen) == 2


def chunked_host(connection, seen):
    head, rest = read_head(connection)
    while not rest.endswith(b"0\r\n\r\n"):
        rest += connection.recv(65536)
    seen.append(head + rest)
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;name=\"x\"\r\nhello\r\n0\r\nX-Last: 1\r\n\r\n")
    connection.recv(1)


def test_chunked_bodies_both_ways(egress):
    web = Host(chunked_host)
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    host = f"good.test:{web.port}"
    reply = talk(port, head_of("POST", f"http://{host}/", host, "Transfer-Encoding: chunked", "Connection: close")
                 + b"3\r\nabc\r\n" + b"A\r\n0123456789\r\n" + b"0\r\n\r\n")
    assert reply.endswith(b"5;name=\"x\"\r\nhello\r\n0\r\nX-Last: 1\r\n\r\n")
    assert web.seen[0].endswith(b"\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n")
    web.close()


@pytest.mark.parametrize("body", [b"5 \r\nhello\r\n0\r\n\r\n", b"5;x=y\r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n",
                                  b"-1\r\n", b"5\nhello\n0\n\n", b"5\r\nhelloX\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\nHost: x\r\n\r\n",
                                  b"FFFFFFFFFFFFFFFFF\r\n", b"\r\n", b"5\r\nhello\r\n0\r\n\rX", b"g\r\n"])
def test_chunks_that_are_none(egress, body):
    """The connection ends there: the host never sees what stands behind."""
    seen = []

    def collect(connection, _):
        while data := connection.recv(65536):
            seen.append(data)

    web = Host(collect)
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    host = f"good.test:{web.port}"
    smuggled = head_of("GET", f"http://{host}/smuggled", host)
    reply = talk(port, head_of("POST", f"http://{host}/", host, "Transfer-Encoding: chunked") + body + smuggled)
    assert reply == b""
    wait_for(lambda: egress.meter()["open"] == 0)
    assert b"smuggled" not in b"".join(seen)
    web.close()


@pytest.mark.parametrize("reply", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/2 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40000])
def test_replies_that_are_none(egress, reply):
    def serve(connection, seen):
        read_head(connection)
        connection.sendall(reply)

    web = Host(serve)
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    assert status(get(port, f"http://good.test:{web.port}/")) == 502
    assert egress.reasons() == ["allowed", "upstream"]
    web.close()


def test_replies_without_a_body(egress):
    for code, method in ((204, "GET"), (304, "GET"), (200, "HEAD")):
        web = Host(answer(b"HTTP/1.1 %d X\r\n%s\r\n" % (code, b"Content-Length: 5\r\n" if method == "HEAD" else b"")))
        port = egress.open(code if method == "GET" else 1, rules=inner(f"good.test:{web.port}"))
        host = f"good.test:{web.port}"
        reply = talk(port, head_of(method, f"http://{host}/", host) * 2 + head_of(method, f"http://{host}/", host, "Connection: close"))
        assert reply.count(b"HTTP/1.1 %d" % code) == 3
        web.close()


def test_a_body_waits_for_100_continue(egress):
    def serve(connection, seen):
        read_head(connection)
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        seen.append(connection.recv(5))
        connection.sendall(ok(b"done"))

    web = Host(serve)
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    host = f"good.test:{web.port}"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(head_of("PUT", f"http://{host}/", host, "Content-Length: 5", "Expect: 100-continue"))
        assert read_reply(client) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        assert b"done" in read_reply(client)
    assert web.seen == [b"hello"]
    web.close()


def test_a_request_whose_body_nobody_read_is_the_last(egress):
    """What is left of the body would be the next request."""
    def serve(connection, seen):
        seen.append(read_head(connection)[0])
        connection.sendall(ok(b"enough"))
        connection.recv(1)

    web = Host(serve)
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    host = f"good.test:{web.port}"
    smuggled = head_of("GET", f"http://{host}/smuggled", host)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(head_of("POST", f"http://{host}/", host, f"Content-Length: {len(smuggled) + 9999999}"))
        wait_for(lambda: web.seen)
        time.sleep(0.1)
        client.sendall(smuggled)
        reply = read_all(client)
    assert reply.count(b"HTTP/1.1 ") <= 1
    assert len(web.seen) == 1
    web.close()


def test_redirects_are_not_followed(egress, web):
    away = Host(answer(b"HTTP/1.1 302 Found\r\nLocation: http://other.test:%d/\r\nContent-Length: 0\r\n\r\n" % web.port))
    port = egress.open(rules=inner(f"good.test:{away.port}"))
    assert status(get(port, f"http://good.test:{away.port}/")) == 302
    done = subprocess.run(["curl", "-sS", "-L", "-x", f"http://127.0.0.1:{port}", f"http://good.test:{away.port}/"],
                          capture_output=True, text=True)
    assert "network.not-listed" in done.stdout
    assert not web.seen
    away.close()


# ---- tunnels ----

def test_a_tunnel_carries_bytes_both_ways(egress, mirror):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"))
    client, line = connect(port, f"good.test:{mirror.port}")
    assert line == "HTTP/1.1 200 Connection established"
    data = os.urandom(3 << 20)
    threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR)), daemon=True).start()
    assert read_all(client) == data
    client.close()
    meter = egress.meter()
    assert (meter["up"], meter["down"], meter["requests"]) == (len(data), len(data), 1)
    assert meter["top"] == [dict(host="good.test", requests=1, up=len(data), down=len(data))]


def test_bytes_before_the_tunnel_stands_are_refused(egress, mirror):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"))
    host = f"good.test:{mirror.port}"
    assert status(talk(port, head_of("CONNECT", host, host) + b"early")) == 400
    assert status(talk(port, head_of("CONNECT", host, host, "Content-Length: 5"))) == 400
    assert status(talk(port, head_of("CONNECT", "good.test", "good.test"))) == 400
    assert status(talk(port, head_of("CONNECT", f"http://{host}", host))) == 400


def socks(port, name, to, command=1, kind=3, greeting=b"\x05\x01\x00", keep=False):
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.sendall(greeting)
    if client.recv(2) != b"\x05\x00":
        return b""
    address = bytes([len(name)]) + name if kind == 3 else name
    client.sendall(bytes([5, command, 0, kind]) + address + struct.pack(">H", to))
    reply = client.recv(10)
    if keep:
        return client, reply
    client.close()
    return reply


def test_socks(egress, mirror):
    port = egress.open(rules=[*inner(f"good.test:{mirror.port}"), rule(f"127.0.0.1:{mirror.port}")])
    client, reply = socks(port, b"good.test", mirror.port, keep=True)
    assert reply == b"\x05\x00\x00\x01" + bytes(6)
    client.sendall(b"hello")
    assert client.recv(5) == b"hello"
    client.close()
    assert socks(port, socket.inet_aton("127.0.0.1"), mirror.port, kind=1)[1] == 0
    assert socks(port, socket.inet_aton("127.0.0.2"), mirror.port, kind=1)[1] == 2
    assert socks(port, socket.inet_pton(socket.AF_INET6, "::1"), mirror.port, kind=4)[1] == 2
    assert socks(port, b"other.test", mirror.port)[1] == 2
    assert socks(port, b"good.test\0.evil", mirror.port)[1] == 2
    assert socks(port, b"good.test", 0)[1] == 2
    assert socks(port, b"good.test", mirror.port, command=2)[1] == 7  # BIND
    assert socks(port, b"good.test", mirror.port, command=3)[1] == 7  # UDP
    assert socks(port, b"good.test", mirror.port, kind=5)[1] == 8
    assert socks(port, b"good.test", mirror.port, greeting=b"\x05\x01\x02") == b""  # with a password
    assert status(talk(port, b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", shut=True)) in (400, b"")


def client_hello(name):
    """What OpenSSL says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_strict_tunnels_greet_the_host_that_was_asked_for(egress, mirror):
    host = f"good.test:{mirror.port}"
    port = egress.open(rules=inner(host), strict=True)
    hello = client_hello("good.test")
    for pieces in ([hello], [hello[:1], hello[1:7], hello[7:]], [hello[i:i + 40] for i in range(0, len(hello), 40)]):
        client, line = connect(port, host)
        assert " 200 " in line
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.01)
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == hello
        client.close()
    # in two records
    split = hello[:3] + struct.pack(">H", 10) + hello[5:15] + hello[:3] + struct.pack(">H", len(hello) - 15) + hello[15:]
    client, _ = connect(port, host)
    client.sendall(split)
    client.shutdown(socket.SHUT_WR)
    assert read_all(client) == split
    egress.reasons()
    egress.decisions.clear()
    for wrong, reason in ((client_hello("other.test"), "sni"), (client_hello("xgood.test"), "sni"), (client_hello(None), "sni"),
                          (b"GET / HTTP/1.1\r\n\r\n", "not-tls"), (b"SSH-2.0-x\r\n", "not-tls"), (b"\x16\x02" + hello[2:], "not-tls")):
        client, line = connect(port, host)
        assert " 200 " in line
        client.sendall(wrong)
        assert read_all(client) == b"\x15\x03\x03\x00\x02\x02\x70"
        client.close()
        assert egress.reasons()[-1] == reason
    assert egress.meter()["up"] == 3 * len(hello) + len(split)


def test_strict_holds_for_socks_too(egress, mirror):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"), strict=True)
    client, reply = socks(port, b"good.test", mirror.port, keep=True)
    assert reply[1] == 0
    client.sendall(client_hello("other.test"))
    assert read_all(client) == b"\x15\x03\x03\x00\x02\x02\x70"
    assert egress.reasons() == ["allowed", "sni"]


# ---- limits ----

def test_the_budget_ends_everything(egress, mirror):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"), bytes=100000)
    client, _ = connect(port, f"good.test:{mirror.port}")
    with contextlib.suppress(OSError):
        client.sendall(bytes(1 << 20))
    got = read_all(client)
    meter = egress.meter()
    assert meter["up"] + meter["down"] == 100000 and len(got) < 100000
    assert egress.overs == [(1, "budget")]
    _, line = connect(port, f"good.test:{mirror.port}")
    assert " 403 " in line
    assert egress.reasons()[-1] == "budget"
    # with more it goes on
    assert egress.change(rules=inner(f"good.test:{mirror.port}"), bytes=200000) == 0
    _, line = connect(port, f"good.test:{mirror.port}")
    assert " 200 " in line


@pytest.mark.parametrize("limit", ["bytes_up", "bytes_down"])
def test_the_budget_of_one_way(egress, mirror, limit):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"), **{limit: 5000})
    client, _ = connect(port, f"good.test:{mirror.port}")
    with contextlib.suppress(OSError):
        client.sendall(bytes(1 << 20))
    read_all(client)
    assert egress.meter()[limit.removeprefix("bytes_")] == 5000


def test_requests_names_and_connections_are_limited(egress, web):
    port = egress.open(rules=inner(f"*.good.test:{web.port}", f"good.test:{web.port}"), requests=3)
    host = f"good.test:{web.port}"
    reply = talk(port, head_of("GET", f"http://{host}/", host) * 5)
    assert reply.count(b"200 OK") == 3 and b"network.requests" in reply
    port = egress.open(2, rules=inner(f"good.test:{web.port}", f"other.test:{web.port}", f"sub.good.test:{web.port}"), names=2)
    for name, code in (("good", 200), ("other", 200), ("sub.good", 403), ("good", 200)):
        assert status(get(port, f"http://{name}.test:{web.port}/")) == code
    port = egress.open(3, rules=inner(f"good.test:{web.port}"), connections=2)
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
    wait_for(lambda: egress.meter(3)["open"] == 2)
    third = socket.create_connection(("127.0.0.1", port), timeout=5)
    assert read_all(third) == b""
    held[0].close()
    wait_for(lambda: egress.meter(3)["open"] == 1)
    assert status(get(port, f"http://good.test:{web.port}/")) == 200
    assert egress.overs == [(1, "requests"), (2, "names")]
    assert "connections" in egress.reasons(3)
    held[1].close()


@pytest.mark.parametrize("tunnel", [True, False])
def test_bandwidth(egress, tunnel):
    size, rate = 3 << 20, 2 << 20

    def serve(connection, seen):
        read_head(connection)
        connection.sendall(ok(bytes(size)))

    web = Host(serve)
    host = f"good.test:{web.port}"
    port = egress.open(rules=inner(host), rate=rate)
    begin = time.monotonic()
    if tunnel:
        client, _ = connect(port, host)
        client.sendall(b"\r\n\r\n")
        got = read_all(client)
    else:
        got = get(port, f"http://{host}/")
    took = time.monotonic() - begin
    assert len(got) > size
    assert 0.85 * size / rate < took < 1.5 * size / rate, took
    web.close()


def test_slow_heads_idle_tunnels_and_silent_hosts_end(egress, mirror):
    host = f"good.test:{mirror.port}"
    port = egress.open(rules=inner(host), head_ms=500, idle_ms=700)
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        with contextlib.suppress(OSError):
            for byte in b"GET http://good.test/ HTTP/1.1\r\nHost: " + b"x" * 50:
                slow.sendall(bytes([byte]))
                time.sleep(0.05)
        assert status(read_all(slow)) == 408
    assert time.monotonic() - begin < 5
    assert talk(port) == b""
    client, _ = connect(port, host)
    assert read_all(client) == b""
    # the mirror never answers a request with a reply
    assert status(get(port, f"http://{host}/", head="X: y\r\n")) in (502, 504)
    wait_for(lambda: egress.meter()["open"] == 0)


def test_hosts_that_are_not_there(egress):
    listener = listen()
    free = listener.getsockname()[1]
    listener.close()
    port = egress.open(rules=inner(f"good.test:{free}", "nowhere.test"), connect_ms=500)
    assert status(get(port, f"http://good.test:{free}/")) == 502
    assert socks(port, b"good.test", free)[1] == 4
    assert status(get(port, "http://nowhere.test/")) in (502, 504)
    assert egress.reasons()[:4] == ["allowed", "connect-failed"] * 2
    assert egress.meter()["failed"] == 3


def test_a_thousand_connections(egress, mirror):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"), connections=1100)
    clients = []
    for i in range(1000):
        client, line = connect(port, f"good.test:{mirror.port}")
        assert " 200 " in line, i
        clients.append(client)
    assert egress.meter()["open"] == 1000
    for i, client in enumerate(clients):
        client.sendall(b"%04d" % i)
    assert [client.recv(4) for client in clients] == [b"%04d" % i for i in range(1000)]
    for client in clients:
        client.close()
    wait_for(lambda: egress.meter()["open"] == 0)
    meter = egress.shut()
    assert meter["last"] and (meter["connections"], meter["up"], meter["down"]) == (1000, 4000, 4000)


def test_records_are_capped_and_counted(egress):
    port = egress.open(rules=[])
    for _ in range(600):
        talk(port, head_of("GET", "http://x.test/", "x.test"))
    assert egress.meter()["denied"] == 600
    told = len(egress.decisions)
    assert told < 600
    time.sleep(0.3)
    talk(port, head_of("GET", "http://x.test/", "x.test"))
    egress.meter()
    assert sum(decision["dropped"] for decision in egress.decisions) + len(egress.decisions) == 601


# ---- secrets ----

def test_secrets_go_to_their_host_in_their_header_only(egress, web):
    other = Host(answer(ok()))
    rules = inner(f"good.test:{web.port}", f"other.test:{web.port}", f"good.test:{other.port}")
    bound = [secret("NACRE-SECRET-1", "s3cr3t v", f"good.test:{web.port}", "Authorization")]
    port = egress.open(rules=rules, secrets=bound)
    head = "Authorization: Bearer NACRE-SECRET-1, x\r\nX-Other: NACRE-SECRET-1\r\n"
    get(port, f"http://good.test:{web.port}/NACRE-SECRET-1", head=head)
    assert b"Authorization: Bearer s3cr3t v, x\r\nX-Other: NACRE-SECRET-1\r\n" in web.seen[0]
    assert web.seen[0].count(b"s3cr3t") == 1
    get(port, f"http://other.test:{web.port}/", head=head)
    get(port, f"http://good.test:{other.port}/", head=head)
    assert all(b"s3cr3t" not in head for head in web.seen[1:] + other.seen) and len(web.seen) == 2 and other.seen
    other.close()


# ---- groups ----

def test_boxes_of_a_group_reach_each_other_by_name_and_nothing_else(as_root, egress, web):
    def spares(path):
        return [in_network(path, socket.socket) for _ in range(2)]

    with network("a") as a, network("b") as b, network("c") as c:
        for box, (path, group, name) in enumerate(((a, "g", "alpha"), (b, "g", "beta"), (c, "h", "gamma")), 1):
            fds = spares(path)
            egress.open(box, in_network(path, lambda: listen(port=888)), fds, group=group, name=name)
            for fd in fds:
                fd.close()
        served = in_network(b, lambda: Host(answer(ok(b"from beta")), port=80))
        in_network(c, lambda: Host(answer(ok(b"from gamma")), port=80))
        for _ in range(20):  # its two sockets are used again
            assert b"from beta" in in_network(a, lambda: get(888, "http://beta/"))
        assert len(served.seen) == 20
        assert b"from beta" in in_network(b, lambda: get(888, "http://beta/"))
        for url in ("http://gamma/", "http://beta:888/", "http://good.test/", "http://127.0.0.1/", "http://x.beta/"):
            assert status(in_network(a, lambda url=url: get(888, url))) == 403, url
        assert status(in_network(c, lambda: get(888, "http://beta/"))) == 403
        assert status(in_network(a, lambda: get(888, "http://beta:81/"))) == 502
        egress.shut(2)
        assert status(in_network(a, lambda: get(888, "http://beta/"))) == 403


# ---- the process ----

def test_it_can_do_nothing_else(egress):
    pid = egress.process.pid
    state = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    sanitized = "libasan" in subprocess.run(["ldd", BUILD / "nacre-egress"], capture_output=True, text=True).stdout
    assert state["NoNewPrivs"] == "1" and state["Seccomp"] == ("0" if sanitized else "2") and state["Threads"] == "1"
    assert state["CapEff"] == state["CapPrm"] == state["CapBnd"] == "0" * 16 or os.geteuid() != 0
    if os.geteuid() == 0:
        assert state["Uid"].split() == [str(EGRESS_ID)] * 4 and state["Groups"].strip() == ""
    links = list(descriptors(pid).values())
    assert not [link for link in links if link.startswith("/") and link != "/dev/null"]


BROKEN = {
    "not greeted": message(ASK, struct.pack("<Q", 1)),
    "another version": message(HELLO, struct.pack("<I", VERSION + 1)),
    "nonsense": b"nonsense",
    "empty": b"\0",
    "unknown type": message(77),
}
BROKEN_LATER = {
    "greeted twice": message(HELLO, struct.pack("<I", VERSION)),
    "our own message": message(101, struct.pack("<I", VERSION)),
    "cut": message(ASK, b"\0\0"),
    "too long": message(ASK, bytes(9)),
    "without a listener": message(OPEN, struct.pack("<Q", 1) + terms()),
    "rules that are not there": message(CHANGE, struct.pack("<Q", 1) + terms()[:-4] + struct.pack("<HH", 9, 0)),
    "a flag that is none": message(CHANGE, struct.pack("<Q", 1) + terms(rules=[b"\xff" + rule("a.test")[1:]])),
    "a name with a NUL": message(CHANGE, struct.pack("<Q", 1) + terms(rules=[rule("a.test\0b")])),
    "too many paths": message(CHANGE, struct.pack("<Q", 1) + terms(rules=[rule("a.test", paths=["/"] * 17)])),
    "a long name": message(CHANGE, struct.pack("<Q", 1) + terms(rules=[rule("a" * 300)])),
    "bytes behind": message(CHANGE, struct.pack("<Q", 1) + terms() + b"x"),
}


@pytest.mark.parametrize("trick", [*BROKEN, *BROKEN_LATER])
def test_whoever_breaks_the_protocol_ends_it(hosts, trick):
    door = Egress(hosts=hosts)
    if trick in BROKEN_LATER:
        door.hello()
    door.raw(BROKEN.get(trick) or BROKEN_LATER[trick])
    while door.receive() != 0:
        pass
    assert door.close() == (0, "")


def test_descriptors_that_are_no_listeners_end_it(hosts):
    for make in (lambda: socket.socket(), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
                 lambda: socket.socket(socket.AF_UNIX), lambda: open("/dev/null")):
        door = Egress(hosts=hosts).hello()
        with make() as fd:
            door.send(OPEN, struct.pack("<Q", 1) + terms(), [fd.fileno()])
        assert door.receive() == 0
        door.close()


def test_terms_that_are_wrong_are_answered_and_change_nothing(egress):
    egress.open(rules=[])
    for wrong in (dict(rules=[rule("UPPER.test")]), dict(rules=[rule("a b")]), dict(rules=[rule("*.test")]),
                  dict(rules=[rule("a.test", paths=["x"])]), dict(rules=[rule("a.test", paths=["/../x"])]), dict(group="g"),
                  dict(group="g", name="a.b"), dict(group="g", name="localhost"),
                  dict(secrets=[secret("short", "v", "a.test", "X")]), dict(secrets=[secret("long-enough", "a\r\nb", "a.test", "X")]),
                  dict(secrets=[secret("long-enough", "v", "*.a.test", "X")])):
        assert egress.change(**wrong) != 0, wrong
    assert egress.change(9) == 2  # ENOENT
    listener = listen()
    egress.send(OPEN, struct.pack("<Q", 1) + terms(), [listener.fileno()])
    egress.receive()
    assert egress.dones[-1] == (1, 17)  # EEXIST


def test_its_death_is_the_end_of_all_network(hosts, web):
    door = Egress(hosts=hosts).hello()
    listener = listen()
    copy = socket.socket(fileno=os.dup(listener.fileno()))
    port = door.open(listener=listener, rules=inner(f"good.test:{web.port}"))
    client, line = connect(port, f"good.test:{web.port}")
    assert " 200 " in line
    door.process.kill()
    door.close()
    assert read_all(client) == b""
    copy.close()
    with pytest.raises(ConnectionRefusedError):
        talk(port, b"x")


def test_shutting_a_door_ends_its_connections_only(egress, mirror):
    ports = [egress.open(box, rules=inner(f"good.test:{mirror.port}")) for box in (1, 2)]
    first, second = (connect(port, f"good.test:{mirror.port}")[0] for port in ports)
    assert egress.shut(1)["requests"] == 1
    assert read_all(first) == b""
    second.sendall(b"x")
    assert second.recv(1) == b"x"
    with pytest.raises(ConnectionRefusedError):
        talk(ports[0])
    second.close()


def test_a_worker_that_does_not_read_loses_records_and_nothing_else(egress, mirror):
    port = egress.open(rules=inner(f"good.test:{mirror.port}"))
    for _ in range(500):
        talk(port, head_of("GET", "http://x.test/", "x.test"))
    for _ in range(100):
        egress.send(ASK, struct.pack("<Q", 1))
    for _ in range(100):
        egress.until(104)
    client, line = connect(port, f"good.test:{mirror.port}")
    assert " 200 " in line
    client.close()


# ---- the next worker ----

def test_doors_stay_as_they_are_until_the_next_worker_comes(hosts, web):
    """What the worker before has said holds, to the last word; the next one is told of all doors, and shuts those that are nobody's."""
    egress = Egress(hosts=hosts, place=True).hello()
    wide, narrow = (egress.open(box=box, rules=inner(f"good.test:{web.port}")) for box in (1, 2))
    target = f"http://good.test:{web.port}/"
    egress.send(CHANGE, struct.pack("<Q", 2) + terms(rules=inner("other.test")))  # and dies before it is answered
    egress.socket.close()
    assert status(get(wide, target)) == 200 and status(get(narrow, target)) == 403
    egress.call()
    assert status(get(wide, target)) == 200  # nobody has greeted yet
    egress.hello()
    egress.until(METER)
    egress.until(METER)
    assert {meter["box"]: meter["requests"] for meter in egress.meters} == {1: 2, 2: 0}
    assert egress.meter(1)["requests"] == 2
    egress.shut(2)
    assert egress.change(box=1, rules=inner("other.test")) == 0 and status(get(wide, target)) == 403
    egress.call()  # while the one before is still there
    egress.hello()
    assert egress.meter(1)["box"] == 1
    assert egress.close() == (0, "")


def test_what_a_hostile_worker_hands_in_at_the_place(hosts, web, tmp_path):
    egress = Egress(hosts=hosts, place=True).hello()
    port = egress.open(rules=inner(f"good.test:{web.port}"))
    plain, (stream, other) = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT), socket.socketpair()
    egress.place.send(b"x")
    egress.place.send(message(1, b""))
    for fds in ([plain, plain], [plain] * 16, [stream.fileno()], [egress.place.fileno()]):
        socket.send_fds(egress.place, [message(1, b"")], fds)
    egress.call()
    egress.hello()
    assert status(get(port, f"http://good.test:{web.port}/")) == 200
    assert os.fstat(plain).st_size == 0
    egress.raw(b"nonsense")  # that is the end, for those who could come too
    assert egress.process.wait(10) == 0
    os.close(plain)
    stream.close()
    other.close()
    assert egress.close()[0] == 0
