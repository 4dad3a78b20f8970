"""The messages between a worker and nacre-recorder (src/base/recordwire.h) and the files of a history (docs/history.md), written
a second time, so that both are held against their description."""

import array
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import socket
import struct
import subprocess

from conftest import BUILD
from wire import plain_message as message
from wire import text

VERSION = 5
HELLO, OPEN, BLOB, FINISH, NOTE, PART = range(1, 7)
BORN, DIED = 51, 52
WELCOME, DIGEST, RECEIPT, NOTED = range(101, 105)
EXECUTION, SECURITY, PERFORMANCE, AUDIT = range(4)
CALL, LIMIT = range(2)
OWNER = 0x70000000 - 2 if os.geteuid() == 0 else os.geteuid()
LABEL = b"nacre journal: the next key\0"


def key_file(seq, segment, offset, key, last):
    head = b"NACREKEY" + struct.pack("<3Q", seq, segment, offset) + key + last
    return head + hashlib.sha256(head).digest()


def read_key(history):
    data = (history / "key").read_bytes()
    assert len(data) == 128 and hashlib.sha256(data[:96]).digest() == data[96:]
    return (*struct.unpack("<3Q", data[8:32]), data[32:64], data[64:96])


def next_key(key):
    return hmac.new(key, LABEL, hashlib.sha256).digest()


def make_history(state):
    """A history as nacre makes one; the state directory holds its key."""
    history = pathlib.Path(state) / "history"
    for name in ("journal", "blobs", "live"):
        (history / name).mkdir(parents=True, mode=0o700)
    for path in (history.parent, history):
        path.chmod(0o700)
    key = secrets.token_bytes(32)
    (history / "key").write_bytes(key_file(1, 1, 0, key, bytes(32)))
    (history / "key").chmod(0o600)
    (history.parent / "verify.key").write_text(key.hex() + "\n")
    hand_over(history)
    return history


def hand_over(history):
    """By root the history is the recorder's; see src/kernel/privilege.h."""
    if os.geteuid() == 0:
        for path in (history, *history.rglob("*")):
            os.chown(path, OWNER, OWNER)


def segments(history):
    return sorted((history / "journal").glob("*.jsonl"))


def lines(history):
    """All lines of the journal as dictionaries."""
    return [json.loads(line) for path in segments(history) for line in path.read_text().splitlines()]


def check_chain(history):
    """Verifies the whole chain in ten lines of another language."""
    key = bytes.fromhex((history.parent / "verify.key").read_text())
    last, seq = bytes(32), 0
    for path in segments(history):
        for line in path.read_bytes().splitlines():
            seq += 1
            front, mac = line[:-2].rsplit(b',"mac":"', 1)
            assert hmac.new(key, front, hashlib.sha256).hexdigest().encode() == mac, seq
            told = json.loads(line)
            assert told["seq"] == seq and told["prev"] == last.hex()
            last, key = hashlib.sha256(line).digest(), next_key(key)
    assert read_key(history)[0] == seq + 1 and read_key(history)[3:] == (key, last)
    return seq


def greeting(version=VERSION):
    return message(HELLO, struct.pack("<I", version))


def entry(kind, name, body, since=0):
    body = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    return message(kind, text(name.encode()) + text(body) + (struct.pack("<Q", since) if kind == FINISH else b""))


def note(kind, event, body, since=0):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return message(NOTE, struct.pack("<B", kind) + text(event.encode()) + text(body) + struct.pack("<Q", since))


def blob(data):
    return message(BLOB, text(data))


def birth(box, after=1, name=b""):
    return message(BORN, struct.pack("<QQ", box, after) + text(name))


def death(box, cause=0, code=0, signal=0, wall=1, cpu=2, memory=3, disk=4, denied=5, name=b"", refusals=(), n_refusals=None):
    """refusals: (CALL or LIMIT, its number, how often); n_refusals lies about their number."""
    body = struct.pack("<QBII5Q", box, cause, code, signal, wall, cpu, memory, disk, denied) + text(name)
    body += struct.pack("<I", len(refusals) if n_refusals is None else n_refusals)
    return message(DIED, body + b"".join(struct.pack("<BIQ", *refusal) for refusal in refusals))


