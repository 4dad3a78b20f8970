// nacre: found code.builtins
function make(x) {
  return new x.constructor(process.argv[2]);
}
make(make)();
