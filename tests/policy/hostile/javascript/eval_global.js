// nacre: found code.eval code.hidden-name
globalThis['ev' + 'al']('1');
