# nacre: found process.kill-all
kill -9 -1
