# nacre: found code.eval code.builtins
__builtins__.__dict__["ev" + "al"]("1 + 1")
