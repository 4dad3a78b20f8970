// nacre: allowed medium
const util = require('util');
const exec = util.promisify(require('child_process').exec);

(async () => {
  const { stdout } = await exec('ls -la');
  console.log(stdout);
})();
