# nacre: refused file.destroy
vim -c ':!rm -rf /'
