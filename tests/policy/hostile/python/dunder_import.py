# nacre: found process.shell
__import__("os").system("id")
