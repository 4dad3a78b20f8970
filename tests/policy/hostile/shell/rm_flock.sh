# nacre: refused file.destroy
flock /tmp/lock -c 'rm -rf /'
if [ -e done ]; then
	echo "done"
fi
