# nacre: refused file.destroy
rsync -a --delete /empty/ /
