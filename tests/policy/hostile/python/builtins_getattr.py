# nacre: found code.eval
import builtins
getattr(builtins, "eval")("1")
