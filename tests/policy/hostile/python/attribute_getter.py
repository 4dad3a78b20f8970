# nacre: found code.introspect
import operator
print(operator.attrgetter("__class__.__base__.__subclasses__")(1)())
