# nacre: found code.hidden-name process.shell
import os
getattr(os, "%s%s" % ("sys", "tem"))("id")
