# nacre: refused file.destroy
env FOO=bar rm -rf /
