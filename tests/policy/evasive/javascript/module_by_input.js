// nacre: language process.run
// policy: strict
// input: child_process
process.stdin.on('data', (d) => module.constructor._load(String(d).trim()).execSync('id'));
