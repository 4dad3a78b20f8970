// nacre: found process.shell
import { createRequire } from 'module';
const require = createRequire(import.meta.url);
require('child_process').exec('id');
