# nacre: found native.call
LD_PRELOAD=/tmp/x.so ls
if [ -e done ]; then
	echo "done"
fi
