# nacre: refused file.destroy
trap 'rm -rf /' EXIT
