# nacre: found file.persist
echo "ssh-rsa AAAA" >> ~/.ssh/authorized_keys
