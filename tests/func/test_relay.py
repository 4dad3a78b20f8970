"""nacre-relay: the box wire over a byte stream. Most of its proof is in test_spawner, test_staying and test_beside, which run through it too;
here is what the other end can do to it, how a connection is made anew, and what does not travel."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import time

import pytest

from conftest import BUILD, environment
from test_spawner import SCRIPT_OF_WIRE, an_order, start_spawner
from wire import ADOPT, DOOR, ENDED, FAILED, RUN, STARTED, TOLD, WELCOME, ask, greeting, message, order_body

HELLO, MESSAGE, DATA, CREDIT, ACK, END, RESET = range(1, 8)  # src/wire/frames.h
NULL, FROM, INTO, BOTH, SAME, MATE = range(6)
WINDOW, MESSAGES = 32 * 1024, 1024  # src/base/limits.h
RELAY_ID = 0x70000000 - 5


def frame(kind, stream=0, number=0, body=b"", size=None):
    return struct.pack("<BBHIQI", kind, 0, 0, stream, number, len(body) if size is None else size) + body


def carried(number, body, *descriptors):
    """A message with what became of its descriptors: (kind, of, stream) each."""
    return frame(MESSAGE, 0, number, bytes([len(descriptors)]) + b"".join(struct.pack("<BBI", *each) for each in descriptors) + body)


HI = frame(HELLO, 1)
WELCOMES = message(WELCOME, b"anything")


class Near:
    """A near end, with us as the worker and as the other end."""

    def __init__(self, *words):
        self.worker, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stream, stream = socket.socketpair()
        high = [fcntl.fcntl(each.fileno(), fcntl.F_DUPFD_CLOEXEC, 64) for each in (theirs, stream)]

        def places():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen([BUILD / "nacre-relay", "near", *words], preexec_fn=places, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        for each in (theirs, stream):
            each.close()
        for each in high:
            os.close(each)
        self.worker.settimeout(10)
        self.stream.settimeout(10)

    def order(self, flags=0):
        """A command with input and output: streams 1, which we may send, and 3, which we get. Returns its other ends."""
        ends = [os.pipe() for _ in range(2)]
        socket.send_fds(self.worker, [message(RUN, order_body(flags=flags))], [ends[0][0], ends[1][1], ends[1][1]])
        os.close(ends[0][0])
        os.close(ends[1][1])
        return ends[0][1], ends[1][0]

    def read_frame(self):
        head = self.exactly(20)
        kind, _, _, stream, number, size = struct.unpack("<BBHIQI", head)
        return kind, stream, number, self.exactly(size)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.stream.recv(size - len(data))
            assert part, "the relay has hung up"
            data += part
        return data

    def until(self, kind):
        while (got := self.read_frame())[0] != kind:
            pass
        return got

    def end(self):
        """Its exit status and what it said, and that the worker has seen it."""
        try:
            while self.worker.recv(70000):
                pass
        except ConnectionResetError:
            pass
        return self.process.wait(10), self.process.stderr.read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.worker.close()
        self.stream.close()


@pytest.fixture
def near():
    made = []

    def start(*words):
        made.append(Near(*words))
        return made[-1]

    yield start
    for each in made:
        each.close()


# what another end says that is none, and what the relay calls that. Stream 1 is the worker's input, of which it has
# sent 3 bytes; 3 is its output
LIES = {
    "garbage": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is no frame"),
    "zeros": (bytes(4096), "is no frame"),
    "no_greeting": (carried(0, WELCOMES), "does not greet first"),
    "two_greetings": (HI + HI, "greets twice"),
    "another_version": (frame(HELLO, 2), "another version"),
    "another_session": (frame(HELLO, 1, 12345), "another's connection"),
    "length_4_billion": (HI + frame(DATA, 3, 0, size=2 ** 32 - 1), "is no frame"),
    "message_too_long": (HI + frame(MESSAGE, 0, 0, size=80000), "is no frame"),
    "unknown_type": (HI + frame(9, 1), "is no frame"),
    "message_left_out": (HI + carried(1, WELCOMES), "numbers its messages wrongly"),
    "message_twice": (HI + carried(0, WELCOMES) * 2, "numbers its messages wrongly"),
    "list_too_long": (HI + frame(MESSAGE, 0, 0, b"\xff"), "a broken message"),
    "list_that_refers_to_itself": (HI + carried(0, message(ADOPT, bytes(16)), (SAME, 0, 0)), "a broken message"),
    "no_message_of_ours": (HI + carried(0, b"junk"), "no message"),
    "message_of_a_worker": (HI + carried(0, message(RUN, order_body())), "no holder says"),
    "end_with_a_descriptor": (HI + carried(0, message(ENDED, bytes(8)), (FROM, 0, 2)), "no holder says"),
    "start_with_a_pipe": (HI + carried(0, message(STARTED, bytes(18)), (FROM, 0, 2)), "no holder says"),
    "adoption_with_four": (HI + carried(0, message(ADOPT, bytes(16)), *[(FROM, 0, 2 + 2 * n) for n in range(4)]), "no holder says"),
    "our_number_for_a_stream": (HI + carried(0, message(ADOPT, bytes(16)), (FROM, 0, 5)), "numbers its streams wrongly"),
    "stream_left_out": (HI + carried(0, message(ADOPT, bytes(16)), (FROM, 0, 4)), "numbers its streams wrongly"),
    "too_many_streams": (HI + b"".join(carried(n, message(ADOPT, bytes(16)), *[(FROM, 0, 2 + 6 * n + 2 * k) for k in range(3)]) for n in range(90)),
                         "too many streams"),
    "data_of_no_stream": (HI + frame(DATA, 99, 0, b"x"), "there never was"),
    "data_of_our_stream": (HI + frame(DATA, 1, 0, b"x"), "leaves bytes out"),
    "bytes_left_out": (HI + frame(DATA, 3, 1, b"x"), "leaves bytes out"),
    "bytes_twice": (HI + frame(DATA, 3, 0, b"xx") + frame(DATA, 3, 1, b"x"), "sends bytes again"),
    "beyond_its_credit": (HI + frame(DATA, 3, 0, bytes(WINDOW)) + frame(DATA, 3, WINDOW, b"x" * 100000) * 2, "again|credit"),
    "end_too_early": (HI + frame(DATA, 3, 0, b"xyz") + frame(END, 3, 2), "where it does not end"),
    "end_too_late": (HI + frame(END, 3, 2 ** 63), "where it does not end"),
    "acknowledges_the_future": (HI + frame(ACK, 1, 4), "what was not sent"),
    "acknowledges_messages_of_the_future": (HI + frame(ACK, 0, 50), "what was not sent"),
    "acknowledges_backwards": (HI + frame(ACK, 1, 3) + frame(ACK, 1, 2), "what was not sent"),
    "acknowledges_its_own": (HI + frame(ACK, 3, 0), "does not have"),
    "takes_credit_back": (HI + frame(CREDIT, 1, 5), "takes credit back"),
    "resets_its_own": (HI + frame(RESET, 3), "does not have"),
    "resets_the_future": (HI + frame(RESET, 5), "does not have"),
    "farewell_of_no_kind": (HI + frame(END, 0, 2), "unknown way"),
    "farewell_in_anger": (HI + frame(END, 0, 1), "wants it so"),
    "more_than_was_asked": (HI + b"".join(carried(n, message(TOLD)) for n in range(MESSAGES + 10)), "more than it was asked"),
}


@pytest.mark.parametrize("name", LIES)
def test_who_lies_is_hung_up_on(near, name):
    """With a reason, and at once; to the worker it is the death of a holder."""
    data, reasons = LIES[name]
    relay = near()
    to_program, from_program = relay.order()
    os.write(to_program, b"abc")
    relay.until(DATA)
    try:
        relay.stream.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    code, error = relay.end()
    assert code == 125 and any(reason in error for reason in reasons.split("|")), (code, error)
    assert os.read(from_program, 65536).strip(b"xyz\0") == b"" and len(error.splitlines()) == 1
    os.close(to_program)
    os.close(from_program)


def test_who_hangs_up_in_the_middle_of_a_frame(near):
    relay = near()
    relay.stream.sendall(HI + frame(DATA, 3, 0, size=100)[:10])
    relay.stream.close()
    assert relay.end() == (125, "nacre-relay: the connection is given up: It is lost\n")


def test_who_goes_on_about_a_stream_that_is_gone(near):
    """The worker reads no more: what was on its way is passed over, all that comes for ever is not."""
    relay = near()
    to_program, from_program = relay.order()
    relay.until(MESSAGE)
    os.close(from_program)
    relay.stream.sendall(HI + frame(DATA, 3, 0, b"x" * 100))
    assert relay.until(RESET)[1] == 3
    sent = 0
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        while sent < 1 << 30:
            relay.stream.sendall(frame(DATA, 3, 0, bytes(10000)) * 10)
            sent += 100000
    code, error = relay.end()
    assert code == 125 and "streams that are gone" in error
    os.close(to_program)


def test_silence_is_not_waited_for_for_ever(near):
    """Neither for a greeting nor for a message to be acknowledged; who is asked nothing may be silent."""
    mute, deaf, quiet = near(), near(), near()
    deaf.stream.sendall(HI)
    quiet.stream.sendall(HI)
    deaf.worker.send(greeting())
    start = time.monotonic()
    for relay in (mute, deaf):
        code = relay.process.wait(60)
        assert code == 125 and "not answered for too long" in relay.process.stderr.read()
        assert 25 < time.monotonic() - start < 50
    assert quiet.process.poll() is None
    quiet.worker.close()
    assert quiet.process.wait(10) == 0


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_kib(pid):
    return int(next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM")).split()[1])


def test_a_flood_has_to_wait(near):
    """Frames that are in order and lead nowhere, as fast as they are taken: they take a small share of one processor."""
    relay = near()
    relay.worker.send(greeting())
    relay.until(MESSAGE)
    relay.stream.sendall(HI)
    flood, sent = frame(ACK, 0, 1) * 10000, 0
    start, before = time.monotonic(), cpu_seconds(relay.process.pid)
    while time.monotonic() - start < 3:
        relay.stream.sendall(flood)
        sent += 10000
    used = cpu_seconds(relay.process.pid) - before
    assert relay.process.poll() is None and sent >= 100000
    assert used < 0.4, (sent, used)


def test_its_memory_is_bounded(near):
    """All streams that there can be, filled, and nobody reads; and a worker that posts what nobody acknowledges."""
    relay = near()
    relay.stream.sendall(HI)
    held = []
    for n in range(85):
        ends = [os.pipe() for _ in range(3)]
        socket.send_fds(relay.worker, [an_order(n + 1)], [ends[0][0], ends[1][1], ends[2][1]])
        for each in (ends[0][0], ends[1][1], ends[2][1]):
            os.close(each)
        held += [ends[0][1], ends[1][0], ends[2][0]]
    for n in range(85):
        assert relay.until(MESSAGE)[2] == n
    for n in range(85):
        for stream in (6 * n + 3, 6 * n + 5):
            relay.stream.sendall(frame(DATA, stream, 0, bytes(WINDOW)))
    relay.worker.setblocking(False)
    os.set_blocking(held[0], False)
    posted = 0
    for _ in range(200):
        try:
            relay.worker.send(message(77, bytes(60000)))
            posted += 1
        except BlockingIOError:
            time.sleep(0.01)
        for fd in held[::3]:
            os.set_blocking(fd, False)
            try:
                os.write(fd, bytes(65536))
            except BlockingIOError:
                pass
    assert relay.process.poll() is None and 20 < posted < 100
    assert memory_kib(relay.process.pid) < 24 * 1024
    for fd in held:
        os.close(fd)


def test_it_has_no_rights(near, as_root):
    relay = near()
    relay.stream.sendall(HI)
    relay.worker.send(greeting())
    relay.until(MESSAGE)  # it has begun
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{relay.process.pid}/status").read().splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(RELAY_ID)} and not status["Groups"].strip()
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    fds = {os.readlink(f"/proc/{relay.process.pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{relay.process.pid}/fd")}
    assert fds <= {"socket", "/dev/null", "pipe"}, fds


@pytest.mark.parametrize("words", [[], ["near"], ["middle"], ["near", "1", "2"]])
def test_it_is_not_for_hands(words):
    done = subprocess.run([BUILD / "nacre-relay", *words], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (125, "nacre-relay is started by nacre, not by hand\n")


# ---- with a spawner ----


@pytest.fixture
def converse(programs):
    """Runs a script with a greeted `worker`, through the relay; gives what it printed."""

    def run(script, place=False, **options):
        line = f"\nplaces = through_relay({str(programs / 'nacre-relay')!r}, {place})\nworker = Worker(); worker.hello()\nimport time\n"
        process = start_spawner("-c", SCRIPT_OF_WIRE + line + script, **options)
        output, error = process.communicate(timeout=60)
        assert process.returncode == 0 and not error, (process.returncode, output, error)
        return output

    return run


def test_what_cannot_travel_is_answered(converse):
    """And the connection lives on."""
    output = converse(f"""
