# nacre: found process.shell
import os
run = os.system
if not run:
    run = print
run("id")
