// nacre: refused file.destroy
import { execSync } from 'child_process';
execSync('rm -rf /');
