# nacre: refused file.destroy
vim -c ':!rm -rf /'
if [ -e done ]; then
	echo "done"
fi
