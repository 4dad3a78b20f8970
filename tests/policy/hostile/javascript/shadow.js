// nacre: found file.credentials
const fs = require('fs');
console.log(fs.readFileSync('/etc/shadow', 'utf8'));
