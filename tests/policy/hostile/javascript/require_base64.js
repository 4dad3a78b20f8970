// nacre: found code.hidden-name process.shell
const c = require(Buffer.from('Y2hpbGRfcHJvY2Vzcw==', 'base64').toString());
c.exec('id');
