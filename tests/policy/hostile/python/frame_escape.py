# nacre: found code.introspect
import sys

try:
    raise ValueError
except ValueError as error:
    error.__traceback__.tb_frame.f_globals
