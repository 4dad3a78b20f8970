// nacre: found process.shell
const cp = require('child_process');
cp.exec.call(null, 'id');
