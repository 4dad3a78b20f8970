// nacre: refused file.destroy code.eval
new Function("require('child_process').execSync('rm -rf /')")();
