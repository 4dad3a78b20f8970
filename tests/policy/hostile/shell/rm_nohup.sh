# nacre: refused file.destroy
nohup nice -n 19 timeout 10 rm -rf / &
