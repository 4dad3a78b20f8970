# nacre: found code.hidden-name process.run
import base64
import importlib
m = importlib.import_module(base64.b64decode("c3VicHJvY2Vzcw==").decode())
m.run(["id"])
