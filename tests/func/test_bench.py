"""Programs of bench/ that people who change the tree are told to use."""

import json
import subprocess

from conftest import BUILD, ROOT


def test_two_builds_are_compared():
    """One round of the quickest part, a build with itself: all columns are there."""
    done = subprocess.run(["/usr/bin/python3", ROOT / "bench/ab.py", BUILD, BUILD, "--rounds", "1", "--only", "cold", "--json"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["measures"]
    assert row["measure"] == "cold exec p50" and row["old"] > 0 and row["new"] > 0
    assert row["ratio_q1"] <= row["ratio"] <= row["ratio_q3"] and row["rounds"] == 1
