# nacre: refused file.destroy
/usr/bin/env -S 'rm -rf /'
