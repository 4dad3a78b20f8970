# nacre: found native.call
import ctypes
ctypes.CDLL(None).system(b"id")
