// nacre: found code.eval
eval(process.argv[2]);
