// nacre: found code.introspect code.eval
const C = Array.prototype.constructor.constructor;
C(process.argv[2])();
