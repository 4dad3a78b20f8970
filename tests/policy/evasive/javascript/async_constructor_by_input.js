// nacre: language code.eval
// policy: strict
// input: constructor
process.stdin.on('data', (d) => Object.getPrototypeOf(async () => {})[String(d).trim()]('return process')());
