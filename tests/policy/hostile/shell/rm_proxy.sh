# nacre: refused file.destroy
ssh -o ProxyCommand='rm -rf /' host
if [ -e done ]; then
	echo "done"
fi
