# nacre: found code.hidden-name process.shell
import os
a = "sys"
b = "tem"
getattr(os, f"{a}{b}")("id")
