# nacre: found code.introspect
def f(): pass
print("{0.__globals__[__builtins__]}".format(f))
