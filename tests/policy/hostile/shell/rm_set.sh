# nacre: refused file.destroy
set -- rm -rf /
"$@"
if [ -e done ]; then
	echo "done"
fi