class Recorder:
    """nacre-recorder on a history, and the worker's end of its socket."""

    def __init__(self, history, blobs=0, journal=0, days=0, witness=False, prefix=(), patience=10, hello=True, place=False):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.witness, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        directory = os.open(history, os.O_RDONLY)
        self.place, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        high = [os.dup2(fd, 100 + n, False) for n, fd in enumerate((theirs.fileno(), far.fileno(), directory, inner.fileno()))]

        def places():
            for n, fd in enumerate(high):
                os.dup2(fd, 3 + n)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(OWNER, OWNER, OWNER)
                os.setresuid(OWNER, OWNER, OWNER)

        program = os.open(BUILD / "nacre-recorder", os.O_PATH)
        self.process = subprocess.Popen([*prefix, f"/proc/self/fd/{program}", str(blobs), str(journal), str(days), str(int(witness)), str(int(place))],
                                        preexec_fn=places, pass_fds=(3, 4, 5, 6, program), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for fd in (*high, directory, program):
            os.close(fd)
        theirs.close()
        far.close()
        inner.close()
        if not place:
            self.place.close()
        if not witness:
            self.witness.close()
        self.patience = patience
        self.become(ours, hello)

    def become(self, ours, hello=True):
        """This is the worker from now on."""
        self.socket = ours
        self.socket.settimeout(self.patience)
        if hello:
            self.greet()

    def greet(self):
        self.send(greeting())
        kind, body = self.receive()
        assert kind == WELCOME, (kind, body)
        version, self.lost, self.cut, self.missing, self.seq = struct.unpack("<IIQQQ", body)
        assert version == VERSION

    def call(self, hello=True):
        """The next worker comes in."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.place, [message(1, b"")], [theirs.fileno()])
        theirs.close()
        self.become(ours, hello)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()

    def send(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], control)

    def receive(self):
        """The type and the body of the next message; type 0: the recorder has closed."""
        try:
            data = self.socket.recv(70000)
        except ConnectionResetError:
            return 0, b""
        return (struct.unpack("<H", data[2:4])[0], data[8:]) if data else (0, b"")

    def note(self, *what, **more):
        """Notes it: the number of its line."""
        self.send(note(*what, **more))
        kind, body = self.receive()
        assert kind == NOTED, (kind, body)
        return struct.unpack("<Q", body)[0]

    def receipt(self):
        kind, body = self.receive()
        assert kind == RECEIPT, (kind, body)
        code, seq, size = struct.unpack("<IQI", body[:16])
        assert size == 32
        return code, seq, body[16:].hex()

    def open(self, name, **body):
        self.send(entry(OPEN, name, body))

    def finish(self, name, **body):
        self.send(entry(FINISH, name, body))
        return self.receipt()

    def run(self, name, **body):
        self.open(name)
        return self.finish(name, **body)

    def keep(self, data):
        """Keeps a blob: its digest."""
        if len(data) < 48000:
            self.send(blob(data))
        else:
            self.send(blob(b""), [sealed(data)])
        return self.digest()

    def digest(self):
        kind, body = self.receive()
        assert kind == DIGEST
        code, size = struct.unpack("<II", body[:8])
        assert size == 32
        return code, body[8:].hex()

    def end(self):
        """Closes the sockets: exit status and what was said on standard error."""
        self.socket.close()
        self.witness.close()
        self.place.close()
        error = self.process.communicate(timeout=20)[1]
        return self.process.returncode, error

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=20)
        self.socket.close()
        self.witness.close()


def sealed(data, seals=None):
    """A memfd with these bytes; F_ADD_SEALS is 1033, all seals against change 15."""
    import fcntl
    fd = os.memfd_create("blob", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data) if len(data) < 1 << 20 else [os.write(fd, data[at:at + (1 << 20)]) for at in range(0, len(data), 1 << 20)]
    fcntl.fcntl(fd, 1033, 15 if seals is None else seals)
    return fd
