# nacre: found process.shell
import operator
import os
operator.attrgetter("system")(os)("id")
