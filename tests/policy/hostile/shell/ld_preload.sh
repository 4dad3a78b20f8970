# nacre: refused file.escape
echo /tmp/x.so > /etc/ld.so.preload
