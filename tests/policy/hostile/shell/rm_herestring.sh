# nacre: refused file.destroy
sh <<< "rm -rf /"
