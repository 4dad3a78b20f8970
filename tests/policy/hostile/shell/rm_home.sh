# nacre: refused file.destroy
rm -r -f "$HOME"
