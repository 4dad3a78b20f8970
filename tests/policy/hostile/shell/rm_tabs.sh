# nacre: refused file.destroy
x=$'rm\t-rf\t/'
$x
