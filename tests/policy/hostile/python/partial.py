# nacre: refused file.destroy
import os
from functools import partial
partial(os.system, "rm -rf /")()
run = partial(os.system)
run("rm -rf /")
