# nacre: refused file.destroy
watch -n 5 'rm -rf /'