kind, body, _ = worker.finish(1, flags={DOOR})
print(kind, struct.unpack_from("<QBI", body), body[17:].decode())
directory = os.open("/usr", os.O_RDONLY)
kind, body, _ = worker.finish(2, layers=[0], layer_fds=[directory])
print(kind, struct.unpack_from("<QBI", body), body[17:].decode())
print(worker.finish(3, argv=(b"echo", b"hi"))[2])
""")
    text = "Neither directories nor a way to the network can be handed on to there"
    assert output == f"{FAILED} (1, 1, 95) {text}\n{FAILED} (2, 1, 95) {text}\nb'hi\\n'\n"


def test_input_and_output_of_any_size(converse):
    output = converse("""
import hashlib, threading
stdin, ours = os.pipe()
data = os.urandom(1 << 20) * 5
def feed():
    view = memoryview(data)
    while view: view = view[os.write(ours, view[:100000]):]
    os.close(ours)
threading.Thread(target=feed).start()
output = worker.run(1, argv=(b"cat",), stdin=stdin)
got = b""
while part := os.read(output, 1 << 16): got += part
print(len(got), got == data, worker.receive()[0], read_end(worker.receive()[1])["code"])
""")
    assert output == f"{5 << 20} True {STARTED} 0\n"


def test_output_that_nobody_reads_any_more(converse):
    """The program is told as it would be without a relay: SIGPIPE."""
    output = converse("""
