// nacre: found code.hidden-name code.eval
\u0065val(process.argv[2]);
