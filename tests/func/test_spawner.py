"""nacre-spawner from the side of a worker that has been taken over: any message that breaks the
rules ends the worker, never the spawner's caller, and makes no box."""

import errno
import fcntl
import os
import pathlib
import socket
import struct
import subprocess

import pytest

import wire
from conftest import BUILD
from wire import (ADOPT, ANSWER, ASK, CONTAINER, DOOR, ENDED, FAILED, FORGET, FREEZE, GUESTS, HELLO, IMAGE, KEEP, KILL, MB, NEXT, PROCESS, READY, SIGNAL, STARTED, TOLD, TTY, USERS, VERSION, WELCOME, WRITABLE, forget,
                  greeting, kill, message, order, ready)

PYTHON = os.path.realpath("/usr/bin/python3")
# its text, not its path: the worker may not be able to reach this directory
SCRIPT_OF_WIRE = pathlib.Path(wire.__file__).read_text()

# the hostile worker: it gets the packets to send as arguments (what descriptors to attach, how often to repeat the
# bytes, the bytes in hexadecimal) and prints the types of the answers. Descriptors are letters: n /dev/null, d a
# directory, p the same as a mere path, o one of the worker's own, q that as a mere path, f a file, s a socket
WORKER = r"""
import os, socket, sys, tempfile
spawner = socket.socket(fileno=3)
spawner.settimeout(3)
kinds = {"n": os.open("/dev/null", os.O_RDWR), "d": os.open("/usr", os.O_RDONLY), "f": os.open("/usr/bin/env", os.O_RDONLY),
         "s": socket.socketpair()[0].detach(), "p": os.open("/usr", os.O_PATH)}
own = tempfile.mkdtemp(prefix=f"nacre-own-{os.getppid()}-", dir="/var/tmp")
kinds |= {"o": os.open(own, os.O_RDONLY), "q": os.open(own, os.O_PATH)}
for packet in sys.argv[1:]:
    fds, times, data = packet.split(":")
    socket.send_fds(spawner, [bytes.fromhex(data) * int(times)], [kinds[letter] for letter in fds])
    try:
        answer = spawner.recv(70000)
    except ConnectionResetError:
        answer = b""
    except TimeoutError:
        print("silence", flush=True)
        continue
    print(int.from_bytes(answer[2:4], "little") if answer else "closed", flush=True)
"""

LIMITS = dict(memory=64 * MB, pids=5, inodes=64)
GREETING = ("", greeting())


def an_order(*identity, **fields):
    return order(*identity, **{**LIMITS, **fields})


