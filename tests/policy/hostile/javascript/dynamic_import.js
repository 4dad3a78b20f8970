// nacre: found process.shell
const cp = await import('child_process');
cp.exec('id');
