# nacre: refused file.destroy
busybox rm -rf /
