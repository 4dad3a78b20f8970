# nacre: found code.hidden-name process.shell
import os
getattr(os, "".join(["s", "ys", "tem"]))("id")
