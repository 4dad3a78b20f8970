# nacre: found code.hidden-name
hash -p /bin/rm x
x -rf /
if [ -e done ]; then
	echo "done"
fi
