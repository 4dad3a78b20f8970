"""The messages between a worker and nacre-spawner (src/kernel/boxwire.h), written as a hostile worker would: everything
can be wrong. Tests import it, and send its text in front of the scripts that they start as workers."""

import array
import fcntl
import os
import socket
import struct

VERSION = 7
HELLO, RUN, KILL, READY, FORGET, NEXT, SIGNAL, FREEZE, ASK, RESIZE, HAD, INTRODUCE = range(1, 13)
WELCOME, STARTED, ENDED, FAILED, ADOPT, TOLD, ANSWER = range(101, 108)
NUMBER = 9  # of a request, where it does not matter
CONTAINER, PROCESS, REMOTE = 0, 1, 5
TTY, KEEP, STAY, FILES, DOOR, HOME, ALONE, ZYGOTE, AHEAD, GUESTS, USERS, WRITABLE = [1 << i for i in range(12)]
IMAGE, PACK = 1 << 20, 1 << 21  # no flags on the wire: a descriptor of the kind comes
FD_INPUT, FD_OUTPUT, FD_ERROR, FD_PACK, FD_IMAGE, FD_LAYER, FD_LAYER_WRITABLE, FD_OWN_INPUT, FD_OWN_OUTPUT, FD_OWN_ERROR, FD_TERMINAL, FD_DOOR, FD_WORDS = range(13)
PROPERTIES = ("filesystem", "identity", "processes", "network", "ipc", "syscalls", "access", "memory", "cpu", "pids", "disk", "io", "kill", "hypervisor")
GRADES = ("none", "reduced", "full")
EXIT, WALL, CPU, MEMORY, OUTPUT, CANCEL = range(6)
MB = 1 << 20
USUAL, PLACE = CONTAINER, b"/workspace"  # of orders that name none; % is the number of the box
LIMITS = dict(memory=256 * MB, cpu=1000, cpu_time=0, wall=5000, pids=16, disk=MB, inodes=300, files=64)


def of_holder(data):
    """An order that was written for the spawner, as the other holder would have it."""
    kind, at = struct.unpack_from("<H", data, 2)[0] if len(data) > 4 else 0, 8 + 4 + 11 * 8
    if kind not in (RUN, NEXT) or len(data) <= at or data[at] not in (CONTAINER, PROCESS):
        return data
    return data[:at] + bytes([REMOTE]) + data[at + 1:].replace(b"/workspace", b"/tmp/././.", 1)


def message(kind, body=b"", number=NUMBER, **lies):
    """Of the box wire, where requests have numbers."""
    return plain_message(kind, struct.pack("<I", number) + body if HELLO < kind < WELCOME else body, **lies)


def plain_message(kind, body=b"", magic=0x634E, size=None):
    return struct.pack("<HHI", magic, kind, len(body) if size is None else size) + body


def text(word):
    return struct.pack("<I", len(word)) + word


def words(*items):
    return struct.pack("<I", len(items)) + text(b"".join(item + b"\0" for item in items))


def sizes(items):
    """Of words that come beside a message."""
    return struct.pack("<II", len(items), sum(len(item) + 1 for item in items))


def kinds_of(flags, layers):
    """Of the descriptors that come with an order."""
    pipes = [] if flags & TTY else [FD_INPUT, FD_OUTPUT, FD_ERROR]
    own = [FD_OWN_INPUT, FD_OWN_OUTPUT, FD_OWN_ERROR] if flags & KEEP and not flags & TTY else []
    return [*pipes, *[FD_PACK] * bool(flags & PACK), *[FD_IMAGE] * bool(flags & IMAGE), *[FD_LAYER + writable for writable in layers], *own]


