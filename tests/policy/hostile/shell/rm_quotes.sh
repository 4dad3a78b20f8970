# nacre: refused file.destroy
r"m" -rf /
