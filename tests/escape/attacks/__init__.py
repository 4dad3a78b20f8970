"""The attacks, one module per class, and how they are packed to be sent into a box."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import inside  # noqa: E402

KINDS = ("filesystem", "process", "network", "privilege", "resource", "information", "cleanup", "monitor", "root")
for kind in KINDS:
    __import__(f"on_{kind}")

ATTACKS = inside.ATTACKS


def program(names, context, forked):
    """The text of a Python program that runs these attacks and prints a line "verdict NAME '...'" for each."""
    kinds = dict.fromkeys(ATTACKS[name].kind for name in names)
    texts = [(HERE / "inside.py").read_text()]
    texts += [(HERE / f"on_{kind}.py").read_text().replace("from inside import *", "") for kind in kinds]
    whole = {**context, "run": list(names), "forked": forked}
    return "\n".join([*texts, f"main({whole!r})", ""])