def order_body(identity=1, argv=(b"true",), env=(), directory=None, tier=None, flags=0, required=None,
               rows=24, columns=80, home=0, zygote=0, binds=(), n_binds=None, layers=(), kinds=None, n_fds=None, name=b"", user=b"", **limits):
    """required: grades by property; binds: (index, writable, target); layers: writable or not, each; kinds: of descriptors, others than those of an
    honest worker; n_binds and n_fds lie about their number."""
    assert set(limits) <= set(LIMITS), limits
    tier, directory = USUAL if tier is None else tier, PLACE.replace(b"%", b"%d" % (home or identity)) if directory is None else directory
    values = {**LIMITS, **limits}
    body = struct.pack("<11Q", identity, home, zygote, *values.values())
    grades = [GRADES.index((required or {}).get(name, "none")) for name in PROPERTIES]
    body += struct.pack("<BI", tier, flags & ~(IMAGE | PACK)) + bytes([len(grades), *grades]) + struct.pack("<II", rows, columns)
    body += struct.pack("<I", len(binds) if n_binds is None else n_binds)
    body += b"".join(struct.pack("<IB", index, writable) + text(target) for index, writable, target in binds)
    kinds = kinds_of(flags, layers) if kinds is None else kinds
    body += bytes([len(kinds) if n_fds is None else n_fds, *kinds])
    body += text(name) + text(directory)
    return body + (sizes(argv) + sizes(env) if FD_WORDS in kinds else words(*argv) + words(*env)) + text(user)


def order(*identity, **fields):
    return message(RUN, order_body(*identity, **fields))


def pack_head(kind, path=b"", size=0, executable=0, error=0):
    """Of the stream that nacre-files reads and writes (src/base/pack.h)."""
    return struct.pack("<BBHIQ", kind, executable, len(path), error, size) + path


def greeting(version=VERSION):
    return message(HELLO, struct.pack("<I", version))


def kill(identity, cause=CANCEL, **number):
    return message(KILL, struct.pack("<QB", identity, cause), **number)


def ready(count, zygote=0, **number):
    return message(READY, struct.pack("<QI", zygote, count), **number)


def ask(identity, **number):
    return message(ASK, struct.pack("<Q", identity), **number)


def forget(identity):
    return message(FORGET, struct.pack("<Q", identity))


def signal(identity, which, **number):
    return message(SIGNAL, struct.pack("<QI", identity, which), **number)


def freeze(identity, frozen, **number):
    return message(FREEZE, struct.pack("<QB", identity, frozen), **number)


def resize(identity, rows, columns, **number):
    return message(RESIZE, struct.pack("<QII", identity, rows, columns), **number)


def had(identity, output, error, **number):
    return message(HAD, struct.pack("<QQQ", identity, output, error), **number)


def read_end(body):
    """An ENDED as a dictionary; what held it under "held"."""
    names = ("id", "cause", "code", "signal", "tier", "alone", "hit", "stays", "wall_ns", "cpu_user_us", "cpu_system_us", "memory_peak", "pids_peak",
             "oom_kills", "pids_refused", "disk_bytes", "switches", "io_read", "io_written", "net_received", "net_sent", "n_denied")
    head, rest = struct.calcsize("<QBIIB"), "<BIB13QI"
    held = body[head + 1:head + 1 + body[head]]
    at = head + 1 + len(held)
    values = struct.unpack("<QBIIB", body[:head]) + struct.unpack(rest, body[at:at + struct.calcsize(rest)])
    return {**dict(zip(names, values)), "held": {name: GRADES[grade] for name, grade in zip(PROPERTIES, held)}}


def read_terms(body):
    """Of a WELCOME: by the number of the tier, what its boxes can do and hold, and their grades."""
    at = 9 + struct.unpack_from("<I", body, 5)[0]
    found, n, at = {}, body[at], at + 1
    for _ in range(n):
        tier, can, holds, grades = struct.unpack_from("<BIIB", body, at)
        names = [name for bit, name in enumerate(("stops", "shares", "mounts", "warms")) if can >> bit & 1]
        names += [name for bit, name in enumerate(("memory", "cpus", "cpu_time", "pids", "disk", "inodes")) if holds >> bit & 1]
        found[tier] = set(names), {name: GRADES[grade] for name, grade in zip(PROPERTIES, body[at + 10:at + 10 + grades])}
        at += 10 + grades
    return found


