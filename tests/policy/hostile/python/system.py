# nacre: refused file.destroy process.shell
import os
os.system("rm -rf /")
