// nacre: found code.builtins
const p = Object.getPrototypeOf(() => 1);
Object.getOwnPropertyDescriptor(p, 'constructor').value(process.argv[2])();
