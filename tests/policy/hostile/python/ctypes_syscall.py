# nacre: found native.syscall
from ctypes import CDLL
libc = CDLL("libc.so.6")
libc.syscall(59, b"/bin/sh", 0, 0)
