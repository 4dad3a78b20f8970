# nacre: refused file.destroy
source <(echo rm -rf /)
