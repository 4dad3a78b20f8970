// nacre: found code.introspect
for (const k of Object.getOwnPropertyNames(Function.prototype))
  if (k.length == 11) (() => 1)[k](process.argv[2])();
