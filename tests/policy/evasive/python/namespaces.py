# nacre: kernel namespaces
# policy: standard
# input: unshare
import ctypes
getattr(ctypes.CDLL(None), input())(0x10000000)
