"""How long `nacre doctor` takes, beside a bare python3 start in the same run."""

import statistics
import subprocess
import sys
import time

ROUNDS = 30


def sample(command):
    started = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - started) * 1000


def main():
    nacre = sys.argv[1]
    commands = {
        "nacre doctor": [nacre, "doctor"],
        "nacre --version": [nacre, "--version"],
        "python3 -c pass": ["/usr/bin/python3", "-c", "pass"],
    }
    times = {name: [] for name in commands}
    for _ in range(ROUNDS):  # interleaved, so that noise of the machine meets all alike
        for name, command in commands.items():
            times[name].append(sample(command))
    peer = statistics.median(times["python3 -c pass"])
    print(f"{'command':18} {'p50 ms':>8} {'max ms':>8}  ratio to python3")
    for name, values in times.items():
        p50 = statistics.median(values)
        print(f"{name:18} {p50:8.1f} {max(values):8.1f}  {p50 / peer:.2f}")


main()
