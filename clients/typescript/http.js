// HTTP to a daemon: connections are kept, replies are JSON or bytes, errors are exceptions, events are resumed.
import http from 'node:http';
import https from 'node:https';
import { StringDecoder } from 'node:string_decoder';

const PAUSES = [50, 200, 500, 1000, 2000]; // ms before each try to reach a daemon that is being started again

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class NacreError extends Error {
  constructor(message, { code = 'error', field = null, remedy = null, status = 0, faults = [], problem = {} } = {}) {
    const more = faults.filter((fault) => fault.message !== message).map((fault) => `\n  ${fault.pointer || '/'}: ${fault.message}`).join('');
    super(message + more + (remedy ? ` (${remedy})` : ''));
    this.name = 'NacreError';
    Object.assign(this, { code, field, remedy, status, faults, problem });
  }
}

const lost = (error) => new NacreError(error.message, { code: 'connection_lost', remedy: 'See whether nacre serve runs, and ask again' });

function ofProblem(status, body) {
  let problem = {};
  try {
    problem = JSON.parse(body.toString());
  } catch {
    // no problem document
  }
  return new NacreError(problem.detail ?? problem.title ?? `HTTP status ${status}`, {
    code: problem.code ?? 'http', field: problem.field, remedy: problem.remedy, status, faults: problem.faults ?? [], problem,
  });
}

async function bodyOf(reply) {
  const pieces = [];
  for await (const piece of reply) pieces.push(piece);
  return Buffer.concat(pieces);
}

export class Http {
  constructor(url, key) {
    if (!/^https?:\/\//.test(url)) throw new NacreError(`${url} is no address of a daemon`, { code: 'bad_url', remedy: 'Such as http://127.0.0.1:7070' });
    this.url = new URL(url);
    this.module = this.url.protocol === 'https:' ? https : http;
    this.agent = new this.module.Agent({ keepAlive: true, noDelay: true });
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
  }

  /** Sends a request once, and gives the reply as its head comes. */
  once(method, path, body, headers, signal, safe) {
    return new Promise((resolve, reject) => {
      const request = this.module.request({
        agent: safe ? this.agent : false, method, // a kept connection may be closed: did it come through then?
        path, signal, host: this.url.hostname.replace(/^\[|\]$/g, ''), port: this.url.port || (this.module === https ? 443 : 80),
        headers: { ...this.headers, ...headers, Host: this.url.host, ...(body === undefined ? {} : { 'Content-Length': body.length }) },
      }, resolve);
      request.on('error', (error) => reject(Object.assign(error, { stale: request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE') })));
      request.end(body);
    });
  }

  /** safe: it may be sent again where nobody knows whether it came through. */
  async open(method, path, { body, headers = {}, signal, safe = method !== 'POST' } = {}) {
    let data = body;
    if (body !== undefined && !(body instanceof Uint8Array)) {
      data = Buffer.from(JSON.stringify(body));
      headers = { 'Content-Type': 'application/json', ...headers };
    } else if (body === undefined && (method === 'POST' || method === 'PUT')) {
      data = Buffer.alloc(0);
    }
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.once(method, path, data, headers, signal, safe);
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        if (attempt >= PAUSES.length || !(safe || error.code === 'ECONNREFUSED')) throw lost(error);
        if (!error.stale) await sleep(PAUSES[attempt]);
      }
    }
  }

  async bytes(method, path, options = {}) {
    for (let attempt = 0; ; attempt++) {
      const reply = await this.open(method, path, options);
      try {
        const body = await bodyOf(reply);
        if (reply.statusCode >= 400) throw ofProblem(reply.statusCode, body);
        return body;
      } catch (error) {
        if (error instanceof NacreError) throw error;
        if (options.signal?.aborted) throw options.signal.reason;
        if (attempt >= PAUSES.length || !(options.safe ?? method !== 'POST')) throw lost(error);
        await sleep(PAUSES[attempt]);
      }
    }
  }

  async json(method, path, options) {
    const body = await this.bytes(method, path, options);
    return body.length ? JSON.parse(body.toString()) : null;
  }

  /** Server-sent events as [event, data]; a connection that is lost is made again where it was. */
  async *events(path, { body, signal } = {}) {
    let last = 0;
    let failures = 0;
    let from = { method: body === undefined ? 'GET' : 'POST', path };
    for (;;) {
      const headers = { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': String(last) } : {}) };
      const reply = await this.open(from.method, from.path, { body: from.method === 'POST' ? body : undefined, headers, signal });
      try {
        if (reply.statusCode >= 400) throw ofProblem(reply.statusCode, await bodyOf(reply));
        for await (const [event, data, id] of parse(reply, last)) {
          last = id;
          failures = 0;
          if (event === 'job') from = { method: 'GET', path: `/v1/jobs/${data.id}/events` };
          yield [event, data];
          if (event === 'done' || event === 'end') return;
        }
        throw new Error('The events broke off');
      } catch (error) {
        if (error instanceof NacreError) throw error;
        if (signal?.aborted) throw signal.reason;
        if (from.method === 'POST' || ++failures > PAUSES.length) throw lost(error);
        await sleep(PAUSES[failures - 1]);
      } finally {
        reply.destroy();
      }
    }
  }

  close() {
    this.agent.destroy();
  }
}

async function* parse(reply, last) {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let event = 'message';
  for await (const piece of reply) {
    const lines = (rest + decoder.write(piece)).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const colon = line.indexOf(': ');
      const [name, value] = [line.slice(0, colon), line.slice(colon + 2)];
      if (name === 'id') last = Number(value);
      else if (name === 'event') event = value;
      else if (name === 'data') {
        yield [event, JSON.parse(value), last];
        event = 'message';
      }
    }
  }
}
