# nacre: found code.eval
globals()["__builtins__"]["eval"]("2")
