// nacre: found code.introspect code.eval
[].constructor.constructor('return process')().exit();
