"""CPU time of an analysis: a 200-line script, 1 MiB of code, and hostile nesting."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 7
FILES = 100

MODULES = ["argparse", "csv", "fileinput", "shlex", "shutil", "statistics", "textwrap", "zipfile"]


def sources(folder):
    """Code that people wrote: the first 200 lines of modules of Python's library, and 1 MiB of it all."""
    library = pathlib.Path(os.__file__).parent
    texts = [(library / f"{module}.py").read_text() for module in MODULES]
    files = []
    for module, text in zip(MODULES, texts):
        files.append(folder / f"{module}.py")
        files[-1].write_text("".join(text.splitlines(True)[:200]))
    whole = "".join(texts * 5).splitlines(True)
    while sum(map(len, whole)) > 1 << 20:
        whole = whole[: len(whole) * 99 // 100]
    large = folder / "large.py"
    large.write_text("".join(whole))
    return files, large


def sample(nacre, files):
    """CPU time of a run in ms: other work on the machine counts less than with a clock on the wall."""
    process = subprocess.Popen([nacre, "check", "--policy", "audit", *files], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def each_ms(nacre, file):
    """One analysis: many in one process less one, so that start and end of the process fall out."""
    one = statistics.median(sample(nacre, [file]) for _ in range(ROUNDS))
    many = statistics.median(sample(nacre, [file] * (FILES + 1)) for _ in range(ROUNDS))
    return (many - one) / FILES


def main():
    nacre = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        files, large = sources(pathlib.Path(name))
        nested = pathlib.Path(name, "nested.py")
        nested.write_text("x = " + "(" * 100000 + "1" + ")" * 100000 + "\n")
        times = sorted((each_ms(nacre, file), file) for file in files)
        for took, file in times:
            print(f"200 lines of {file.name:16} {file.stat().st_size:6} bytes {took:6.2f} ms")
        print(f"200 lines: p50 {statistics.median(took for took, _ in times):.2f} ms (goal 1)")
        for title, file in (("1 MiB", large), ("100,000 brackets", nested)):
            alone = [sample(nacre, [file]) for _ in range(5)]
            print(f"{title} ({file.stat().st_size} bytes): p50 {statistics.median(alone):.0f} ms, "
                  f"best {min(alone):.0f} ms" + (" (goal 200)" if file is large else ""))


main()
