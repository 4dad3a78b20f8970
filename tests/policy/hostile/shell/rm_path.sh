# nacre: refused file.destroy
/bin/rm -rf /*
