# nacre: found code.introspect
print(object.__getattribute__(print, "__glo" "bals__"))
