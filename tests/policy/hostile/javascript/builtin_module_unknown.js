// nacre: found code.dynamic-import
process.getBuiltinModule(process.argv[2]).exec('x');
