# nacre: kernel namespaces
# policy: standard
# input: unshare
read -r x
$x --user id
