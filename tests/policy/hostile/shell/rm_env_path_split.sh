# nacre: refused file.destroy
/usr/bin/env -S 'rm -rf /'
if [ -e done ]; then
	echo "done"
fi
