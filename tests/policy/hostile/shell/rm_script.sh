# nacre: refused file.destroy
script -c 'rm -rf /'
