"""The messages between a worker and nacre-egress (src/egress/wire.h), and the parties that its tests need: a worker, a
name server that lies, hosts that listen."""

import array
import contextlib
import os
import select
import socket
import struct
import subprocess
import threading
import time

from conftest import BUILD
from wire import plain_message as message
from wire import text

VERSION = 2
HELLO, OPEN, CHANGE, ASK, SHUT = range(1, 6)
WELCOME, DONE, DECISION, METER, OVER = range(101, 106)
EGRESS_ID = 0x70000000 - 3
METHODS = {name: 1 << bit for bit, name in enumerate(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))}
LIMITS = dict(connections=0, names=0, requests=0, bytes_up=0, bytes_down=0, bytes=0, rate=0, head_ms=0, connect_ms=0,
              idle_ms=0)
REASONS = ("allowed not-listed denied port method path plain-only literal private spelling malformed not-for-proxy sni "
           "not-tls connections requests names budget masked unsearchable unknown-host resolve connect-failed upstream untrusted timeout").split()
PROTOCOLS = ("http", "connect", "socks", "inside", "accept")


def rule(host, deny=False, inner=False, methods=(), paths=()):
    bits = sum(METHODS[name] for name in methods)
    return (struct.pack("<B", deny | inner << 1) + text(host.encode()) + struct.pack("<IH", bits, len(paths))
            + b"".join(text(path.encode()) for path in paths))


def inner(*hosts):
    """Entries that may lead to 127.0.0.1, where the tests' hosts are."""
    return [rule(host, inner=True) for host in hosts]


def secret(placeholder, value, host, header, tls=False, mask=True):
    return b"".join(text(part.encode()) for part in (placeholder, value, host, header)) + bytes([tls + 2 * (not mask)])


def terms(rules=(), secrets=(), strict=False, group="", name="", **limits):
    assert set(limits) <= set(LIMITS), limits
    return (bytes([strict]) + text(group.encode()) + text(name.encode())
            + struct.pack("<II5QIII", *{**LIMITS, **limits}.values())
            + struct.pack("<H", len(rules)) + b"".join(rules) + struct.pack("<H", len(secrets)) + b"".join(secrets))


class Body:
    """Takes a message apart."""

    def __init__(self, data):
        self.data = data

    def get(self, layout):
        size = struct.calcsize("<" + layout)
        values = struct.unpack("<" + layout, self.data[:size])
        self.data = self.data[size:]
        return values if len(values) > 1 else values[0]

    def text(self):
        size = self.get("I")
        word, self.data = self.data[:size], self.data[size:]
        return word.decode()


def read_decision(body):
    box, reason, protocol, port, dropped = body.get("QBBHI")
    host, address, entry, method = (body.text() for _ in range(4))
    return dict(box=box, reason=REASONS[reason], protocol=PROTOCOLS[protocol], port=port, dropped=dropped, host=host,
                address=address, rule=entry, method=method)


def read_meter(body):
    names = ("box", "last", "connections", "requests", "denied", "failed", "up", "down", "names", "open")
    meter = dict(zip(names, body.get("QB6QII")))
    meter["top"] = [dict(host=body.text(), **dict(zip(("requests", "up", "down"), body.get("QQQ"))))
                    for _ in range(body.get("H"))]
    return meter


