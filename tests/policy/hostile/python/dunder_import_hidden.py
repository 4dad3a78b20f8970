# nacre: found code.hidden-name process.shell
__import__("o" + "s").system("id")
