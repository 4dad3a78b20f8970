# nacre: refused file.destroy
timeout --signal KILL 5 rm -rf /
