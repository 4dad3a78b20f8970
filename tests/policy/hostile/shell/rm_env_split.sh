# nacre: refused file.destroy
env -S "rm -rf /"
