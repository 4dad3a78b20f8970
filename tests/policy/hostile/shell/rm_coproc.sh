# nacre: refused file.destroy
coproc rm -rf /
if [ -e done ]; then
	echo "done"
fi
