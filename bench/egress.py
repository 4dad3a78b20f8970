"""What the door costs: a transfer of 1 GiB through a tunnel and by plain HTTP beside one over the loopback alone, and the
time that one request takes. The parties are processes of their own; both ways take turns.

    NACRE_BUILD=build /usr/bin/python3 bench/egress.py [ROUNDS]
"""

import multiprocessing
import os
import pathlib
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/func"))
from egresswire import Egress, connect, inner, listen, ok, read_reply  # noqa: E402

SIZE = 1 << 30
PIECE = memoryview(bytes(1 << 20))
REQUESTS = 2000


def serve(listener):
    """Answers "GET /big" with SIZE bytes, all else with a few; the connection stays."""
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if os.fork() == 0:
            while head := connection.recv(65536):
                if b"/big " in head:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE)
                    for _ in range(SIZE // len(PIECE)):
                        connection.sendall(PIECE)
                else:
                    connection.sendall(ok())
            os._exit(0)
        connection.close()


def transfer(client, target, host):
    into = memoryview(bytearray(1 << 20))
    begin = time.monotonic()
    client.sendall(f"GET {target}/big HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    got = 0
    while got < SIZE:
        n = client.recv_into(into)
        assert n > 0
        got += n
    return got / (time.monotonic() - begin) / 1e9


def latency(client, target, host):
    """Microseconds of each request on a connection that stays."""
    head = f"GET {target}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    times = []
    for _ in range(REQUESTS):
        begin = time.perf_counter()
        client.sendall(head)
        while b"hello" not in client.recv(65536):
            pass
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def first(open_connection, target, host):
    """Microseconds of a connection and its first request."""
    times = []
    for _ in range(REQUESTS // 4):
        begin = time.perf_counter()
        with open_connection() as client:
            client.sendall(f"GET {target}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            read_reply(client)
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def cpu(process):
    """Seconds that it has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def plain(port):
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    listener = listen()
    far = listener.getsockname()[1]
    server = multiprocessing.Process(target=serve, args=(listener,))
    server.start()
    host = f"bench.test:{far}"
    with tempfile.NamedTemporaryFile("w") as hosts:
        hosts.write("127.0.0.1 bench.test\n")
        hosts.flush()
        os.chmod(hosts.name, 0o644)
        door = Egress(hosts=hosts.name).hello()
        near = door.open(rules=inner(host))
        ways = {"direct": (lambda: plain(far), ""), "tunnel": (lambda: connect(near, host)[0], ""),
                "http": (lambda: plain(near), f"http://{host}")}
        rates = {way: [] for way in ways}
        kept = {way: [] for way in ways}
        fresh = {way: [] for way in ways}
        used = {way: [] for way in ways}
        for _ in range(rounds):
            for way, (open_connection, target) in ways.items():
                with open_connection() as client:
                    before = cpu(door.process)
                    rates[way].append(transfer(client, target, host))
                    used[way].append(cpu(door.process) - before)
                with open_connection() as client:
                    kept[way].append(latency(client, target, host))
                fresh[way].append(first(open_connection, target, host))
        door.close()
    server.terminate()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'way':8} {'GB/s':>6} {'of direct':>10} {'door CPU s':>11} {'request us':>11} {'added':>6} {'with connection us':>19} {'added':>6}")
    for way in ways:
        rate, request, begin = (statistics.median(of[way]) for of in (rates, kept, fresh))
        print(f"{way:8} {rate:6.2f} {rate / statistics.median(rates['direct']):10.2f} {statistics.median(used[way]):11.2f}"
              f" {request:11.0f}"
              f" {request - statistics.median(kept['direct']):6.0f} {begin:19.0f} {begin - statistics.median(fresh['direct']):6.0f}")


main()
