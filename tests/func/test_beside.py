"""Commands beside each other in one box that stays: each with processes, limits and an end of its own. A box's door: the
socket that listens in it. Signals, and standing still."""

import os

import pytest

from test_staying import play, tier  # noqa: F401: fixtures
from wire import CANCEL, DOOR, FD_DOOR, GUESTS, ENDED, EXIT, FAILED, FILES, HOME, IMAGE, KEEP, RUN, STARTED, STAY, WALL, greeting, message, order, order_body

# added to the script of test_staying: begin() starts a command in box 1 as `identity`, messages() sorts what comes
HELPERS = r"""
homes = {}
def begin(identity, script, flags=0, **fields):
    homes[identity] = worker.run(identity, home=1, argv=(b"sh", b"-c", script), flags=flags, tier=tier, directory=where,
                                 **{"env": (b"PATH=/usr/bin:/bin",), "pids": 50, **fields})
    return homes[identity]
def until(*wanted):
    # messages by (kind, identity), until all of these have come
    found = {}
    while set(wanted) - set(found):
        kind, body, fds = worker.receive()
        identity = struct.unpack("<Q", body[:8])[0]
        found[kind, identity] = read_end(body) if kind == ENDED else fds if kind == STARTED else body[13:].decode(errors="replace")
    return found
def whole(fd):
    data = b""
    while part := os.read(fd, 65536): data += part
    return data
"""


@pytest.fixture
def beside(play):  # noqa: F811
    def run(body):
        indented = "\n".join(HELPERS.strip().split("\n"))
        return play("global homes, begin, until, whole\n" + indented + "\n" + body.strip())

    return run


@pytest.fixture
def groups(request):
    """Whether commands can run beside each other here: not for a user without control groups."""
    return "root" in request.node.name


def test_commands_run_beside_each_other(beside, groups):
    got = beside("""
first(b"true", flags=STAY | HOME)
a = begin(2, b"echo from a >a; while [ ! -e b ]; do sleep 0.01; done; cat b; exit 3")
b = begin(3, b"while [ ! -e a ]; do sleep 0.01; done; cat a; echo from b >b; exit 4")
found = until((ENDED, 2), (ENDED, 3))
return {key: (value["code"], value["cause"], value["stays"]) for key, value in found.items() if key[0] == ENDED}, whole(a), whole(b), sh(b"cat a b")[2]
""") if groups else None
    if groups:
        ends, a, b, after = got
        assert ends == {(ENDED, 2): (3, EXIT, 0), (ENDED, 3): (4, EXIT, 0)}
        assert (a, b, after) == (b"from b\n", b"from a\n", b"from a\nfrom b\n")


SERVER = """import socket
s = socket.create_server(("127.0.0.1", 8080))
print("up", flush=True)
while True:
    c, _ = s.accept()
    data = b""
    while part := c.recv(65536):
        data += part
    c.sendall(str(len(data)).encode() * 50000)
    c.close()
"""


def test_a_port_of_the_box_is_reached_from_inside_it(beside, groups, tier, terms):  # noqa: F811
    """Both directions, the end of each, more than any buffer; and a port where nobody listens says so."""
    if not groups or tier == "process":
        pytest.skip("needs control groups and a network of its own")
    terms("mounts")  # who has these has a network of its own
    counted, other, refused = beside(f"""
first(b"true", flags=STAY | HOME)
os.read(begin(2, b"exec python3 -c '" + {SERVER!r}.encode() + b"'"), 2)
def dial(identity, port, data):
    source, feed = os.pipe()
    output = worker.run(identity, home=1, argv=(b"nacre-files", b"dial", port), flags=FILES, stdin=source, tier=tier, directory=where, pids=50)
    until((STARTED, identity))
    while data:
        data = data[os.write(feed, data):]
    os.close(feed)
    got = whole(output)
    return got, until((ENDED, identity))[ENDED, identity]["code"]
return dial(3, b"8080", bytes(1000000)), dial(4, b"8080", b"x"), dial(5, b"8081", b"")
""")
    assert counted == (b"1000000" * 50000, 0) and other == (b"1" * 50000, 0)
    assert refused[0].startswith(b"Connect to port 8081") and refused[1] > 0


