# nacre: found code.introspect
print(list(map("{0.__self__.__loader__.__init__.__globals__}".format, [print])))
