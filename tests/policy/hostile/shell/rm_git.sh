# nacre: refused file.destroy
git -c core.pager='rm -rf /' log
if [ -e done ]; then
	echo "done"
fi
