# nacre: found code.hidden-name process.shell
import os
getattr(os, "{}{}".format("sys", "tem"))("id")
