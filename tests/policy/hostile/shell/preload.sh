# nacre: found native.call
LD_PRELOAD=/tmp/x.so ls
