"""bench/RESULTS.md: one part for each benchmark, replaced by its next run that is written down."""

import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent / "RESULTS.md"


def put(name, text):
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = RESULTS.read_text().partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    RESULTS.write_text(f"{before if found else before + chr(10)}{begin}\n{text.strip()}\n{end}{after}")
