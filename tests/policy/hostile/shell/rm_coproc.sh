# nacre: refused file.destroy
coproc rm -rf /
