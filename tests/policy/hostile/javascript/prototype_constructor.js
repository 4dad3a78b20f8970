// nacre: found code.eval
Function.prototype.constructor('return process')();