def test_where_there_are_no_groups_it_is_refused(beside, groups):
    if groups:
        pytest.skip("there are groups")
    kind, text = beside("""
first(b"true", flags=STAY | HOME)
begin(2, b"true")
found = until((FAILED, 2))
return FAILED, found[FAILED, 2]
""")
    assert kind == FAILED and "one command at a time" in text


def test_the_end_of_one_is_not_the_end_of_others(beside, groups):
    """Its time is up: everything that it started dies, in whatever session; its neighbour and the box do not notice."""
    if not groups:
        pytest.skip("needs control groups")
    before, after, end, neighbour, last = beside("""
def there(): return os.popen("pgrep -fc '^sleep 98761[0-9][0-9][0-9]$'").read().strip()  # from outside: inside, none is seen
first(b"true", flags=STAY | HOME)
b = begin(3, b"sleep 1.2; echo alive")
a = begin(2, b"setsid sh -c 'sleep 98761000 & sleep 98761001' & nohup sleep 98761002 & sleep 98761003", wall=600)
until((STARTED, 2))
time.sleep(0.3)
before = there()
found = until((ENDED, 2))
after = there()
end = until((ENDED, 3))[ENDED, 3] if (ENDED, 3) not in found else found[ENDED, 3]
return before, after, found[ENDED, 2], (end["code"], whole(b)), sh(b"echo still")[2]
""")
    assert (before, after) == ("4", "0") and end["cause"] == WALL
    assert neighbour == (0, b"alive\n") and last == b"still\n"


def test_each_has_its_own_limits_and_bill(beside, groups, terms):
    terms("memory")
    if not groups:
        pytest.skip("needs control groups")
    hungry, modest = beside("""
first(b"true", flags=STAY | HOME)
begin(2, b"head -c 100000000 /dev/zero | tail", memory=32 * MB)
begin(3, b"sleep 0.8; exit 7", memory=64 * MB)
found = until((ENDED, 2), (ENDED, 3))
return found[ENDED, 2], found[ENDED, 3]
""")
    assert hungry["oom_kills"] > 0 and (modest["code"], modest["oom_kills"]) == (7, 0)
    assert modest["memory_peak"] < 32 << 20 < hungry["memory_peak"] + (4 << 20)


def test_the_limits_of_the_home_hold_for_all_together(beside, groups, terms):
    """Each would fit, both do not: memory of one that lives counts against its neighbour, and so do its processes."""
    terms("memory", "pids")
    if not groups:
        pytest.skip("needs control groups")
    eaters, forks, now = beside("""
first(b"true", flags=STAY | HOME, memory=96 * MB, pids=12)
eat = b"python3 -c 'import time; x = bytearray(60 << 20); print(1, flush=True); time.sleep(3)'"
a = begin(2, eat, memory=90 * MB, wall=20000)
os.read(a, 1)
worker.send(ask(1))
kind, body, _ = worker.receive()
while kind != TOLD: kind, body, _ = worker.receive()
now = struct.unpack_from("<10QB", body)
begin(3, eat, memory=90 * MB, wall=20000)
found = until((ENDED, 3), (ENDED, 2))
b = begin(4, b"for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait; echo all")
c = begin(5, b"for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait; echo all")
until((ENDED, 4), (ENDED, 5))
return [found[ENDED, i]["oom_kills"] for i in (2, 3)], whole(b).endswith(b"all\\n") and whole(c).endswith(b"all\\n"), now
""")
    assert sum(eaters) > 0 and not forks
    assert now[0] == 1 and 60 << 20 < now[2] < 97 << 20 and 1 <= now[4] <= 12 and now[10] == 0


def test_terminals_beside_each_other(beside, groups, tier):  # noqa: F811
    if not groups or tier == "process":
        pytest.skip("needs control groups and a /dev of its own")
    first, second = beside("""
first(b"true", flags=STAY | HOME)
fds = []
for identity in (2, 3):
    worker.send(message(RUN, order_body(identity, home=1, argv=(b"sh", b"-c", b"tty; stty size; read line; echo got $line"), flags=TTY, rows=20 + identity,
                                        tier=tier, directory=where, env=(b"PATH=/usr/bin:/bin",), pids=50)))
    fds += until((STARTED, identity))[STARTED, identity]
for fd in fds: os.write(fd, b"word\\n")
until((ENDED, 2), (ENDED, 3))
texts = []
for fd in fds:
    data = b""
    try:
        while part := os.read(fd, 999): data += part
    except OSError: pass
    texts.append(data)
return texts
""")
    assert b"/dev/pts/" in first and b"22 80" in first and b"got word" in first
    assert b"/dev/pts/" in second and b"23 80" in second and first[first.index(b"/dev/pts/"):][:10] != second[second.index(b"/dev/pts/"):][:10]


