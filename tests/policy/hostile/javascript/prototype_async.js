// nacre: found code.introspect code.eval
const F = Object.getPrototypeOf(async function () {}).constructor;
new F(process.argv[2])();
