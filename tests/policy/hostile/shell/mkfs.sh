# nacre: refused file.destroy
mkfs.ext4 /dev/sdb1
