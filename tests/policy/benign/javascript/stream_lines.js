// nacre: allowed low
const fs = require('fs');
const readline = require('readline');

const lines = readline.createInterface({ input: fs.createReadStream('data.txt') });
let count = 0;
lines.on('line', (line) => { count += line.length > 0; });
lines.on('close', () => console.log(count));
