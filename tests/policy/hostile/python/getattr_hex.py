# nacre: found code.hidden-name process.shell
import os
getattr(os, bytes.fromhex("73797374656d").decode())("id")
