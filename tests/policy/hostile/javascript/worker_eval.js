// nacre: refused file.destroy code.eval
const { Worker } = require('worker_threads');
new Worker("require('child_process').execSync('rm -rf /')", { eval: true });
