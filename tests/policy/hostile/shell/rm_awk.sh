# nacre: refused file.destroy
awk 'BEGIN{system("rm -rf /")}'
