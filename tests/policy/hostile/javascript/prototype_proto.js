// nacre: found code.introspect code.eval
const C = (async () => {}).__proto__.constructor;
C(process.argv[2])();
