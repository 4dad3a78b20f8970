# nacre: found code.introspect
import logging
logging.basicConfig(format="{args[0].__globals__}", style="{")
logging.warning("x", print)
