# nacre: found process.shell
import os


@os.system
def command():
    pass
