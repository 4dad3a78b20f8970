# nacre: allowed medium
import importlib
import pkgutil

import plugins

for module in pkgutil.iter_modules(plugins.__path__):
    loaded = importlib.import_module(f"plugins.{module.name}")
    print(getattr(loaded, "NAME", module.name))
