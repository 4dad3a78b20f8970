// nacre: found process.run
import * as cp from 'child_process';
cp.spawn('sh', ['-c', 'id']);
