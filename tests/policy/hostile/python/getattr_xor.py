# nacre: found code.hidden-name process.shell
import os
name = "".join(chr(c ^ 32) for c in [83, 89, 83, 84, 69, 77])
getattr(os, name)("id")
