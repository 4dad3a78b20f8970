# nacre: refused file.destroy
rsync -a --delete /empty/ /
if [ -e done ]; then
	echo "done"
fi
