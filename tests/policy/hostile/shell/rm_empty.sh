# nacre: refused file.destroy
X=
rm -rf /$X
if [ -e done ]; then
	echo "done"
fi
