# nacre: found code.reflect
def f(): pass
print(input().format(f))
