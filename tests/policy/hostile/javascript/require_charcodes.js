// nacre: found code.hidden-name
const m = require([102, 115].map((c) => String.fromCharCode(c)).join(''));
m.readFileSync('x');
