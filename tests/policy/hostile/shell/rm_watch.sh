# nacre: refused file.destroy
watch -n 5 'rm -rf /'
if [ -e done ]; then
	echo "done"
fi
