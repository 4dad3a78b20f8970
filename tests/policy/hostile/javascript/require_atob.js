// nacre: found code.hidden-name process.shell
require(atob('Y2hpbGRfcHJvY2Vzcw==')).exec('id');
