// nacre: found code.introspect code.eval
Reflect.construct((() => {}).constructor, [process.argv[2]])();
