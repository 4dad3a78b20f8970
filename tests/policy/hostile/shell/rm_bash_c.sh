# nacre: refused file.destroy
bash -lc "rm -rf /"
