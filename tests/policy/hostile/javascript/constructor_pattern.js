// nacre: found code.introspect code.eval
const {constructor: F} = () => 1;
F(process.argv[2])();