def test_the_end_of_the_home_is_the_end_of_all(beside, groups):
    if not groups:
        pytest.skip("needs control groups")
    ends, late = beside("""
first(b"true", flags=STAY | HOME)
for identity in (2, 3, 4): begin(identity, b"trap '' TERM; sleep 1000")
until((STARTED, 2), (STARTED, 3), (STARTED, 4))
worker.send(kill(1))
found = until((ENDED, 1), (ENDED, 2), (ENDED, 3), (ENDED, 4))
begin(5, b"true")
return {key[1]: (value["signal"], value["stays"]) for key, value in found.items() if key[0] == ENDED and key[1] > 1}, until((FAILED, 5))[FAILED, 5]
""")
    assert ends == {2: (9, 0), 3: (9, 0), 4: (9, 0)} and "no such box" in late


def test_a_command_that_cannot_start_leaves_the_box(beside, groups):
    if not groups:
        pytest.skip("needs control groups")
    failed, after = beside("""
first(b"true", flags=STAY | HOME)
worker.run(2, home=1, argv=(b"/no/such/program",), tier=tier, directory=where)
failed = until((FAILED, 2))[FAILED, 2]
a = begin(3, b"echo again")
until((ENDED, 3))
return failed, whole(a)
""")
    assert "start the program" in failed and after == b"again\n"


def test_files_go_in_beside_a_command(beside, groups):
    if not groups:
        pytest.skip("needs control groups")
    data = beside("""
first(b"true", flags=STAY | HOME)
a = begin(2, b"while [ ! -e new ]; do sleep 0.01; done; cat new")
stream = struct.pack("<BBHIQ", 1, 0, 3, 0, 6) + b"newhello\\n" + struct.pack("<BBHIQ", 0, 0, 0, 0, 0)
stdin, ours = os.pipe()
b = worker.run(3, home=1, argv=(b"nacre-files", b"put"), flags=FILES, tier=tier, directory=where, stdin=stdin)
os.write(ours, stream); os.close(ours)
found = until((ENDED, 2), (ENDED, 3))
return whole(a), found[ENDED, 3]["code"], whole(b)
""")
    assert data == (b"hello\n", 0, data[2])


def test_standing_still_and_signals(beside, groups):
    if not groups:
        pytest.skip("needs control groups")
    lines, code, wall = beside("""
first(b"true", flags=STAY | HOME)
a = begin(2, b"trap 'echo term; exit 9' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done", wall=1500)
until((STARTED, 2))
os.read(a, 1)
worker.send(freeze(1, 1))
begin(3, b"true")
refused = until((FAILED, 3))[FAILED, 3]
assert "frozen" in refused
time.sleep(0.1)
os.set_blocking(a, False)
try:
    while os.read(a, 65536): pass
except BlockingIOError: pass
time.sleep(2.0)  # its clock stands still too
try: os.read(a, 1); moved = True
except BlockingIOError: moved = False
assert not moved
os.set_blocking(a, True)
worker.send(freeze(1, 0))
os.read(a, 1)
worker.send(signal(2, 15))
end = until((ENDED, 2))[ENDED, 2]
return whole(a).splitlines()[-1], end["code"], end["cause"]
""")
    assert (lines, code, wall) == (b"term", 9, EXIT)


def test_a_frozen_box_can_be_ended(beside, groups):
    if not groups:
        pytest.skip("needs control groups")
    assert beside("""
first(b"true", flags=STAY | HOME)
begin(2, b"sleep 1000")
until((STARTED, 2))
worker.send(freeze(1, 1))
worker.send(kill(1))
found = until((ENDED, 1), (ENDED, 2))
return found[ENDED, 2]["signal"]
""") == 9


