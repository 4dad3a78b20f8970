# nacre: kernel other-processes
# policy: standard
# input: ptrace
import ctypes
getattr(ctypes.CDLL(None), input())(16, 1, 0, 0)
