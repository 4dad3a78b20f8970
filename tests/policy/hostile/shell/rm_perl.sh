# nacre: refused file.destroy
perl -e 'system("rm -rf /")'
if [ -e done ]; then
	echo "done"
fi
