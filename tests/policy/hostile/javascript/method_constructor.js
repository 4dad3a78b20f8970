// nacre: found code.eval
[].map.constructor('return process')();
