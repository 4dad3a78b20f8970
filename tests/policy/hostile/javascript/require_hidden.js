// nacre: found code.hidden-name process.shell
const c = require('child_' + 'process');
c.exec('id');
