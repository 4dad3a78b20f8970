# nacre: found process.shell
import importlib
importlib.import_module("os").system("id")
