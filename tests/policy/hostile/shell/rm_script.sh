# nacre: refused file.destroy
script -c 'rm -rf /'
if [ -e done ]; then
	echo "done"
fi
