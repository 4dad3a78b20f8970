# nacre: found code.introspect
def f():
    pass


f.__globals__["__builtins__"]["__import__"]("os")
