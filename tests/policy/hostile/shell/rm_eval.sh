# nacre: refused file.destroy code.eval
x="rm -rf"
eval "$x /"