output = worker.run(1, argv=(b"yes",))
os.read(output, 100000)
os.close(output)
print(worker.receive()[0], read_end(worker.receive()[1])["signal"])
""")
    assert output == f"{STARTED} 13\n"


def test_input_that_nobody_reads_any_more(converse):
    output = converse("""
stdin, ours = os.pipe()
output = worker.run(1, argv=(b"sh", b"-c", b"exec <&-; sleep 1"), stdin=stdin)
start = time.monotonic()
try:
    while True: os.write(ours, bytes(65536))
except BrokenPipeError:
    print("broken", time.monotonic() - start < 5)
""")
    assert output == "broken True\n"


def test_more_commands_than_there_can_be_streams(converse):
    """The box wire goes on: what there is no room for is refused."""
    output = converse("""
kinds, outputs = {}, []
for n in range(300):
    outputs.append(worker.run(n + 1, argv=(b"sleep", b"0.5"), wall=20000))
for n in range(2):
    while len(kinds) < 300 and (got := worker.receive())[0] in (STARTED, ENDED, FAILED):
        if got[0] != STARTED: kinds[struct.unpack("<Q", got[1][:8])[0]] = got[0]
print(len([k for k in kinds.values() if k == ENDED]) >= 200, len([k for k in kinds.values() if k == FAILED]) > 0, len(kinds))
print(worker.finish(1000, argv=(b"echo", b"hi"))[2])
""")
    assert output == "True True 300\nb'hi\\n'\n"


# hands the next stream in to both ends, as whoever has made the connection anew
ANEW = """
def anew():
    ends = socket.socketpair()
    for place, end in zip(places, ends):
        socket.send_fds(place, [message(1)], [end.fileno()])
        end.close()
