# nacre: found file.credentials
import os
key = open(os.path.join(os.path.expanduser("~"), ".ssh", "id_rsa")).read()
