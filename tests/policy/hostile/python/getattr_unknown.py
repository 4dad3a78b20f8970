# nacre: found code.reflect
import os
import sys
getattr(os, sys.argv[1])(sys.argv[2])