def through_relay(program, place=False):
    """Puts two relays with a byte stream between the spawner, behind descriptor 3, and whoever calls this in a script that the spawner
    has started: this process becomes the far one, and a child of it goes on. With places the stream can be replaced: gives both."""
    stream, pair = socket.socketpair(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    places = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)] if place else []

    def become(role, fds):
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64) for descriptor in fds]  # out of each other's way
        for number, descriptor in enumerate(high):
            os.dup2(descriptor, 3 + number)
        os.closerange(3 + len(fds), 256)
        os.execv(program, ["nacre-relay", role, *(["1"] if place else [])])

    if os.fork() == 0:
        become("near", [pair[1].fileno(), stream[0].fileno(), *([places[0][1].fileno()] if place else [])])
    if os.fork() > 0:
        become("far", [3, stream[1].fileno(), *([places[1][1].fileno()] if place else [])])
    os.dup2(pair[0].fileno(), 3)
    return [ours for ours, _ in places]  # the rest closes itself


def call(place, kind=socket.SOCK_SEQPACKET):
    """Calls at a place (src/base/meeting.h): our end of a fresh pair."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    socket.send_fds(place, [message(1)], [theirs.fileno()])
    return ours


def start_holder(program, environment=None):
    """Forks the holder of plain processes (tests/holder), with a place at which it can be called: that, and its pid."""
    place, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(theirs.fileno(), 3)
            os.closerange(4, 256)
            os.execve(program, ["nacre-plain"], os.environ if environment is None else environment)
        finally:
            os._exit(99)
    return place, pid


def through_holder(program):
    """Puts another holder in the place of the spawner, behind descriptor 3. It ends with whoever calls this."""
    global USUAL
    USUAL = REMOTE
    place, _ = start_holder(program)
    ours = call(place)
    os.dup2(ours.fileno(), 3)


class Worker:
    """The worker's end of the pair; used by scripts that the spawner has started, where it is descriptor 3."""

    def __init__(self, fd=3, patience=10):
        self.socket = socket.socket(fileno=fd)
        self.socket.settimeout(patience)
        self.answers = []  # (number, errno), as they came

    def send(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], control)

    def receive_any(self):
        """The type, the body and the descriptors of the next message; type 0: the spawner has closed."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, 70000, 8)
        except ConnectionResetError:
            return 0, b"", []
        kind, body = (struct.unpack("<H", data[2:4])[0], data[8:]) if data else (0, b"")
        if kind == WELCOME and USUAL == REMOTE:  # without mounts it works where its holder says
            global PLACE
            PLACE = self.scratch(body).encode() + b"/%/workspace"
        if kind == ANSWER:
            self.answers.append(struct.unpack("<II", body))
        return kind, body, fds

    def receive(self):
        """The same but for answers, which are noted."""
        kind, body, fds = self.receive_any()
        return (kind, body, fds) if kind != ANSWER else self.receive()

    def answered(self, data, fds=()):
        """Sends a request and gives the errno of its answer, where nothing else can come before that."""
        self.send(data, fds)
        kind, body, _ = self.receive_any()
        assert kind == ANSWER and struct.unpack("<I", body[:4]) == struct.unpack("<I", data[8:12]), (kind, body)
        return struct.unpack("<I", body[4:])[0]

    def hello(self, version=VERSION, more=b""):
        self.send(message(HELLO, struct.pack("<I", version) + more))
        kind, body, _ = self.receive()
        assert kind == WELCOME, kind
        self.welcome = body
        return body

    def scratch(self, body):
        """The directory of process boxes, from a WELCOME."""
        return body[9:9 + struct.unpack("<I", body[5:9])[0]].decode()

    def run(self, *identity, keep=False, kind=RUN, stdin=None, kept_stdin=None, layer_fds=(), **fields):
        """Orders a box whose output and error are one pipe, and gives its reading end."""
        output, theirs = os.pipe()
        null = os.open("/dev/null", os.O_RDWR) if stdin is None else stdin
        fds = [null, theirs, theirs, *layer_fds] + ([null if kept_stdin is None else kept_stdin, output, output] if keep else [])
        self.send(message(kind, order_body(*identity, flags=fields.pop("flags", 0) | (KEEP if keep else 0), **fields)), fds)
        os.close(theirs)
        os.close(null)
        return output

    def finish(self, *identity, **fields):
        """Runs a command to its end: the type of the last message, its body, and what was printed."""
        output = self.run(*identity, **fields)
        kind, body, _ = self.receive()
        if kind == STARTED:
            kind, body, _ = self.receive()
        data = b""
        while part := os.read(output, 65536):
            data += part
        os.close(output)
        return kind, body, data
