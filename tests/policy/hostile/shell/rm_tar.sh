# nacre: refused file.destroy
tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm -rf /' a
if [ -e done ]; then
	echo "done"
fi
