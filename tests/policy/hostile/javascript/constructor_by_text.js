// nacre: found code.eval
const F = Math.max['constr' + 'uctor'];
F(process.argv[2])();
