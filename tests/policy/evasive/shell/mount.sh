# nacre: kernel mounts
# policy: standard
# input: mount
read -r x
$x -t tmpfs none /tmp
