// Nacre without a daemon: `nacre engine` for programs, a private `nacre serve` for sandboxes. Both end with this process.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

import { NacreError } from './http.js';

function program() {
  const named = process.env.NACRE_PROGRAM;
  const found = (named ? [named] : (process.env.PATH ?? '').split(':').map((dir) => path.join(dir, 'nacre'))).find((file) => fs.existsSync(file));
  if (!found) throw new NacreError('There is no nacre here', { code: 'no_program', remedy: 'Install Nacre, set NACRE_PROGRAM, or name a daemon: NACRE_SERVER=http://...' });
  return found;
}

const gone = () => new NacreError('nacre engine has ended', { code: 'connection_lost' });

export class Engine {
  constructor() {
    this.child = spawn(program(), ['engine'], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
    this.socket = this.child.stdio[3];
    [this.count, this.waiting, this.data] = [0, new Map(), Buffer.alloc(0)];
    this.ended = false;
    this.ready = new Promise((resolve, reject) => this.waiting.set(0, { resolve, reject }));
    this.socket.on('data', (piece) => this.#hear(piece));
    this.socket.on('error', () => {}); // its end follows
    this.child.on('error', () => this.#end());
    this.socket.on('close', () => this.#end());
    this.#rest();
  }

  /** Whoever waits for something keeps the process alive, and an idle engine does not. */
  #rest() {
    const idle = this.waiting.size === 0;
    this.child[idle ? 'unref' : 'ref']();
    this.socket[idle ? 'unref' : 'ref']();
  }

  #end() {
    this.ended = true;
    for (const one of this.waiting.values()) one.reject(gone());
    this.waiting.clear();
  }

  #hear(piece) {
    this.data = this.data.length ? Buffer.concat([this.data, piece]) : piece;
    while (this.data.length >= 4 && this.data.length >= 4 + this.data.readUInt32LE(0)) {
      const size = this.data.readUInt32LE(0);
      const frame = JSON.parse(this.data.subarray(4, 4 + size).toString());
      this.data = this.data.subarray(4 + size);
      const one = this.waiting.get(frame.n);
      if (!one) continue;
      if (frame.event === 'output') {
        try {
          one.onOutput?.(frame);
        } catch (error) { // the caller's own: here nobody would hear of it, and the process would end
          this.waiting.delete(frame.n);
          this.#rest();
          this.#send({ n: ++this.count, op: 'cancel', of: frame.n });
          one.reject(error);
        }
        continue;
      }
      this.waiting.delete(frame.n);
      this.#rest();
      if (frame.event === 'faults') one.reject(new NacreError('The request is wrong', { code: 'bad_request', faults: frame.faults }));
      else if (frame.event === 'error') one.reject(new NacreError(frame.message, { code: frame.code }));
      else one.resolve(frame);
    }
  }

  #send(frame) {
    const body = Buffer.from(JSON.stringify(frame));
    const head = Buffer.alloc(4);
    head.writeUInt32LE(body.length);
    this.socket.write(Buffer.concat([head, body]));
  }

  async ask(frame, { onOutput, signal } = {}) {
    await this.ready;
    if (this.ended) throw gone();
    signal?.throwIfAborted();
    const n = ++this.count;
    const answer = new Promise((resolve, reject) => this.waiting.set(n, { resolve, reject, onOutput }));
    this.#rest();
    this.#send({ n, ...frame });
    const cancel = () => this.#send({ n: ++this.count, op: 'cancel', of: n });
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const reply = await answer;
      signal?.throwIfAborted();
      return reply;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }
}

/** A daemon of our own: on a port that the system chooses, with a key that only we have. */
async function startDaemon() {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-'));
  const env = { ...process.env, NACRE_STATE: home };
  const [key] = execFileSync(program(), ['key', 'create', '--role', 'admin'], { env, encoding: 'utf8' }).split(/\s/);
  const child = spawn(program(), ['serve', '--listen', '127.0.0.1:0'], { env, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  process.once('exit', () => {
    child.kill('SIGTERM');
    child.kill('SIGTERM'); // at once
    fs.rmSync(home, { recursive: true, force: true });
  });
  const said = [];
  for await (const line of readline.createInterface({ input: child.stderr })) {
    said.push(line);
    const record = line.startsWith('{') ? JSON.parse(line) : {};
    if (record.message === 'Listening') {
      child.stderr.resume();
      child.stderr.unref();
      child.unref();
      return { url: `${record.scheme}://${record.address}`, key };
    }
  }
  throw new NacreError(`nacre serve did not begin: ${said.slice(-3).join(' ')}`, { code: 'no_daemon' });
}

let engine = null;
let daemon = null;

export function sharedEngine() {
  if (!engine || engine.ended) engine = new Engine();
  return engine;
}

export function sharedDaemon() {
  daemon ??= startDaemon();
  return daemon;
}
