# nacre: refused file.destroy
$(echo rm) -rf /
