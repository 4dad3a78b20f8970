# nacre: refused file.destroy
import os
os.__dict__["system"]("rm -rf /")
