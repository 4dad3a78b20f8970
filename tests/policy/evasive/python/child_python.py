# nacre: kernel namespaces
# policy: standard
# input: import ctypes; ctypes.CDLL(None).unshare(0x10000000)
import subprocess
import sys
subprocess.run([sys.executable, '-c', input()])
