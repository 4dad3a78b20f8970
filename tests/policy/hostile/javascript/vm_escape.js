// nacre: found code.eval
const vm = require('vm');
vm.runInNewContext('this.constructor.constructor("return process")()');
