// nacre: language code.eval
// policy: strict
// input: constructor
process.stdin.on('data', (d) => (() => {})[String(d).trim()]('return process')());