DOOR_SCRIPT = r"""
import socket as s
tier, where = CONTAINER, b"/workspace"
program = b"import socket; c = socket.create_connection(('127.0.0.1', 888)); c.sendall(b'knock'); print(c.recv(99).decode()); " \
          b"import errno\nt = socket.socket()\ntry: t.bind(('127.0.0.1', 887))\nexcept OSError as e: print(errno.errorcode[e.errno])"
out = worker.run(1, argv=(b"/usr/bin/python3", b"-c", program), flags=DOOR | flags, env=(b"PATH=/usr/bin",))
kind, body, fds = worker.receive()
assert kind == STARTED and len(fds) == 1 and body[16:18] == bytes([1, FD_DOOR]), (kind, fds, body)
door = s.socket(fileno=fds[0])
door.settimeout(5)
guest, peer = door.accept()
heard = guest.recv(99)
guest.sendall(b"who is there")
worker.receive()
data = b""
while part := os.read(out, 999): data += part
return heard, data, peer[0]
"""


def test_a_door(play, tier, way, terms):  # noqa: F811
    """Whoever is outside accepts what a program in the box connects to; the box has no other way, and cannot take the port."""
    terms("mounts")
    if tier == "process":
        pytest.skip("there is no network namespace, and no socket")
    if way == "relay":
        pytest.skip("a door cannot travel: see test_relay")
    assert play("flags = 0\n" + DOOR_SCRIPT.strip()) == (b"knock", b"who is there\nEACCES\n", "127.0.0.1")


def test_the_door_is_not_the_programs(play, tier, way, terms):  # noqa: F811
    """The listening socket is none of the program's descriptors: it cannot accept in the door's place."""
    terms("mounts")
    if tier == "process" or way == "relay":
        pytest.skip("no doors")
    listed = play("""
out = worker.run(1, argv=(b"/bin/ls", b"/proc/self/fd"), flags=DOOR)
worker.receive(); worker.receive()
data = b""
while part := os.read(out, 999): data += part
return data.split()
""")
    assert set(listed) <= {b"0", b"1", b"2", b"3"}, listed


def test_a_door_for_guests(play, tier, way, terms):  # noqa: F811
    """It comes with sockets of the box's network: who connects one is inside, and the host's loopback is not there."""
    terms("mounts")
    if tier == "process" or way == "relay":
        pytest.skip("no doors")
    heard, outside, listed = play("""
import socket as s
outer = s.create_server(("127.0.0.1", 0))
tier, where = CONTAINER, b"/workspace"
program = b"import os, socket; l = socket.create_server(('127.0.0.1', 8080)); print(sorted(os.listdir('/proc/self/fd'))[:-1], flush=True); " \
          b"[l.accept()[0].sendall(b'inside') for _ in range(2)]"
out = worker.run(1, argv=(b"/usr/bin/python3", b"-c", program), flags=DOOR | GUESTS, env=(b"PATH=/usr/bin",))
kind, body, fds = worker.receive()
assert kind == STARTED and len(fds) == 1, (kind, fds)
packed = s.socket(fileno=fds[0])
_, doors, _, _ = s.recv_fds(packed, 1, 16, s.MSG_DONTWAIT)
assert len(doors) == 13, doors
listed = os.read(out, 999)
guests = [s.socket(fileno=fd) for fd in doors[1:]]
heard = []
for guest in guests[:2]:
    guest.settimeout(5)
    guest.connect(("127.0.0.1", 8080))
    heard.append(guest.recv(99))
guests[2].settimeout(5)
outside = guests[2].connect_ex(outer.getsockname())
worker.receive()
return heard, outside, listed
""")
    assert heard == [b"inside"] * 2 and outside == 111, (heard, outside)
    assert listed == b"['0', '1', '2', '3']\n", "what the program holds: its streams, its listener"


GREETING = ("", greeting())
LIMITS = dict(memory=64 << 20, pids=16, wall=10000)


@pytest.mark.parametrize("name, flags, fds, fields", [
    ("image", IMAGE, "nnnd", {}), ("stays", STAY, "nnn", {}), ("door", DOOR, "nnn", {}), ("guests", DOOR | GUESTS, "nnn", {}), ("keep", KEEP, "nnnnnn", {}), ("home", HOME, "nnn", {}),
    ("bind", 0, "nnn", dict(binds=[(0, 1, b"/mnt")])), ("layer", 0, "nnnd", dict(layers=[0])), ("other tier", 0, "nnn", dict(tier=1)),
    ("short", 0, "nn", {}),
])
def test_what_a_command_beside_others_may_not_name(name, flags, fds, fields):
    from test_spawner import WORKER, start_spawner

    packets = [GREETING, ("nnn", order(flags=STAY | HOME, **LIMITS)), ("", b""), (fds, message(RUN, order_body(2, home=1, flags=flags, **fields, **LIMITS)))]
    script = WORKER.replace("    socket.send_fds", "    if data: socket.send_fds")
    process = start_spawner("-c", script, *[f"{letters}:1:{data.hex()}" for letters, data in packets], binds=["/usr"])
    output, error = process.communicate(timeout=30)
    assert process.returncode == 125 and "breaks the rules" in error


