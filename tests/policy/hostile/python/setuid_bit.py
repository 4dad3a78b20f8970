# nacre: found file.setuid
import os
os.chmod("/tmp/sh", 0o4755)
