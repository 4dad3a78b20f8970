// nacre: found code.hidden-name process.shell
require('ssecorp_dlihc'.split('').reverse().join('')).exec('id');
