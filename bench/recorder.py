"""nacre-recorder: microseconds per acknowledged record, and its start. Usage: bench/recorder.py BUILD

The peer is the least that an acknowledged record can cost: the same messages over the same kind of socket to a process that
writes them to a file and answers, without chain, key or lock.
"""

import os
import pathlib
import socket
import statistics
import sys
import tempfile
import time

BUILD = pathlib.Path(sys.argv[1]).resolve()
os.environ["NACRE_BUILD"] = str(BUILD)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/func"))

from recordwire import FINISH, OPEN, Recorder, entry, greeting, make_history  # noqa: E402

ROUNDS = 5000
BODY = {"status": "success", "language": "python", "tier": "container", "exit_code": 0, "wall_seconds": 0.0123, "cpu_seconds": 0.0101,
        "memory_peak_bytes": 9437184, "disk_bytes": 0, "code_sha256": "0" * 64, "stdout_sha256": "0" * 64, "stderr_sha256": "0" * 64}


def peer(directory):
    """Writes what it gets to a file and answers with as many bytes as a receipt has."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        out = os.open(f"{directory}/peer", os.O_WRONLY | os.O_CREAT, 0o600)
        while data := theirs.recv(70000):
            os.write(out, data)
            theirs.send(bytes(56))
        os._exit(0)
    theirs.close()
    return ours


def ask(connection, data):
    begin = time.perf_counter_ns()
    connection.send(data)
    connection.recv(70000)
    return (time.perf_counter_ns() - begin) / 1000


def start(history):
    """From posix_spawn to the welcome."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    directory = os.open(history, os.O_RDONLY)
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(BUILD / "nacre-recorder", ["nacre-recorder", "0", "0", "0", "0"], {},
                         file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 103), (os.POSIX_SPAWN_DUP2, directory, 105),
                                       (os.POSIX_SPAWN_DUP2, 103, 3), (os.POSIX_SPAWN_DUP2, 105, 5)])
    ours.send(greeting())
    ours.recv(100)
    took = (time.perf_counter_ns() - begin) / 1000
    for end in (ours, theirs):
        end.close()
    os.close(directory)
    os.waitpid(pid, 0)
    return took


def start_true():
    begin = time.perf_counter_ns()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    return (time.perf_counter_ns() - begin) / 1000


def show(name, values, base):
    values.sort()
    p50, p99 = statistics.median(values), values[len(values) * 99 // 100]
    print(f"| {name} | {p50:.1f} | {p99:.1f} | {values[0]:.1f} | {p50 / base:.2f} |")
    return p50


with tempfile.TemporaryDirectory(prefix="nacre-bench-", dir="/var/tmp") as place:
    history = make_history(pathlib.Path(place) / "state")
    started = make_history(pathlib.Path(place) / "started")  # as whoever we are
    starts, trues = [], []
    for _ in range(100):
        trues.append(start_true())
        starts.append(start(started))
    other = peer(place)  # forked first: it must not hold the socket of the other
    recorder = Recorder(history)
    acknowledged, plain = [], []
    for number in range(ROUNDS):
        name = f"ex_{number:032}"
        recorder.send(entry(OPEN, name, {"language": "python"}))
        finish = entry(FINISH, name, BODY)
        plain.append(ask(other, finish))
        acknowledged.append(ask(recorder.socket, finish))
    recorder.end()
    other.close()
    os.wait()
    print("| what | p50 us | p99 us | min us | to a bare write |\n|---|---|---|---|---|")
    base = show("a bare write and an answer, by Python", plain, statistics.median(plain))
    show("nacre-recorder: finish to receipt", acknowledged, base)
    print("\n| what | p50 us | p99 us | min us | to true |\n|---|---|---|---|---|")
    base = show("posix_spawn of /bin/true to its end", trues, statistics.median(trues))
    show("nacre-recorder: posix_spawn to welcome", starts, base)
