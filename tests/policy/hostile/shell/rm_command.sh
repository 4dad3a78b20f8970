# nacre: refused file.destroy
command rm -rf /
