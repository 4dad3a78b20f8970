"""Two built trees, interleaved in one run: what got slower? Usage: bench/ab.py OLD-BUILD NEW-BUILD [--quick] [--rounds N] [--only PART] [--json]

Both daemons run during the whole time, and each round measures everything with both, in an order that changes, so that noise of the
machine meets both alike. A round makes one ratio (new to old) of each measure; what is printed is the median of these ratios with
their quartiles. A ratio above 1 is worse, except for rates. An interval that holds 1.00 shows no difference. As root boxes have all
their layers; ordinary users may measure too.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from exec import compile_c, machine, time_one
from measuring import Client, memory, percentile, rate, timed

ROUNDS, QUICK_ROUNDS = 21, 5
COLD, WARM, SANDBOXES, SPAWNED = 12, 120, 6, 60  # samples of each tree in a round
RATE_SECONDS = 2
IDLE_ROUNDS, QUICK_IDLE_ROUNDS, SETTLE_SECONDS = 5, 2, 8
HELLO = "print('hi')"
# name, what it is measured in
MEASURES = {"cold exec p50": "ms", "box in a running spawner p50": "us", "warm Python p50": "ms", "warm Python p99": "ms", "rate of 8 clients": "1/s",
            "sandbox create p50": "ms", "first command p50": "ms", "idle memory": "KiB"}
PARTS = ("cold", "spawner", "warm", "rate", "sandbox", "idle")


class Side:
    """One of the two trees."""

    def __init__(self, name, build, top):
        self.name, self.build, self.home = name, build.resolve(), top / name
        self.home.mkdir()
        self.nacre = self.build / "nacre"
        # Messages between programs change from tree to tree: bench/spawner.c is that of the tree itself.
        self.source = pathlib.Path(json.loads((self.build / "meson-info/meson-info.json").read_text())["directories"]["source"])
        self.spawner = top / f"spawner-{name}"

    def build_spawner(self):
        return compile_c("spawner.c", self.spawner, self.build / "src/libkernel.a", self.build / "src/libbase.a", root=self.source)

    def serve(self, name="serve"):
        from serving import Daemon
        home = self.home / name
        home.mkdir()
        return Daemon(home, program=self.nacre, respawn=True)


class Table:
    """Values by measure and side, one of each in a round."""

    def __init__(self):
        self.values = {}

    def put(self, measure, side, value):
        self.values.setdefault(measure, {}).setdefault(side.name, []).append(value)

    def rows(self):
        for measure in MEASURES:
            if measure in self.values:
                old, new = self.values[measure]["old"], self.values[measure]["new"]
                ratios = [b / a for a, b in zip(old, new)]
                low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
                yield {"measure": measure, "unit": MEASURES[measure], "old": statistics.median(old), "new": statistics.median(new),
                       "ratio": middle, "ratio_q1": low, "ratio_q3": high, "rounds": len(ratios)}


def each(sides, n):
    """So many turns of every side, in an order that is drawn anew for each turn."""
    for _ in range(n):
        yield from random.sample(sides, len(sides))


def samples(sides, n, call):
    found = {side.name: [] for side in sides}
    for side in each(sides, n):
        found[side.name].append(call(side))
    return found


def measure_cold(sides, table):
    def once(side):
        ns, status = time_one([str(side.nacre), "exec", "--", "/bin/true"])
        assert status == 0, f"{side.name}: wait status {status}"
        return ns / 1e6

    found = samples(sides, COLD, once)
    for side in sides:
        table.put("cold exec p50", side, percentile(found[side.name], 0.5))


def measure_spawner(sides, table):
    """Orders 10 ms apart, so that the spawner has a box prepared, as under a daemon that is not pressed."""
    for side in each(sides, 1):
        out = subprocess.run([side.spawner, side.build / "nacre-spawner", str(SPAWNED), "10"], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
        row = next(line for line in out.splitlines() if "/bin/true" in line and "order to end" in line)
        table.put("box in a running spawner p50", side, float(row.split("|")[3]))


def measure_warm(sides, table):
    found = samples(sides, WARM, lambda side: timed(side.client.execute, HELLO))
    for side in sides:
        table.put("warm Python p50", side, percentile(found[side.name], 0.5))
        table.put("warm Python p99", side, percentile(found[side.name], 0.99))


def measure_rate(sides, table):
    for side in each(sides, 1):
        def make(daemon=side.daemon):
            client = Client(daemon)
            return lambda: client.execute(HELLO)

        table.put("rate of 8 clients", side, rate(make, RATE_SECONDS))
        time.sleep(0.5)  # what is left of it is not load for the other one


def measure_sandbox(sides, table):
    def once(side):
        made = {}
        create = timed(lambda: made.update(side.client.ask("POST", "/v1/sandboxes", {"timeout": 60})))
        place = f"/v1/sandboxes/{made['id']}"
        first = timed(side.client.ask, "POST", f"{place}/commands", {"command": ["/bin/true"]})
        side.client.ask("DELETE", place)
        return create, first

    found = samples(sides, SANDBOXES, once)
    for side in sides:
        for i, measure in enumerate(("sandbox create p50", "first command p50")):
            table.put(measure, side, percentile([sample[i] for sample in found[side.name]], 0.5))


def measure_idle(sides, table, rounds):
    """All processes of a fresh daemon that has run a few programs; both at once, so that what all share is shared alike."""
    for n in range(rounds):
        with contextlib.ExitStack() as stack:
            daemons = {side: stack.enter_context(side.serve(f"idle-{n}")) for side in each(sides, 1)}
            for daemon in daemons.values():
                for _ in range(5):
                    Client(daemon).execute(HELLO)
            time.sleep(SETTLE_SECONDS)
            for side, daemon in daemons.items():
                table.put("idle memory", side, sum(memory(daemon.process.pid).values()))


def measure(sides, given, table):
    stages = {"cold": measure_cold, "spawner": measure_spawner, "warm": measure_warm, "rate": measure_rate, "sandbox": measure_sandbox}
    stages = [stage for part, stage in stages.items() if part in given.only]
    if measure_spawner in stages and not all([side.build_spawner() for side in sides]):
        stages.remove(measure_spawner)
    with contextlib.ExitStack() as stack:
        for side in sides:
            side.daemon = stack.enter_context(side.serve())
            side.client = Client(side.daemon)
        for stage in stages:  # what comes first is slow
            stage(sides, Table())
        for n in range(given.rounds):
            for stage in stages:
                stage(sides, table)
            print(f"round {n + 1} of {given.rounds}", file=sys.stderr, flush=True)
    if "idle" in given.only:
        measure_idle(sides, table, QUICK_IDLE_ROUNDS if given.quick else IDLE_ROUNDS)


def show(rows):
    lines = ["| measure | old | new | new to old, median | quartiles | rounds |", "|---|---|---|---|---|---|"]
    return "\n".join(lines + [f"| {row['measure']} ({row['unit']}) | {row['old']:.2f} | {row['new']:.2f} | {row['ratio']:.3f} | "
                              f"{row['ratio_q1']:.3f} to {row['ratio_q3']:.3f} | {row['rounds']} |" for row in rows])


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=pathlib.Path, metavar="OLD-BUILD")
    parser.add_argument("new", type=pathlib.Path, metavar="NEW-BUILD")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds instead of {ROUNDS}")
    parser.add_argument("--rounds", type=int, help="so many rounds")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part alone; may be given again")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    given = parser.parse_args()
    given.only = given.only or PARTS
    given.rounds = given.rounds or (QUICK_ROUNDS if given.quick else ROUNDS)
    return given


def main():
    given = options()
    os.environ["NACRE_BUILD"] = str(given.new.resolve())
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/func"))
    top = pathlib.Path(tempfile.mkdtemp(prefix="nacre-ab-"))
    top.chmod(0o755)
    table = Table()
    try:
        measure([Side("old", given.old, top), Side("new", given.new, top)], given, table)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    rows = list(table.rows())
    print(json.dumps({"machine": machine(), "measures": rows}, indent=1) if given.json else f"{machine()}\n\n{show(rows)}")


if __name__ == "__main__":
    main()
