// nacre: found code.hidden-name code.eval
const name: string = 'ev' + 'al';
(globalThis as any)[name]('1');
