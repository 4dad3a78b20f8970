# nacre: found code.introspect
class A: pass
t = "{x.__class__.__init__" + ".__globals__}"
print(t.format_map({"x": A()}))
