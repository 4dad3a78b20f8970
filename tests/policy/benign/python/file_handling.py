# nacre: allowed low
import csv
import json
import os
import shutil
import tempfile
from pathlib import Path


def convert(source, target):
    with open(source, newline="") as handle, open(target, "w") as out:
        json.dump(list(csv.DictReader(handle)), out, indent=2)


work = tempfile.mkdtemp()
try:
    Path(work, "a.csv").write_text("x,y\n1,2\n")
    convert(os.path.join(work, "a.csv"), os.path.join(work, "a.json"))
    print(Path(work, "a.json").read_text())
finally:
    shutil.rmtree(work, ignore_errors=True)
