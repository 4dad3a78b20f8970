# nacre: found code.eval
list(map(eval, ["1", "2"]))
