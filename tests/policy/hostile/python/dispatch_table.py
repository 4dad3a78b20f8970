# nacre: found process.shell
import os
table = {"go": os.system}
table["go"]("id")
