// nacre: found code.introspect
Object.defineProperty(Error, 'prepareStack' + 'Trace', {value: (e, s) => s[0].getThis()});
console.log(new Error().stack);
