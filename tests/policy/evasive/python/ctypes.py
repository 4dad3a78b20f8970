# nacre: language native.call
# policy: strict
# input: ctypes
import importlib
m = importlib.import_module(input())
print(m.CDLL(None).system(b'id'))