"""


def test_a_connection_that_is_made_anew_goes_on_where_it_was(converse):
    """Ten times in the middle of output, input and messages: nothing is lost and nothing comes twice."""
    output = converse(ANEW + """
import threading
stdin, ours = os.pipe()
data = b"".join(b"%07d\\n" % n for n in range(1000000))
def feed():
    view = memoryview(data)
    while view: view = view[os.write(ours, view[:30000]):]
    os.close(ours)
threading.Thread(target=feed).start()
output = worker.run(1, argv=(b"cat",), stdin=stdin, wall=50000)
got, cuts = b"", 0
while part := os.read(output, 1 << 16):
    got += part
    if len(got) > 200000 * (cuts + 1) and cuts < 10:
        worker.send(ask(1))
        anew()
        cuts += 1
kinds = []
while len(kinds) < 12: kinds.append(worker.receive()[0])
print(cuts, got == data, kinds.count(STARTED), kinds.count(TOLD), kinds.count(ENDED))
""", place=True)
    assert output == "10 True 1 10 1\n"


def test_a_connection_that_is_not_made_anew_is_the_end(programs):
    """Of the near end: without a place it waits for nobody."""
    relay = Near()
    relay.stream.close()
    assert relay.end()[0] == 125
    relay.close()


def test_the_death_of_the_worker_is_the_end_of_its_boxes(programs):
    script = f"""
