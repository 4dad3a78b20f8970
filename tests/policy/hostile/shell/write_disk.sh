# nacre: refused file.destroy
cat junk > /dev/nvme0n1
