# nacre: refused file.destroy
flock /tmp/lock -c 'rm -rf /'
