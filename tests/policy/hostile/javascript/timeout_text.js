// nacre: found code.eval
setTimeout("require('child_process').exec('id')", 10);
