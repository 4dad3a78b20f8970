# nacre: language policy.command
# policy: strict
# input: rm
read -r x
$x -rf /
