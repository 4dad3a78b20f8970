# nacre: found code.hidden-name process.shell
import os
getattr(os, "".join(map(chr, [115, 121, 115, 116, 101, 109])))("id")
