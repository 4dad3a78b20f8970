// nacre: found process.shell
process.mainModule.require('child_process').execSync('id');
