# nacre: kernel mounts
# policy: standard
# input: mount
import ctypes
getattr(ctypes.CDLL(None), input())(b'none', b'/tmp', b'tmpfs', 0, None)
