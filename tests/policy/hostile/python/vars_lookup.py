# nacre: found process.shell
import os
vars(os)["system"]("id")