class Egress:
    """nacre-egress and its worker. Decisions that come are kept; what is waited for is waited for."""

    def __init__(self, servers="127.0.0.1:9", hosts="", bundle="", program=None, wrapper=(), user=EGRESS_ID, place=False):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.place, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        high, higher = os.dup(theirs.fileno()), os.dup(inner.fileno())
        command = f'exec 3<&{high} {high}>&- 4<&{higher} {higher}>&-; exec "$@"'
        ids = str(user)
        drop = ["setpriv", "--reuid", ids, "--regid", ids, "--clear-groups", "--bounding-set=-all"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [*wrapper, "bash", "-c", command, "sh", *drop, str(program or BUILD / "nacre-egress"), servers, hosts, bundle, *(["1"] if place else [])],
            pass_fds=(high, higher), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        os.close(high)
        os.close(higher)
        theirs.close()
        inner.close()
        if not place:
            self.place.close()
        self.socket = ours
        self.socket.settimeout(20)
        self.decisions, self.overs, self.meters, self.dones = [], [], [], []

    def call(self):
        """The next worker comes in."""
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        socket.send_fds(self.place, [message(1, b"")], [theirs.fileno()])
        theirs.close()

    def send(self, kind, body=b"", fds=()):
        self.raw(message(kind, body), fds)

    def raw(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], control)

    def receive(self):
        """One message; its type, or 0 at the end."""
        try:
            data = self.socket.recv(70000)
        except ConnectionResetError:
            return 0
        if not data:
            return 0
        kind, body = struct.unpack("<H", data[2:4])[0], Body(data[8:])
        if kind == DECISION:
            self.decisions.append(read_decision(body))
        elif kind == METER:
            self.meters.append(read_meter(body))
        elif kind == OVER:
            self.overs.append((body.get("Q"), REASONS[body.get("B")]))
        elif kind == WELCOME:
            assert body.get("I") == VERSION
            self.authority = body.text()
        elif kind == DONE:
            self.dones.append(body.get("QI"))
        assert not body.data
        return kind

    def until(self, kind):
        while True:
            got = self.receive()
            if got == kind:
                return
            assert got != 0, f"nacre-egress has ended: {self.process.stderr.read()}"

    def hello(self):
        self.send(HELLO, struct.pack("<I", VERSION))
        self.until(WELCOME)
        return self

    def open(self, box=1, listener=None, spares=(), **wanted):
        """A door; gives the port that it listens on."""
        listener = listener or listen()
        self.send(OPEN, struct.pack("<Q", box) + terms(**wanted), [listener.fileno(), *(fd.fileno() for fd in spares)])
        self.until(DONE)
        assert self.dones[-1] == (box, 0), self.dones[-1]
        port = listener.getsockname()[1]
        listener.close()
        return port

    def change(self, box=1, **wanted):
        self.send(CHANGE, struct.pack("<Q", box) + terms(**wanted))
        self.until(DONE)
        return self.dones[-1][1]

    def meter(self, box=1):
        self.send(ASK, struct.pack("<Q", box))
        self.until(METER)
        return self.meters[-1]

    def shut(self, box=1):
        self.send(SHUT, struct.pack("<Q", box))
        self.until(METER)
        return self.meters[-1]

    def reasons(self, box=1):
        """The reasons of all decisions up to now."""
        self.meter(box)
        return [decision["reason"] for decision in self.decisions]

    def close(self):
        self.socket.close()
        self.place.close()
        status = self.process.wait(timeout=10)
        errors = self.process.stderr.read().decode()
        self.process.stderr.close()
        return status, errors


def listen(address="127.0.0.1", port=0):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(1024)
    return listener