@pytest.mark.parametrize("holder", ["spawner", "holder"])
def test_kept_homes_and_commands_are_adopted(tmp_path, holder):
    """A box that stays and what runs in it outlive their worker; the next one goes on with both."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    from test_adoption import Fleet, HolderFleet

    fleet = (Fleet if holder == "spawner" else HolderFleet)(tmp_path / "die")
    try:
        fleet.ask("hello()")
        null = fleet.ask("os.open('/dev/null', os.O_RDWR)")
        fleet.ask("worker.run(1, argv=(b'sh', b'-c', b'echo first >file'), flags=STAY | HOME, keep=True)")
        assert fleet.ask("next_message()")[0] == STARTED and fleet.ask("next_message()")[1]["stays"] == 1
        fleet.ask("worker.run(2, home=1, argv=(b'sh', b'-c', b'sleep 0.7; cat file; exit 6'), keep=True)")
        assert fleet.ask("next_message()")[:2] == (STARTED, 2)
        fleet.kill_worker()
        fleet.ask("hello()")
        adopted = [fleet.ask("worker.receive()") for _ in range(3)]
        assert [(kind, body[:16]) for kind, body, _ in adopted if kind == 105] == [
            (105, (1).to_bytes(8, "little") + (0).to_bytes(8, "little")), (105, (2).to_bytes(8, "little") + (1).to_bytes(8, "little"))]
        fds = next(fds for kind, body, fds in adopted if kind == 105 and body[0] == 2)
        assert fleet.ask(f"whole({fds[1]})") == b"first\n"
        assert fleet.ask("next_message()")[1]["code"] == 6
        # input goes on over the death of a worker, and ends when it is said to
        ours = fleet.ask("os.pipe()")
        fleet.ask(f"globals().update(kept=worker.run(4, home=1, argv=(b'cat',), keep=True, stdin={ours[0]}, kept_stdin={ours[1]}))")
        fleet.ask(f"os.write({ours[1]}, b'before ')")
        assert fleet.ask("next_message()")[0] == STARTED
        fleet.kill_worker()
        fleet.ask("hello()")
        fds = next(fds for kind, body, fds in (fleet.ask("worker.receive()") for _ in range(5)) if kind == 105 and body[0] == 4)
        assert len(fds) == 3
        fleet.ask(f"[os.write({fds[0]}, b'after'), os.close({fds[0]}), worker.send(signal(4, 0))]")
        assert fleet.ask(f"whole({fds[1]})") == b"before after"
        assert fleet.ask("next_message()")[1]["code"] == 0
        output = fleet.ask("worker.run(3, home=1, argv=(b'cat', b'file'))")
        assert fleet.ask("next_message()")[0] == STARTED and fleet.ask("next_message()")[1]["code"] == 0
        assert fleet.ask(f"whole({output})") == b"first\n"
        assert null > 0
    finally:
        fleet.close()


def test_alone_in_a_process_box(play, tier):  # noqa: F811
    """Where the program needs no others, it can make none: the filter refuses fork, and allows threads."""
    if tier != "process":
        pytest.skip("of process boxes")
    code = b"import os, threading\\ndone = threading.Thread(target=print, args=('thread',)); done.start(); done.join()\\n" \
           b"try: os.fork() or os._exit(0); print('forked')\\nexcept OSError as error: print(error.errno)"
    got = play(f"""
first(b"true")
return [command(NEXT, (b"/usr/bin/python3", b"-c", {code!r}.replace(b"\\\\n", b"\\n")), flags=STAY | flag)[2] for flag in (0, ALONE)]
""")
    assert [text.split(b"\n")[:2] for text in got] == [[b"thread", b"forked"], [b"thread", b"1"]], got
