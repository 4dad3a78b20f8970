// Loaded by Node before its program, which is known when load() returns: see ahead.c.
'use strict';
const fs = require('fs');
const object = __filename.replace(/js$/, 'node');
const load = (path) => { const target = { exports: {} }; process.dlopen(target, path); return target.exports; };
process.execArgv = [];
fs.unlinkSync(__filename);
delete require.cache[__filename];
// threads would load this again, which is gone
const threads = require('worker_threads');
const Thread = threads.Worker;
threads.Worker = class Worker extends Thread {
  constructor(file, options) { super(file, { execArgv: [], ...options }); }
};
require('module').syncBuiltinESMExports();
// what most programs begin with: streams for their output, and values as text
for (const name of ['net', 'tty', 'stream', 'util', 'path', 'events', 'url', 'os']) require(name);
const nowhere = new (require('stream').Writable)({ write(chunk, encoding, done) { done(); } });
new console.Console(nowhere).log('%s', 'text', 1, { list: [true, null], map: new Map([[1, 'a']]) }, new Error('none'));
const words = load(object).split('\0');
fs.unlinkSync(object);
const behind = Number(words[0]) + 1;
process.argv.splice(2, Infinity, ...words.slice(3, behind));
for (const name of Object.keys(process.env)) delete process.env[name];
for (const word of words.slice(behind)) {
  const at = word.indexOf('=', 1);
  if (at > 0) process.env[word.slice(0, at)] = word.slice(at + 1);
}
