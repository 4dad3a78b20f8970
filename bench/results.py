"""What benchmarks share: their options, and bench/RESULTS.md with one part for each, replaced by the next run that is written down."""

import argparse
import os
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "RESULTS.md"


def put(name, text):
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = RESULTS.read_text().partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    RESULTS.write_text(f"{before if found else before + chr(10)}{begin}\n{text.strip()}\n{end}{after}")


def options(description):
    """BUILD [--quick] [--write]; what tests/func has can be imported then."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    os.environ["NACRE_BUILD"] = str(given.build.resolve())
    sys.path.insert(0, str(RESULTS.parents[1] / "tests/func"))
    return given
