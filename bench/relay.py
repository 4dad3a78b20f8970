#!/usr/bin/env python3
"""What the relay costs: a command in a running box, and 64 MB of its output, directly and through two relays in turn.

    bench/relay.py [BUILD [ROUNDS]]

Each way has a spawner of its own, with a worker in Python that measures. Both run at once, and take turns round by round, so that
what else the machine does meets both. Bars: a command at most 150 us more, output at least 60 % of the direct rate."""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
COMMANDS, SIZE = 20, 64_000_000

# a round: the median of some commands in microseconds, and the MB/s of output
WORKER = f"""
import select, statistics, sys, time
worker = Worker(patience=30)
worker.hello()
FIELDS = dict(wall=3600000, pids=50, env=(b"PATH=/usr/bin:/bin",))
worker.finish(1, argv=(b"true",), flags=STAY, **FIELDS)

def command(argv):
    start = time.perf_counter()
    output = worker.run(1, kind=NEXT, argv=argv, flags=STAY, **FIELDS)
    size = 0
    while part := os.read(output, 1 << 16):
        size += len(part)
    os.close(output)
    while worker.receive()[0] != ENDED:
        pass
    return time.perf_counter() - start, size

for line in sys.stdin:
    times = statistics.median(command((b"/bin/true",))[0] for _ in range({COMMANDS})) * 1e6
    taken, size = command((b"head", b"-c", b"{SIZE}", b"/dev/zero"))
    assert size == {SIZE}, size
    print(times, {SIZE} / taken / 1e6, flush=True)
"""


class Side:
    """A spawner with that worker."""

    def __init__(self, relay=None):
        script = (ROOT / "tests/func/wire.py").read_text() + (f"\nthrough_relay({str(relay)!r})\n" if relay else "") + WORKER
        python = os.open(os.path.realpath("/usr/bin/python3"), os.O_RDONLY)
        self.process = subprocess.Popen([BUILD / "nacre-spawner", "0", "0", "0,0,0,0,1", "python3", "-c", script], text=True, pass_fds=(4,),
                                        preexec_fn=lambda: os.dup2(python, 4), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.close(python)

    def round(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return tuple(map(float, self.process.stdout.readline().split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:  # where the spawner's worker can reach it
        os.chmod(directory, 0o755)
        relay = shutil.copy(BUILD / "nacre-relay", directory)
        direct, relayed = Side(), Side(relay)
        pairs = [(direct.round(), relayed.round()) for _ in range(ROUNDS + 2)][2:]
        direct.close()
        relayed.close()
    commands = [statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)]
    rates = [statistics.median(pair[side][1] for pair in pairs) for side in (0, 1)]
    more = statistics.median(pair[1][0] - pair[0][0] for pair in pairs)
    part = statistics.median(pair[1][1] / pair[0][1] for pair in pairs)
    print(f"a command in a running box: {commands[0]:.0f} us directly, {commands[1]:.0f} us through the relay: {more:.0f} us more (bar: 150)")
    print(f"64 MB of output: {rates[0]:.0f} MB/s directly, {rates[1]:.0f} MB/s through the relay: {part * 100:.0f} % (bar: 60)")


main()
