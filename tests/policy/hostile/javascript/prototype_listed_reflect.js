// nacre: found code.introspect
const key = Reflect.ownKeys(Array.prototype).find(name => name.length === 11);
[][key][key](process.argv[2])();
