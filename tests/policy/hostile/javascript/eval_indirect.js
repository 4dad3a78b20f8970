// nacre: found code.eval
(0, eval)('1');
