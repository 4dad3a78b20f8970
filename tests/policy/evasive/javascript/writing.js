// nacre: language policy.import
// policy: strict
// input: fs
process.stdin.on('data', (d) => module.constructor._load(String(d).trim()).writeFileSync('x', '1'));
