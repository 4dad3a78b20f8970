# nacre: found code.hidden-name process.shell
import os
getattr(os, "metsys"[::-1])("id")