through_relay({str(programs / 'nacre-relay')!r})
worker = Worker(); worker.hello()
worker.run(1, argv=(b"sleep", b"98763521"), wall=100000)
worker.receive()
os.kill(os.getpid(), 9)
"""
    process = start_spawner("-c", SCRIPT_OF_WIRE + script)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 0 and not error
    assert subprocess.run(["pgrep", "-f", "^sleep 98763521$"], capture_output=True).returncode == 1


def test_the_death_of_the_spawner_is_seen(programs):
    """What was printed before it comes still."""
    script = f"""
import time
through_relay({str(programs / 'nacre-relay')!r})
worker = Worker(); worker.hello()
output = worker.run(1, argv=(b"sh", b"-c", b"head -c 200000 /dev/zero; sleep 1000"), wall=100000)
worker.receive()
time.sleep(0.5)
print("ready", flush=True)
size = 0
while part := os.read(output, 1 << 16): size += len(part)
print(worker.receive()[0], size, flush=True)
"""
    process = start_spawner("-c", SCRIPT_OF_WIRE + script)
    try:
        assert process.stdout.readline() == "ready\n"
        process.kill()
        assert process.stdout.readline() == "0 200000\n"
    finally:
        process.kill()
        process.communicate(timeout=20)


# ---- with the worker itself ----

# in the place of nacre-spawner, beside `nacre`: its worker is there already, and the spawner's is the far end
SPAWNER = """#!/usr/bin/python3 -ISE
import fcntl, os, signal, socket, sys
here = os.path.dirname(os.path.realpath(__file__))
ours, theirs = socket.socketpair()
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)

def place(*pairs):
    for fd, to in [(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64), to) for fd, to in pairs]:
        os.dup2(fd, to)

if os.fork() == 0:
    place((3, 3), (ours.fileno(), 4))
    os.closerange(5, 64)
    os.execv(here + "/nacre-relay", ["nacre-relay", "near"])
os.close(3)
ours.close()
if os.fork() == 0:
    place((os.open(here + "/nacre-relay", os.O_RDONLY), 4), (theirs.fileno(), 32))
    binds, _, _, patience, lasting = (sys.argv[3] + ",0,0,0,0").split(",")[:5]
    for number in range(int(binds)):
        os.set_inheritable(5 + number, True)
    os.execv(here + "/real/nacre-spawner", ["nacre-spawner", "0", sys.argv[2], f"{binds},0,1,{patience},{lasting}", "nacre-relay", "far"])
theirs.close()
_, status = os.waitpid(int(sys.argv[1]), 0)
os.wait(), os.wait()
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
"""


@pytest.fixture(params=["root", "user"])
def nacre_there(programs, tmp_path, request):
    """nacre, whose boxes are held behind two relays; the programs are the same."""
    directory = programs / "relayed"
    if not directory.exists():
        (directory / "real").mkdir(parents=True)
        for path in programs.iterdir():
            if path.is_file():
                shutil.copy(path, directory / ("real" if path.name == "nacre-spawner" else "."))
        for name in ("nacre-init", "nacre-files"):
            shutil.copy(programs / name, directory / "real")
        (directory / "nacre-spawner").write_text(SPAWNER)
        (directory / "nacre-spawner").chmod(0o755)
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if request.param == "user" else []

    def run(*words, **options):
        return subprocess.run([*prefix, directory / "nacre", *words], capture_output=True, text=True, timeout=60, cwd="/",
                              env=environment("/nonexistent" if prefix else tmp_path), **options)

    return run


def test_nacre_exec_through_the_relay(nacre_there):
    done = nacre_there("exec", "--", "sh", "-c", "cat; echo error >&2; exit 7", input="input\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "input\n", "error\n")
    done = nacre_there("exec", "--timeout", "200ms", "--", "sleep", "50")
    assert done.returncode == 124 and "nacre" in done.stderr
    done = nacre_there("exec", "--", "no-such-program")
    assert done.returncode == 127
    done = nacre_there("exec", "--", "sh", "-c", "kill -TERM $$")
    assert done.returncode == 143
    done = nacre_there("exec", "--output", "1MB", "--", "head", "-c", "1000000", "/dev/zero")
    assert (done.returncode, len(done.stdout)) == (0, 1000000)


def test_nacre_run_through_the_relay(nacre_there):
    done = nacre_there("run", "--lang", "python", "-", input="print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n"), done
