"""Many boxes in a row and at once. To be run in pid and mount namespaces of its own, so that it counts its own only.

Usage: torture.py NACRE IN-A-ROW AT-ONCE; prints JSON.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

SETTLE_SECONDS = 2


def counts():
    namespaces = subprocess.run(["lsns", "-n", "-t", "net", "-o", "NS"], capture_output=True, text=True, check=True).stdout
    return {"processes": sum(name.isdigit() for name in os.listdir("/proc")),
            "net namespaces": len(namespaces.split()),
            "mounts": len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())}


def available_kb():
    return next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable:"))


def settled(before):
    """The counts, after a moment for what ends asynchronously."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (now := counts()) != before and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


def run(nacre, at_once):
    boxes = [subprocess.Popen([nacre, "exec", "--", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) for _ in range(at_once)]
    texts = [box.communicate()[0] for box in boxes]
    return [f"exit status {box.returncode}: {text}" for box, text in zip(boxes, texts) if box.returncode != 0 or text]


def main():
    nacre, in_a_row, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    run(nacre, 1)  # what others left is swept
    before, memory = counts(), available_kb()
    failures = [failure for _ in range(in_a_row) for failure in run(nacre, 1)]
    failures += run(nacre, at_once)
    after = settled(before)
    json.dump({"failures": failures, "before": before, "after": after, "drift_kb": memory - available_kb()}, sys.stdout)


main()
