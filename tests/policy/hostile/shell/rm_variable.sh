# nacre: refused file.destroy
command=rm
options="-rf"
$command $options /