def start_spawner(*words, prefix=(), binds=(), ready_boxes=0, patience_s=0, witness=None, **options):
    """Starts the spawner with Python as its worker, which gets these words. witness: a descriptor that is told of births and deaths."""
    program = os.open(PYTHON, os.O_RDONLY)
    high = [os.open(path, os.O_PATH) for path in binds]

    def places():
        os.dup2(program, 4)
        for number, descriptor in enumerate(high):
            os.dup2(descriptor, 5 + number)

    command = [*prefix, BUILD / "nacre-spawner", "0", str(ready_boxes), f"{len(binds)},{witness or 0},0,{patience_s}", "python3", *words]
    try:
        return subprocess.Popen(list(map(str, command)), preexec_fn=places, pass_fds=[*range(4, 5 + len(binds)), *[witness] * bool(witness)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    finally:
        for descriptor in (program, *high):
            os.close(descriptor)


@pytest.fixture
def converse(relay_line, way):
    """Starts the spawner with the hostile worker in place of nacre; returns what it was answered."""

    def run(*packets, **options):
        if way == "holder":
            packets = [(packet[0], wire.of_holder(packet[1]), *packet[2:]) for packet in packets]
        words = [f"{packet[0]}:{packet[2] if len(packet) > 2 else 1}:{packet[1].hex()}" for packet in packets]
        process = start_spawner("-c", (SCRIPT_OF_WIRE + relay_line if relay_line.strip() else "") + WORKER, *words, **options)
        output, error = process.communicate(timeout=60)
        for own in pathlib.Path("/var/tmp").glob(f"nacre-own-{process.pid}-*"):
            own.rmdir()  # of the worker, which was killed
        return subprocess.CompletedProcess([], process.returncode, output, error)

    return run


def test_an_honest_conversation(converse):
    done = converse(GREETING, ("nnn", an_order()))
    assert done.stdout.split() == [str(WELCOME), str(STARTED)], done.stderr
    assert done.returncode == 0


BIND = [(0, 0, b"/mnt")]
BREAKING = {
    "empty": [("", b"")],
    "one_byte": [("", b"x")],
    "too_long": [("", b"\xff", 70000)],
    "hello_of_an_older_version": [("", greeting(VERSION - 1))],
    "wrong_magic": [("", message(HELLO, struct.pack("<I", VERSION), magic=0x1234))],
    "wrong_size": [("", message(HELLO, struct.pack("<I", VERSION), size=5))],
    "hello_with_a_rest": [("", message(HELLO, struct.pack("<I", VERSION) + b"rest"))],
    "hello_with_a_descriptor": [("n", greeting())],
    "order_before_hello": [("nnn", an_order())],
    "kill_before_hello": [("", kill(1))],
    "ready_before_hello": [("", ready(1))],
    "forget_before_hello": [("", forget(1))],
    "hello_twice": [GREETING, GREETING],
    "type_0": [GREETING, ("", message(0))],
    "type_6": [GREETING, ("", message(6))],
    "type_77": [GREETING, ("", message(77))],
    "welcome": [GREETING, ("", message(WELCOME, struct.pack("<I", VERSION)))],
    "adopt": [GREETING, ("nn", message(ADOPT, struct.pack("<Q", 1)))],
    "adopt_without_descriptors": [GREETING, ("", message(ADOPT, struct.pack("<Q", 1)))],
    # descriptors
    "order_without_descriptors": [GREETING, ("", an_order())],
    "order_with_2": [GREETING, ("nn", an_order())],
    "order_with_4": [GREETING, ("nnnn", an_order())],
    "order_with_5": [GREETING, ("nnnnn", an_order())],
    "order_with_20": [GREETING, ("n" * 20, an_order())],
    "terminal_with_3": [GREETING, ("nnn", an_order(flags=TTY))],
    "terminal_with_1": [GREETING, ("n", an_order(flags=TTY))],
    "image_with_3": [GREETING, ("nnn", an_order(flags=IMAGE))],
    "image_with_5": [GREETING, ("nnndd", an_order(flags=IMAGE))],
    "image_is_a_file": [GREETING, ("nnnf", an_order(flags=IMAGE))],
    "image_is_a_device": [GREETING, ("nnnn", an_order(flags=IMAGE))],
    "image_is_first": [GREETING, ("dnnn", an_order(flags=IMAGE))],
    "image_on_a_terminal_is_a_file": [GREETING, ("f", an_order(flags=IMAGE | TTY))],
    "image_of_a_process_box": [GREETING, ("nnnd", an_order(flags=IMAGE, tier=PROCESS))],
    "kept_with_3": [GREETING, ("nnn", an_order(flags=KEEP))],
    "kept_with_4": [GREETING, ("nnnn", an_order(flags=KEEP))],
    "kept_with_5": [GREETING, ("nnnnn", an_order(flags=KEEP))],
    "kept_with_7": [GREETING, ("nnnnnnn", an_order(flags=KEEP))],
    "kept_with_a_directory": [GREETING, ("nnnnnd", an_order(flags=KEEP))],
    "kept_with_a_socket": [GREETING, ("nnnsnn", an_order(flags=KEEP))],
    "everything_with_6": [GREETING, ("nnnnnn", an_order(flags=KEEP | IMAGE))],
    "door_of_a_process_box": [GREETING, ("nnn", an_order(flags=DOOR, tier=PROCESS))],
    "guests_without_a_door": [GREETING, ("nnn", an_order(flags=GUESTS))],
    "stdin_is_a_directory": [GREETING, ("dnn", an_order())],
    "stdout_is_a_file": [GREETING, ("nfn", an_order())],
    "stderr_is_a_socket": [GREETING, ("nns", an_order())],
    # layers
    # below a root that can be written to the owner of a tree is shown as root of the box: only the worker's own may be
    "image_of_root_below_a_writable_root": [GREETING, ("nnnd", an_order(flags=IMAGE | WRITABLE | USERS))],
    "layer_of_root_beside_a_writable_root": [GREETING, ("nnnd", an_order(flags=WRITABLE, layers=[0]))],
    "a_user_where_there_are_none": [GREETING, ("nnn", an_order(user=b"root"))],
    "layer_with_3": [GREETING, ("nnn", an_order(layers=[0]))],
    "layer_with_5": [GREETING, ("nnndd", an_order(layers=[0]))],
    "layer_is_a_file": [GREETING, ("nnnf", an_order(layers=[0]))],
    "layer_is_a_device": [GREETING, ("nnnn", an_order(layers=[0]))],
    "layer_is_a_socket": [GREETING, ("nnns", an_order(layers=[0]))],
    "layer_is_a_mere_path": [GREETING, ("nnnp", an_order(layers=[0]))],
    "layer_is_an_own_mere_path": [GREETING, ("nnnq", an_order(layers=[1]))],
    "second_layer_is_a_mere_path": [GREETING, ("nnndp", an_order(layers=[0, 0]))],
    "layer_is_first": [GREETING, ("dnnn", an_order(layers=[0]))],
    "layer_of_root_to_write": [GREETING, ("nnnd", an_order(layers=[1]))],
    "second_layer_of_root_to_write": [GREETING, ("nnnod", an_order(layers=[1, 1]))],
    "layers_in_the_wrong_order": [GREETING, ("nnndo", an_order(layers=[1, 0]))],
    "layers_3": [GREETING, ("nnnddd", an_order(layers=[0, 0, 0]))],
    "descriptors_said_to_be_2": [GREETING, ("nnn", an_order(n_fds=2))],
    "descriptors_said_to_be_255": [GREETING, ("nnn", an_order(n_fds=255))],
    "input_twice": [GREETING, ("nnnn", an_order(kinds=[0, 0, 1, 2]))],
    "input_in_place_of_error": [GREETING, ("nnn", an_order(kinds=[0, 1, 0]))],
    "no_error": [GREETING, ("nn", an_order(kinds=[0, 1]))],
    "two_images": [GREETING, ("nnndd", an_order(kinds=[0, 1, 2, wire.FD_IMAGE, wire.FD_IMAGE]))],
    "two_packs": [GREETING, ("nnnnn", an_order(kinds=[0, 1, 2, wire.FD_PACK, wire.FD_PACK]))],
    "words_are_a_directory": [GREETING, ("nnnd", an_order(kinds=[0, 1, 2, wire.FD_WORDS]))],
    "words_are_a_socket": [GREETING, ("nnns", an_order(kinds=[0, 1, 2, wire.FD_WORDS]))],
    "words_are_a_mere_path": [GREETING, ("nnnp", an_order(kinds=[0, 1, 2, wire.FD_WORDS]))],
    "two_words": [GREETING, ("nnnff", an_order(kinds=[0, 1, 2, wire.FD_WORDS, wire.FD_WORDS]))],
    "pack_on_a_terminal": [GREETING, ("n", an_order(flags=TTY, kinds=[wire.FD_PACK]))],
    "own_streams_of_a_box_that_goes": [GREETING, ("nnnnnn", an_order(kinds=[0, 1, 2, 7, 8, 9]))],
    "a_terminal_of_its_own": [GREETING, ("nnnn", an_order(kinds=[0, 1, 2, wire.FD_TERMINAL]))],
    "a_door_of_its_own": [GREETING, ("nnns", an_order(kinds=[0, 1, 2, wire.FD_DOOR], flags=DOOR))],
    "descriptor_of_no_kind": [GREETING, ("nnnn", an_order(kinds=[0, 1, 2, wire.FD_WORDS + 1]))],
    "layer_of_a_process_box": [GREETING, ("nnnd", an_order(layers=[0], tier=PROCESS))],
    "layer_where_kept_output_is": [GREETING, ("nnnnnnd", an_order(layers=[0], flags=KEEP))],
    "layer_before_the_image_is_a_mere_path": [GREETING, ("nnnpd", an_order(layers=[0], flags=IMAGE))],
    "layer_of_a_next_command": [GREETING, ("nnnd", message(NEXT, wire.order_body(layers=[0])))],
    "layer_of_a_next_command_without_it": [GREETING, ("nnn", message(NEXT, wire.order_body(layers=[0])))],
    "kill_with_descriptors": [GREETING, ("nnn", kill(1))],
    "ready_with_a_descriptor": [GREETING, ("n", ready(1))],
    "forget_with_a_descriptor": [GREETING, ("n", forget(1))],
    # words
    "nothing_to_run": [GREETING, ("nnn", an_order(argv=()))],
    "relative_directory": [GREETING, ("nnn", an_order(directory=b"relative"))],
    "no_directory": [GREETING, ("nnn", an_order(directory=b""))],
    "nul_in_directory": [GREETING, ("nnn", an_order(directory=b"/a\0b"))],
    "long_directory": [GREETING, ("nnn", an_order(directory=b"/" + b"x" * 300))],
    "cut_order": [GREETING, ("nnn", an_order()[:-3])],
    "order_with_a_rest": [GREETING, ("nnn", an_order() + b"x")],
    # limits
    "no_memory": [GREETING, ("nnn", an_order(memory=0))],
    "endless_memory": [GREETING, ("nnn", an_order(memory=2 ** 64 - 1))],
    "no_wall": [GREETING, ("nnn", an_order(wall=0))],
    "endless_wall": [GREETING, ("nnn", an_order(wall=2 ** 64 - 1))],
    "endless_cpu_time": [GREETING, ("nnn", an_order(cpu_time=2 ** 64 - 1))],
    "no_pids": [GREETING, ("nnn", an_order(pids=0))],
    "endless_pids": [GREETING, ("nnn", an_order(pids=10 ** 9))],
    "no_disk": [GREETING, ("nnn", an_order(disk=0))],
    "endless_inodes": [GREETING, ("nnn", an_order(inodes=2 ** 63))],
    "no_inodes": [GREETING, ("nnn", an_order(inodes=0))],
    "no_files": [GREETING, ("nnn", an_order(files=0))],
    "endless_files": [GREETING, ("nnn", an_order(files=2 ** 32))],
    "no_cpu": [GREETING, ("nnn", an_order(cpu=0))],
    # the new fields
    "tier_2": [GREETING, ("nnn", an_order(tier=2))],
    "tier_255": [GREETING, ("nnn", an_order(tier=255))],
    "unknown_flag": [GREETING, ("nnn", an_order(flags=1 << 31))],
    "unknown_high_flag": [GREETING, ("nnn", an_order(flags=1 << 31))],
    "rows_65536": [GREETING, ("", an_order(flags=TTY, rows=65536))],
    "columns_65536": [GREETING, ("", an_order(flags=TTY, columns=65536))],
    "rows_65536_without_a_terminal": [GREETING, ("nnn", an_order(rows=65536))],
    "binds_17": [GREETING, ("nnn", an_order(binds=BIND * 17))],
    "binds_said_to_be_17": [GREETING, ("nnn", an_order(n_binds=17))],
    "binds_said_to_be_4_billion": [GREETING, ("nnn", an_order(n_binds=2 ** 32 - 1))],
    "bind_without_any": [GREETING, ("nnn", an_order(binds=BIND))],
    "bind_of_index_4_billion": [GREETING, ("nnn", an_order(binds=[(2 ** 32 - 1, 0, b"/mnt")]))],
    "long_target": [GREETING, ("nnn", an_order(binds=[(0, 0, b"/" + b"x" * 255)]))],
    "ready_257": [GREETING, ("", ready(257))],
    "ready_4_billion": [GREETING, ("", ready(2 ** 32 - 1))],
    "ready_cut": [GREETING, ("", message(READY, b"\1"))],
    "signal_65": [GREETING, ("", message(SIGNAL, struct.pack("<QI", 1, 65)))],
    "freeze_cut": [GREETING, ("", message(FREEZE, bytes(8)))],
    "ask_with_a_descriptor": [GREETING, ("n", message(ASK, bytes(8)))],
    "forget_running": [GREETING, ("nnn", an_order(argv=(b"sleep", b"5"))), ("", forget(1))],
    "forget_running_kept": [GREETING, ("nnnnnn", an_order(argv=(b"sleep", b"5"), flags=KEEP)), ("", forget(1))],
    "forget_cut": [GREETING, ("", message(FORGET, b"\1\0\0\0"))],
    # kills
    "kill_for_no_cause": [GREETING, ("", kill(1, 99))],
    "kill_for_wall": [GREETING, ("", kill(1, 1))],
    "kill_for_memory": [GREETING, ("", kill(1, 3))],
}


@pytest.mark.parametrize("name", BREAKING)
def test_breaking_the_rules_ends_the_worker(converse, name, way):
    done = converse(*BREAKING[name])
    answers = done.stdout.split()
    if way == "relay" and (set(BREAKING[name][-1][0]) - {"n"} or name.startswith("door")):  # what cannot travel
        assert (answers, done.returncode) == ([str(WELCOME), str(FAILED)], 0), done
        return
    assert "ending the worker" in done.stderr or answers[-1:] == ["closed"], done.stderr + done.stdout
    assert "silence" not in answers, "it was heard and not ended"
    assert str(STARTED) not in answers or name.startswith("forget_running")
    assert done.returncode == (0 if way == "holder" or name == "empty" else 125), done


# with one bind at hand: what may not be done with it
TARGETS = {"root": b"/", "roots": b"///", "proc": b"/proc", "in_proc": b"/proc/x", "in_dev": b"/dev/x", "in_sys": b"/sys/fs",
           "dots": b"/a/../b", "dots_at_the_end": b"/a/..", "dots_at_the_start": b"/../a", "dot": b"/a/./b", "empty_part": b"/a//b",
           "relative": b"a/b", "empty": b"", "nul": b"/a\0b"}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("writable", [0, 1])
def test_binds_that_break_the_rules_end_the_worker(converse, name, writable, terms):
    terms("mounts")
    done = converse(GREETING, ("nnn", an_order(binds=[(0, writable, TARGETS[name])])), binds=["/usr/share"])
    assert (done.stdout.split(), done.returncode) == ([str(WELCOME), "closed"], 125) or (
        "ending the worker" in done.stderr and done.stdout.split() == [str(WELCOME)]), done


@pytest.mark.parametrize("fields", [dict(binds=[(1, 0, b"/mnt")]), dict(binds=[(0, 0, b"/mnt")], tier=PROCESS)],
                         ids=["index_beyond", "process_box"])
def test_binds_that_are_not_at_hand_end_the_worker(converse, fields, terms):
    terms("mounts")
    done = converse(GREETING, ("nnn", an_order(**fields)), binds=["/usr/share"])
    assert "ending the worker" in done.stderr and str(STARTED) not in done.stdout and done.returncode == 125, done


@pytest.mark.parametrize("target", [b"/mnt", b"/mnt/deep/below", b"/procession", b"/a..", b"/sysx", b"/workspace/here"])
def test_binds_within_the_rules(converse, target, terms):
    """A control, with names that only look like forbidden ones."""
    terms("mounts")
    done = converse(GREETING, ("nnn", an_order(binds=[(0, 0, target)])), binds=["/usr/share"])
    assert done.stdout.split() == [str(WELCOME), str(STARTED)], done


@pytest.mark.parametrize("letters, fields", [("nnn", {}), ("nnnnnn", dict(flags=KEEP)), ("", dict(flags=TTY)), ("", dict(flags=TTY | KEEP)), ("nnn", dict(flags=DOOR)),
                                             ("nnnd", dict(flags=IMAGE)), ("nnndnnn", dict(flags=IMAGE | KEEP)),
                                             ("nnnd", dict(layers=[0])), ("nnndd", dict(layers=[0, 0])), ("d", dict(layers=[0], flags=TTY)),
                                             ("nnno", dict(layers=[1])), ("nnndonnn", dict(layers=[0, 1], flags=KEEP)),
                                             ("nnnddonnn", dict(layers=[0, 1], flags=KEEP | IMAGE))])
def test_descriptors_within_the_rules(converse, way, letters, fields, terms):
    """A control: each flag with as many descriptors as it wants is not the end of the worker. /usr is no good image."""
    if set(letters) - {"n"} or fields.get("flags", 0) & DOOR:
        terms("mounts")
    done = converse(GREETING, (letters, an_order(**fields)))
    answers = done.stdout.split()
    assert "ending the worker" not in done.stderr, done.stderr
    failing = "d" in letters or (way == "relay" and (set(letters) - {"n"} or fields.get("flags", 0) & DOOR))
    assert answers == [str(WELCOME), str(STARTED)] or (failing and answers == [str(WELCOME), str(FAILED)]), done


def test_killing_a_box_that_is_not_there_is_no_crime(converse):
    done = converse(GREETING, ("", kill(99)))
    assert "ending the worker" not in done.stderr and done.returncode == 0
    assert done.stdout.split() == [str(WELCOME), str(ANSWER)]


def test_an_id_cannot_be_used_twice_at_once(converse):
    nap = an_order(argv=(b"sleep", b"5"))
    done = converse(GREETING, ("nnn", nap), ("nnn", nap))
    assert "a message that breaks the rules" in done.stderr


def test_what_cannot_be_started_is_a_failure_of_that_box_alone(converse):
    done = converse(GREETING, ("nnn", an_order(argv=(b"/nonexistent",))), ("nnn", an_order(2)))
    assert done.stdout.split() == [str(WELCOME), str(FAILED), str(STARTED)]


@pytest.mark.parametrize("tier, name", [(0, "hypervisor"), (0, "io"), (1, "filesystem"), (1, "network"), (1, "hypervisor")])
def test_what_a_box_is_not_held_by_is_a_failure(converse, tier, name):
    """Whoever requires it: nothing runs with less."""
    done = converse(GREETING, ("nnn", an_order(required={name: "full"}, tier=tier, directory=b"/usr")), ("nnn", an_order(2)))
    assert done.stdout.split() == [str(WELCOME), str(FAILED), str(STARTED)], done


SCRIPT = SCRIPT_OF_WIRE + "\nworker = Worker(); welcome = worker.hello()\n"


def converse_freely(script, version=VERSION, relay_line="\n", **options):
    process = start_spawner("-c", SCRIPT.replace("\nworker = ", relay_line + "worker = ").replace("worker.hello()", f"worker.hello({version}, b'more' * {version > VERSION})") + script, **options)
    output, error = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, output, error)


def test_a_newer_worker_is_understood(relay_line):
    """What it says beyond what this version knows is skipped, and what it asks for beyond that is answered."""
    done = converse_freely("""
print(worker.answered(message(77, struct.pack("<Q", 5) + b"and more", number=3)))
output, theirs = os.pipe()
null = os.open("/dev/null", os.O_RDWR)
worker.send(message(RUN, order_body(2, argv=(b"echo", b"hi")) + b"a field"), [null, theirs, theirs])
print(worker.receive()[0], worker.receive()[0], os.read(output, 10))
print(worker.answered(message(SIGNAL, struct.pack("<QI", 2, 15) + b"more")))
print(worker.answered(message(FREEZE, struct.pack("<QB", 2, 0) + b"more")))
print(worker.finish(3)[0])
""", version=VERSION + 1, relay_line=relay_line)
    assert done.stdout == f"{errno.EOPNOTSUPP}\n{STARTED} {ENDED} b'hi\\n'\n{errno.ESRCH}\n{errno.ESRCH}\n{ENDED}\n", done


def test_every_request_is_answered(relay_line):
    """Done, or why not; by its number, in whatever order the numbers are."""
    done = converse_freely("""
null = os.open("/dev/null", os.O_RDWR)
output = worker.run(1, argv=(b"sleep", b"60"))
print(worker.receive()[0])
print(worker.answered(freeze(1, 1, number=4000000000)), worker.answered(freeze(1, 0, number=1)), worker.answered(freeze(2, 1)))
print(worker.answered(resize(1, 24, 80)), worker.answered(resize(2, 24, 80)))
print(worker.answered(ready(1)), worker.answered(ready(0)), worker.answered(ready(1, 77)))
print(worker.answered(had(1, 5, 0)), worker.answered(had(2, 5, 0)))
print(worker.answered(ask(2)), worker.answered(signal(2, 15)), worker.answered(kill(2)))
worker.send(ask(1))
print(worker.receive_any()[0])
print(worker.answered(signal(1, 15)), worker.receive()[0], worker.answered(signal(1, 15)))
""", relay_line=relay_line)
    lost = errno.ESRCH
    assert done.stdout == (f"{STARTED}\n0 0 {lost}\n{errno.ENOTTY} {lost}\n0 0 {lost}\n0 {lost}\n{lost} {lost} {lost}\n"
                           f"{TOLD}\n0 {ENDED} {lost}\n"), done


def test_a_terminal_gets_another_size(relay_line):
    """The holder sets it, so that it can be anywhere."""
    done = converse_freely("""
worker.send(message(RUN, order_body(1, argv=(b"sh", b"-c", b"trap 'stty size' WINCH; echo here; while sleep 0.01; do :; done"), flags=TTY, rows=10, columns=20)))
kind, body, fds = worker.receive()
data = b""
while b"here" not in data:
    data += os.read(fds[0], 1000)
print(worker.answered(resize(1, 33, 44)))
while b"33 44" not in data:
    data += os.read(fds[0], 1000)
worker.send(kill(1))
print(worker.receive()[0])
""", relay_line=relay_line)
    assert done.stdout == f"0\n{ENDED}\n", done


def test_several_clients():
    """Whom the worker introduces has numbers of its own, is told of its own boxes alone, can ask for less, and takes nobody along when it dies."""
    done = converse_freely("""
def introduce():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    assert worker.answered(message(INTRODUCE), [theirs.fileno()]) == 0
    theirs.close()
    guest = Worker(ours.detach())
    guest.hello()
    return guest

guest, other = introduce(), introduce()
mine = worker.run(1, argv=(b"cat",), stdin=os.pipe()[0])
print(worker.receive()[0])
kind, body, data = guest.finish(1, argv=(b"echo", b"of the guest"))
print(kind, data, read_end(body)["id"])
theirs = guest.run(1, argv=(b"sleep", b"60"))
print(guest.receive()[0], other.answered(kill(1)), other.answered(freeze(1, 1)))
print(guest.answered(freeze(1, 1)), guest.answered(freeze(1, 0)))
print(guest.answered(ready(1)))
worker.send(ask(1))
print(worker.receive()[0])
guest.socket.close()  # and its box goes with it
print(os.read(theirs, 10))
print(other.finish(1, argv=(b"echo", b"still here"))[2])
worker.send(kill(1))
print(worker.receive()[0])
again = introduce()
print(again.finish(1, argv=(b"echo", b"again"))[2])
for crime in (b"junk", message(99), message(INTRODUCE)):
    again = introduce()
    again.send(crime)
    print(again.receive()[0])
again = introduce()
again.run(1, keep=True)
print(again.receive()[0])
guests = []
while len(guests) < 30:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    error = worker.answered(message(INTRODUCE), [theirs.fileno()])
    if error:
        break
    guests.append(ours)
print(len(guests) < 9, error)
print(worker.finish(5, argv=(b"echo", b"the worker"))[2])
""")
    lost = errno.ESRCH
    assert done.stdout == (f"{STARTED}\n{ENDED} b'of the guest\\n' 1\n{STARTED} {lost} {lost}\n0 0\n{errno.EOPNOTSUPP}\n{TOLD}\nb''\n"
                           f"b'still here\\n'\n{ENDED}\nb'again\\n'\n0\n0\n0\n0\nTrue {errno.EBUSY}\nb'the worker\\n'\n"), done


def test_process_boxes_of_several_clients():
    """Their directories have the numbers of the worker's boxes: nobody else may name those."""
    done = converse_freely("""
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
assert worker.answered(message(INTRODUCE), [theirs.fileno()]) == 0
theirs.close()
guest = Worker(ours.detach())
print(guest.hello() and sorted(read_terms(guest.welcome)))
there = worker.scratch(worker.welcome) + "/7/workspace"
reader, writer = os.pipe()
output = worker.run(7, tier=PROCESS, directory=there.encode(), argv=(b"sh", b"-c", b"echo mine > file; echo begun; read x; cat file"), stdin=reader)
print(worker.receive()[0], os.read(output, 10))
kind, body, data = guest.finish(7, tier=PROCESS, directory=there.encode(), argv=(b"sh", b"-c", b"cat file; echo theirs > file; ls -la"))
print(kind, data)
os.write(writer, b"go\\n")
print(worker.receive()[0], os.read(output, 100))
""")
    assert done.stdout == f"[{CONTAINER}]\n{STARTED} b'begun\\n'\n0 b''\n{ENDED} b'mine\\n'\n", done


def test_the_journal_has_the_names_of_the_worker_alone():
    """What the spawner bears witness of under the name of an execution is that one's bill: nobody else may call his box so."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    witness = fcntl.fcntl(theirs, fcntl.F_DUPFD, 64)  # out of the way of what is put in its place
    done = converse_freely("""
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
assert worker.answered(message(INTRODUCE), [theirs.fileno()]) == 0
guest = Worker(ours.detach())
guest.hello()
for one in worker, guest:
    print(one.finish(1, argv=(b"true",), name=b"ex_of_the_worker")[0])
""", witness=witness)
    os.close(witness)
    theirs.close()
    told = []
    while line := ours.recv(65536):
        told.append(b"ex_of_the_worker" in line)
    assert done.stdout == f"{ENDED}\n{ENDED}\n" and told == [True, True, False, False], (done, told)


def test_words_beside_an_order(relay_line):
    """Arguments and environment that are too long for a message; and what is no such thing costs the command alone."""
    done = converse_freely("""
import fcntl
KINDS = [FD_INPUT, FD_OUTPUT, FD_ERROR, FD_WORDS]
null = os.open("/dev/null", os.O_RDWR)
def run(number, data, argv, env=()):
    memory = os.memfd_create("words", os.MFD_ALLOW_SEALING) if isinstance(data, bytes) else data
    if isinstance(data, bytes):
        os.write(memory, data); os.lseek(memory, 0, os.SEEK_SET)
        fcntl.fcntl(memory, 1033, 15)  # F_ADD_SEALS, all of them
    output, theirs = os.pipe()
    worker.send(order(number, argv=argv, env=env, kinds=KINDS), [null, theirs, theirs, memory])
    os.close(theirs)
    kind, body, _ = worker.receive()
    if kind == STARTED:
        kind, body, _ = worker.receive()
    return kind == ENDED and read_end(body)["code"] == 0, os.read(output, 100)
argv, env = (b"sh", b"-c", b"echo ${#1} ${#A}", b"x", b"y" * 100000), (b"A=" + b"z" * 90000, b"PATH=/usr/bin:/bin")
data = b"".join(word + b"\\0" for word in argv + env)
print(*run(1, data, argv, env))
for number, lie in enumerate((data[:-1], data[:-1] + b"x", data.replace(b"\\0", b"-", 1), b"", null), 2):
    print(*run(number, lie, argv, env))
print(*run(20, b"echo\\0more\\0", (b"echo", b"more")))
""", relay_line=relay_line)
    assert done.stdout.splitlines() == ["True b'100000 90000\\n'", *["False b''"] * 5, "True b'more\\n'"], done


def test_boxes_that_are_ready_serve_orders_of_any_size(relay_line, terms):
    terms("disk")
    done = converse_freely("""
worker.send(ready(3))
for number in range(1, 9):
    kind, body, data = worker.finish(number, argv=(b"sh", b"-c", b"df -k /tmp | tail -1; ulimit -n"), disk=number * MB, files=100 + number)
    print(kind, data.split()[1].decode(), data.split()[-1].decode())
""", relay_line=relay_line)
    assert done.stdout == "".join(f"{ENDED} {n * 1024 + 16} {100 + n}\n" for n in range(1, 9)), done  # and room for the files that tell its limits


def test_boxes_that_are_ready_go_with_the_worker(relay_line):
    done = converse_freely("import time\nworker.send(ready(256)); time.sleep(1)\nprint(worker.finish(1)[0])", relay_line=relay_line)
    assert (done.stdout, done.returncode) == (f"{ENDED}\n", 0), done
    assert "prepare a box" not in done.stderr


def test_a_worker_that_does_not_read_is_ended():
    done = converse_freely("""
import time
for number in range(1, 5000):
    worker.run(number, argv=(b"/nonexistent",)) if number < 50 else worker.send(order(number, argv=(b"/nonexistent",)), [0, 0, 0])
time.sleep(20)
""", stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and "ending the worker: it does not read its messages" in done.stderr, done


@pytest.mark.parametrize("words", [[], ["0"], ["0", "0"], ["0", "0", "0"], ["x", "0", "0", "a"], ["-1", "0", "0", "a"],
                                   ["0", "257", "0", "a"], ["0", "0", "17", "a"], ["0", "0", "1", "a"], ["4294967296", "0", "0"]])
def test_spawner_is_not_for_hands(words):
    done = subprocess.run([BUILD / "nacre-spawner", *words], capture_output=True, text=True, close_fds=True, timeout=20)
    assert done.returncode == 125 and "started by nacre" in done.stderr, done


def test_a_worker_that_is_no_child_is_not_taken():
    """WORKER is a number from the command line: a stranger is neither served nor harmed. The stranger is a process of
    this test's own, never one of the host's: the spawner ends its worker with SIGKILL."""
    stranger = subprocess.Popen(["sleep", "60"])
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.send(b"not a message")  # for which a worker is ended
    spawner = subprocess.Popen([BUILD / "nacre-spawner", str(stranger.pid), "0", "0"], stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: os.dup2(theirs.fileno(), 3), pass_fds=(3,))
    try:
        _, error = spawner.communicate(timeout=3)
        assert spawner.returncode == 125, error
        assert stranger.poll() is None, "the spawner killed a process that is not its child"
    finally:
        spawner.kill()
        spawner.wait()
        stranger.kill()
        stranger.wait()
        ours.close()
        theirs.close()


def test_a_worker_that_is_not_there_is_not_taken():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    done = subprocess.run([BUILD / "nacre-spawner", "999999999", "0", "0"], capture_output=True, text=True, timeout=20,
                          preexec_fn=lambda: os.dup2(theirs.fileno(), 3), pass_fds=(3,))
    ours.close()
    theirs.close()
    assert done.returncode == 125 and "Hold the worker" in done.stderr, done


# a directory of the worker's own, with a file, and one beside it that no box has any business with
LAYERS = """
import tempfile
above = tempfile.mkdtemp(dir="/var/tmp")
for name in ("layer", "beside"):
    os.mkdir(f"{above}/{name}")
    with open(f"{above}/{name}/file", "w") as file:
        file.write(name)
def shell(number, script, layers, **fields):
    fd = os.open(f"{above}/layer", os.O_RDONLY)
    kind, body, data = worker.finish(number, argv=(b"sh", b"-c", script), layers=layers, layer_fds=[fd] * len(layers), **fields)
    os.close(fd)
    return kind, data
"""
LAYERS_END = """
import shutil
shutil.rmtree(above)
"""


def with_layers(script):
    return converse_freely(LAYERS + script + LAYERS_END)


def test_layers_are_shown_where_they_belong():
    done = with_layers("""
print(shell(1, b"cat /opt/nacre/layer0/file; ls /opt/nacre; echo own >/opt/nacre/layer1/made; cat /opt/nacre/layer0/made", [0, 1]))
print(sorted(os.listdir(above + "/layer")), os.stat(above + "/layer/made").st_uid == os.getuid())
""")
    assert done.stdout == f"({ENDED}, b'layerlayer0\\nlayer1\\nown\\n')\n['file', 'made'] True\n", done


def test_a_box_without_layers_has_no_place_for_them():
    done = with_layers('print(shell(1, b"ls /opt 2>&1 || true", []))')
    assert "No such file" in done.stdout, done


@pytest.mark.parametrize("attempt", ["echo x >/opt/nacre/layer0/file", "touch /opt/nacre/layer0/new", "rm -f /opt/nacre/layer0/file",
                                     "chmod 777 /opt/nacre/layer0/file", "chmod 777 /opt/nacre/layer0", "mkdir /opt/nacre/layer0/d",
                                     "mv /opt/nacre/layer0/file /opt/nacre/layer0/other", "ln /opt/nacre/layer0/file /opt/nacre/layer0/l",
                                     "mount -o remount,rw /opt/nacre/layer0", "touch /opt/nacre/new", "touch /opt/new"])
def test_a_layer_to_read_is_never_written(attempt):
    done = with_layers(f"""
print(shell(1, b"if {attempt}; then echo ESCAPED; else echo held; fi 2>/dev/null", [0]))
print(sorted(os.listdir(above + "/layer")), oct(os.stat(above + "/layer").st_mode), open(above + "/layer/file").read())
""")
    assert done.stdout == f"({ENDED}, b'held\\n')\n['file'] 0o40755 layer\n", done


@pytest.mark.parametrize("attempt", ["chmod u+s /opt/nacre/layer0/file", "chmod g+s /opt/nacre/layer0/file", "chmod 6755 /opt/nacre/layer0",
                                     "install -m 4755 /bin/true /opt/nacre/layer0/file", "mknod /opt/nacre/layer0/null c 1 3",
                                     "cat /opt/nacre/layer0/../beside/file", "cat /opt/nacre/layer0/../../beside/file",
                                     "cd /opt/nacre/layer0 && cat ../beside/file",
                                     "ln -s ../beside/file /opt/nacre/layer0/link && cat /opt/nacre/layer0/link",
                                     "cat /proc/self/root/opt/nacre/layer0/../beside/file", "cat /proc/1/cwd/beside/file",
                                     "ln /usr/bin/env /opt/nacre/layer0/env", "touch /opt/nacre/new"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_layer_to_write_leads_nowhere_else(attempt, number):
    """And nothing comes out of it that would be a set-user-id program of the worker's, or a device."""
    attempt = attempt.replace("layer0", f"layer{number}")
    done = with_layers(f"""
print(shell(1, b"if {attempt}; then echo ESCAPED; else echo held; fi 2>/dev/null", [0] * {number} + [1]))
print([oct(os.lstat(root).st_mode & 0o6000) for root, _, _ in os.walk(above)], open(above + "/beside/file").read())
print([name for name in os.listdir(above + "/layer") if os.lstat(above + "/layer/" + name).st_mode & 0o6000])
""")
    assert f"({ENDED}, b'held\\n')" in done.stdout and done.stdout.endswith("['0o0', '0o0', '0o0'] beside\n[]\n"), done


def test_the_mounts_of_layers_are_locked_down():
    """In mountinfo: nosuid and nodev always, read-only unless asked; a box that may write one may not remount the other."""
    done = with_layers("""
kind, data = shell(1, b"grep /opt/nacre /proc/self/mountinfo; mount -o remount,bind,suid,dev /opt/nacre/layer1 2>/dev/null || echo - - - - refused", [0, 1])
for line in data.decode().splitlines():
    print(*line.split()[4:6])
""")
    first, second, third = done.stdout.splitlines()
    assert first.startswith("/opt/nacre/layer0 ro,nosuid,nodev"), done
    assert second.startswith("/opt/nacre/layer1 rw,nosuid,nodev"), done
    assert third == "refused", done


def test_what_only_root_may_read_is_not_to_be_had_through_a_layer():
    """The worker can open /etc to read it, and through a layer a box would see it: as nobody, not as its owner."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    done = converse_freely("""
fd = os.open("/etc", os.O_RDONLY)
print(worker.finish(1, argv=(b"sh", b"-c", b"head -c 4 /opt/nacre/layer0/shadow || echo held; head -c 4 /opt/nacre/layer0/passwd"),
                    layers=[0], layer_fds=[fd])[2].decode())
""")
    assert done.stdout.endswith("held\nroot\n") and done.stdout.count("root") == 1, done


def test_a_next_command_finds_the_layers_of_its_box():
    done = with_layers("""
print(shell(1, b"echo a >/opt/nacre/layer0/a", [1], flags=STAY)[0])
print(worker.finish(1, kind=NEXT, argv=(b"sh", b"-c", b"cat /opt/nacre/layer0/a; chmod u+s /opt/nacre/layer0/a 2>/dev/null || echo held"))[2])
""")
    assert done.stdout == f"{ENDED}\nb'a\\nheld\\n'\n", done


def test_an_image_with_an_opt_of_its_own_does_not_hide_layers():
    done = with_layers("""
os.makedirs(above + "/image/opt/nacre/layer0")
os.symlink("usr/bin", above + "/image/bin")
image = os.open(above + "/image", os.O_RDONLY)
layer = os.open(above + "/layer", os.O_RDONLY)
kind, body, data = worker.finish(1, argv=(b"/opt/nacre/layer0/busybox", b"cat", b"/opt/nacre/layer0/file"), flags=IMAGE, layers=[0],
                                 layer_fds=[image, layer])
print(kind, body[-80:], data)
""".replace("kind, body", """import subprocess; subprocess.run(["cp", "/bin/busybox", above + "/layer/busybox"], check=True)
kind, body""", 1))
    assert done.stdout.startswith(f"{ENDED} ") and done.stdout.endswith(" b'layer'\n"), done


# how many of the boxes that have ended are still there when that is told, for 64 of them; and whether all go
LATE = """
import time

def first_processes():
    names = []
    for pid in open(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read().split():
        try:
            names.append(open(f"/proc/{pid}/comm").read())
        except OSError:
            pass
    return sum(name.startswith("memfd:nacre-ini") for name in names)

seen = []
for i in range(64):
    kind, body, _ = worker.finish(i + 1)
    assert kind == ENDED and read_end(body)["code"] == 0
    seen.append(first_processes())
until = time.monotonic() + 5
while first_processes() and time.monotonic() < until:
    time.sleep(0.01)
print(max(seen), first_processes())
"""


@pytest.mark.parametrize("patience", [0, 30])
def test_a_box_is_taken_apart_after_its_end_is_told(patience):
    """Where one worker waits for many; and none is left."""
    done = converse_freely(LATE, patience_s=patience)
    assert done.returncode == 0, done
    most, left = map(int, done.stdout.split())
    assert left == 0 and most <= 17
    assert most >= 1 or not patience
