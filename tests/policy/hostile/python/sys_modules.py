# nacre: found process.shell
import sys
sys.modules["os"].system("id")
