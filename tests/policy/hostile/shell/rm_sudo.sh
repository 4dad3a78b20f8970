# nacre: refused file.destroy system.privilege
sudo -n rm -rf /