def talk(port, data=b"", shut=False, timeout=20):
    """Sends bytes to a door and gives all that comes back until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
        client.sendall(data)
        if shut:
            client.shutdown(socket.SHUT_WR)
        return read_all(client)


def read_all(client):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            got += part
    return got


def read_reply(client):
    """One reply with its length in its head."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.recv(1)
    size = [int(line.split(b":")[1]) for line in got.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while size and len(got.split(b"\r\n\r\n", 1)[1]) < size[0]:
        got += client.recv(65536)
    return got


def connect(port, host, head="", timeout=20):
    """A tunnel: the socket, and the reply's first line."""
    client = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    client.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{head}\r\n".encode())
    reply = b""
    while b"\r\n\r\n" not in reply:
        part = client.recv(1)
        if not part:
            break
        reply += part
    return client, reply.split(b"\r\n")[0].decode()


def get(port, url, host=None, head="", method="GET", body=b""):
    host = host or url.split("/")[2]
    return talk(port, f"{method} {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{head}\r\n".encode() + body)


def status(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else reply


class Host(threading.Thread):
    """Listens, keeps what each connection sent, and answers as serve(connection, keep) says."""

    def __init__(self, serve, address="127.0.0.1", port=0):
        super().__init__(daemon=True)
        self.serve = serve
        self.listener = listen(address, port)
        self.port = self.listener.getsockname()[1]
        self.seen = []
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(20)
            self.serve(connection, self.seen)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.join()
        self.listener.close()


def read_head(connection, rest=b""):
    while b"\r\n\r\n" not in rest:
        part = connection.recv(65536)
        if not part:
            return None, rest
        rest += part
    head, rest = rest.split(b"\r\n\r\n", 1)
    return head + b"\r\n\r\n", rest


def echo(connection, seen):
    """Sends back what comes."""
    while data := connection.recv(65536):
        connection.sendall(data)


def answer(reply):
    """Answers each head with the same bytes and keeps the connection."""

    def serve(connection, seen):
        rest = b""
        while True:
            head, rest = read_head(connection, rest)
            if head is None:
                return
            seen.append(head)
            connection.sendall(reply)

    return serve


def ok(body=b"hello", head=b""):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body), head, body)


class NameServer(threading.Thread):
    """Answers what its table says: name -> list of (type, value), or a function of the number of the question."""

    A, CNAME, AAAA = 1, 5, 28

    def __init__(self, table, address="127.0.0.1"):
        super().__init__(daemon=True)
        self.table = table
        self.asked = []
        self.udp, self.tcp = self.bind(address)
        self.port = self.udp.getsockname()[1]
        self.end, self.ended = socket.socketpair()
        self.start()

    def bind(self, address):
        """One port of both kinds."""
        while True:
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind((address, 0))
            try:
                return udp, listen(address, udp.getsockname()[1])
            except OSError:
                udp.close()

    def name(self, question):
        labels, at = [], 0
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        return ".".join(labels).lower(), at + 1

    def encode(self, name):
        return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"

    def record(self, owner, kind, value):
        data = {self.A: lambda: socket.inet_aton(value), self.AAAA: lambda: socket.inet_pton(socket.AF_INET6, value),
                self.CNAME: lambda: self.encode(value)}[kind]()
        return self.encode(owner) + struct.pack(">HHIH", kind, 1, 0, len(data)) + data

    def reply(self, query, limit):
        name, size = self.name(query[12:])
        kind = struct.unpack(">H", query[12 + size:14 + size])[0]
        if kind == self.A:
            self.asked.append(name)
        records = self.table.get(name)
        if callable(records):
            records = records(self.asked.count(name))
        code = 3 if records is None else 0
        answers, owner = [], name
        for what, value in records or []:
            if what in (kind, self.CNAME):
                answers.append(self.record(owner, what, value))
                owner = value if what == self.CNAME else owner
        body = b"".join(answers)
        question = query[12:16 + size]
        if 12 + len(question) + len(body) > limit:
            return query[:2] + struct.pack(">HHHHH", 0x8780, 1, 0, 0, 0) + question
        return query[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(answers), 0, 0) + question + body

    def run(self):
        while True:
            ready, _, _ = select.select([self.udp, self.tcp, self.ended], [], [])
            if self.ended in ready:
                return
            try:
                if self.udp in ready:
                    query, peer = self.udp.recvfrom(4096)
                    self.udp.sendto(self.reply(query, 1232), peer)
                if self.tcp in ready:
                    connection, _ = self.tcp.accept()
                    with connection:
                        size = struct.unpack(">H", connection.recv(2))[0]
                        data = self.reply(connection.recv(size), 65000)
                        connection.sendall(struct.pack(">H", len(data)) + data)
            except OSError:
                return

    def close(self):
        """Not before nobody waits for them: their numbers would be somebody else's."""
        self.end.close()
        self.join()
        for fd in (self.udp, self.tcp, self.ended):
            fd.close()


def wait_for(condition, patience=10):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)
