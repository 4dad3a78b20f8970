// Runs untrusted code in Nacre's sandboxes. nacre.d.ts has the types, README.md says how it is used.
import { randomBytes, randomUUID } from 'node:crypto';

import { sharedDaemon, sharedEngine } from './engine.js';
import { Http, NacreError } from './http.js';

export { NacreError };

const MB = 1 << 20;
const bytesOf = (text, base64) => (base64 !== undefined ? Buffer.from(base64, 'base64') : Buffer.from(text ?? ''));
const keyed = () => ({ 'Idempotency-Key': randomUUID() });
const given = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

/** A daemon, or without an address Nacre in children of this process. */
export class Client {
  #http;

  constructor({ url = process.env.NACRE_SERVER, key = process.env.NACRE_KEY } = {}) {
    this.url = url;
    this.#http = url ? new Http(url, key) : null;
  }

  async http() {
    if (!this.#http) {
      const { url, key } = await sharedDaemon();
      this.#http ??= new Http(url, key);
    }
    return this.#http;
  }

  async run(code, { onOutput, signal, files, allow, ...fields } = {}) {
    const request = given({ code, ...fields });
    if (files) request.files = Object.fromEntries(Object.entries(files).map(([name, content]) => [name, content instanceof Uint8Array ? { base64: Buffer.from(content).toString('base64') } : content]));
    if (allow) request.network = { ...request.network, allow };
    const told = onOutput && ((data) => onOutput(data.stream, bytesOf(data.text, data.base64)));
    if (!this.url) return (await sharedEngine().ask({ op: 'execute', request, stream: Boolean(onOutput) }, { onOutput: told, signal })).reply;
    request.id ??= `ex_${randomBytes(16).toString('hex')}`;
    try {
      return await this.#runThere(request, told, signal);
    } catch (error) {
      // who hangs up has time to come back; who cancels does not want it any more
      if (signal?.aborted) await this.#http.bytes('DELETE', `/v1/jobs/${encodeURIComponent(request.id)}`).catch(() => {});
      throw error;
    }
  }

  async #runThere(request, told, signal) {
    if (!told) return this.#http.json('POST', '/v1/execute', { body: request, headers: keyed(), safe: true, signal });
    for await (const [event, data] of this.#http.events('/v1/execute', { body: { ...request, stream: true }, signal })) {
      if (event === 'output') told(data);
      else if (event === 'done') return data;
    }
    throw new NacreError('The events ended before the execution did', { code: 'lost' });
  }

  async check(code, { language, policy } = {}) {
    const request = given({ code, language, policy });
    if (!this.url) return (await sharedEngine().ask({ op: 'check', ...request })).report;
    return (await this.#http.json('POST', '/v1/policy/analyse', { body: request, safe: true })).files[0];
  }

  close() {
    this.#http?.close();
  }
}

export const run = (code, options) => new Client().run(code, options);

const PROVIDERS = {
  docker: 'The provider docker is not there yet: use native',
  e2b: 'The provider e2b is not there yet: use native',
};

/** What a sandbox is asked for, of a configuration. */
function specOf(config, group, id) {
  const { limits = {}, networkMode = 'none' } = config;
  if (config.provider !== 'native') {
    throw new NacreError(PROVIDERS[config.provider] ?? `There is no provider ${config.provider}: use native`, { code: 'no_provider', field: 'provider' });
  }
  if (!['none', 'isolated', 'bridge'].includes(networkMode)) {
    throw new NacreError(`There is no network mode ${networkMode}`, { code: 'bad_network', field: 'networkMode', remedy: 'none, isolated or bridge' });
  }
  if (limits.networkMbps !== undefined && networkMode !== 'bridge') {
    throw new NacreError('networkMbps limits what goes through the network, which needs networkMode bridge', { code: 'bad_network', field: 'limits.networkMbps' });
  }
  const spec = given({
    image: config.image, env: config.env, labels: config.labels, policy: config.policy, timeout: config.lifetimeSeconds ?? 3600,
    limits: given({ memory_mb: limits.memoryMB, cpu_cores: limits.cpuCores, disk_mb: limits.diskMB, execution_time_seconds: limits.timeoutSeconds }),
  });
  if (networkMode === 'isolated') spec.network = { mode: 'isolated', group, name: id };
  if (networkMode === 'bridge') {
    spec.network_access = true;
    spec.network = given({ allow: config.allow, mbps: limits.networkMbps });
  }
  return spec;
}

/** A sandbox that start() makes. */
export class Sandbox {
  #config;
  #spec;
  #path = null;
  #stopped = false;
  #seen = null;

  constructor(client, config, group) {
    this.client = client;
    this.id = `sandbox-${randomBytes(8).toString('hex')}`;
    this.remoteId = null;
    this.#config = config;
    this.#spec = specOf(config, group, this.id);
  }

  get config() {
    return this.#config;
  }

  async #ask(method, path, options) {
    if (!this.#path) throw new NacreError('The sandbox was not started, or is destroyed', { code: 'no_sandbox', remedy: 'await sandbox.start()' });
    return (await this.client.http()).bytes(method, `${this.#path}${path}`, options);
  }

  async #json(method, path, options) {
    const body = await this.#ask(method, path, options);
    return body.length ? JSON.parse(body.toString()) : null;
  }

  /** Makes it; after stop() lets it go on. */
  async start() {
    if (this.#path) {
      if (this.#stopped) await this.#ask('POST', '/resume', { body: {}, safe: true });
      this.#stopped = false;
      return;
    }
    const made = await (await this.client.http()).json('POST', '/v1/sandboxes', { body: this.#spec, headers: keyed(), safe: true });
    this.remoteId = made.id;
    this.#path = `/v1/sandboxes/${made.id}`;
    if (this.#config.workdir) await this.#ask('POST', `/files/directory?path=${encodeURIComponent(this.#config.workdir)}`, { safe: true });
  }

  /** A program with its arguments, or without these a line of shell. */
  async execute(command, args, { cwd, env, timeoutSeconds, input, onOutput, signal } = {}) {
    const body = given({ command: args === undefined ? command : [command, ...args], dir: cwd ?? this.#config.workdir, env, timeout: timeoutSeconds, input });
    const began = Date.now();
    const done = onOutput || signal ? await this.#follow(body, onOutput, signal) : await this.#json('POST', '/commands', { body, headers: keyed(), safe: true });
    return {
      stdout: done.stdout, stderr: done.stderr, exitCode: done.exit_code, signal: done.signal, status: done.status, error: done.error,
      success: done.status === 'success', durationMs: done.usage ? done.usage.wall_seconds * 1000 : Date.now() - began, usage: done.usage, denials: done.denials ?? [],
    };
  }

  async #follow(body, onOutput, signal) {
    signal?.throwIfAborted();
    const begun = await this.#json('POST', '/commands', { body: { ...body, background: true }, headers: keyed(), safe: true });
    const path = `/commands/${begun.id}`;
    try {
      for await (const [event, data] of (await this.client.http()).events(`${this.#path}${path}/events`, { signal })) {
        if (event === 'output') onOutput?.(data.stream, bytesOf(data.text, data.base64));
      }
    } catch (error) {
      if (signal?.aborted) await this.#ask('DELETE', path).catch(() => {});
      throw error;
    }
    return this.#json('GET', path);
  }

  #file(path, below = '/files') {
    return `${below}?path=${encodeURIComponent(path.startsWith('/') ? path : `${this.#config.workdir ?? '/workspace'}/${path}`)}`;
  }

  async writeFile(path, content) {
    await this.#ask('PUT', this.#file(path), { body: typeof content === 'string' ? Buffer.from(content) : content });
  }

  async readFile(path, encoding = 'utf8') {
    const content = await this.#ask('GET', this.#file(path));
    return encoding === null ? content : content.toString(encoding);
  }

  async listFiles(path = '/workspace') {
    return (await this.#json('GET', this.#file(path, '/files/list'))).entries.map((entry) => entry.name);
  }

  async deleteFile(path) {
    await this.#ask('DELETE', this.#file(path));
  }

  async snapshot(name) {
    return (await this.#json('POST', '/snapshots', { body: given({ name }), safe: true })).id;
  }

  async getStats() {
    const [stats, now] = [await this.#json('GET', '/stats'), Date.now()];
    const before = this.#seen ?? { cpu: 0, at: now - 1000 };
    this.#seen = { cpu: stats.cpu_seconds, at: now };
    return {
      memoryUsageMB: stats.memory_bytes / MB, diskUsageMB: stats.disk_bytes / MB,
      cpuPercent: Math.max(0, (100 * (stats.cpu_seconds - before.cpu)) / Math.max((now - before.at) / 1000, 0.001)),
      networkRxMB: (stats.network?.bytes_down ?? 0) / MB, networkTxMB: (stats.network?.bytes_up ?? 0) / MB,
      processes: stats.processes, paused: stats.paused, secondsLeft: stats.seconds_left,
    };
  }

  async healthCheck() {
    if (!this.#path) return false;
    try {
      return (await this.#json('GET', '/health')).healthy;
    } catch (error) {
      if (error.status === 404) return false;
      throw error;
    }
  }

  /** Everything in it stands still until start(). */
  async stop() {
    await this.#ask('POST', '/pause', { body: {}, safe: true });
    this.#stopped = true;
  }

  async destroy() {
    if (!this.#path) return;
    try {
      await this.#ask('DELETE', '');
    } catch (error) {
      if (error.status !== 404) throw error; // its time was up
    }
    this.#path = null;
  }
}

export class SandboxManager {
  #config;
  #sandboxes = new Map();
  #group = `group-${randomBytes(8).toString('hex')}`;

  constructor({ url, key, ...config } = {}) {
    this.client = new Client(given({ url, key }));
    this.#config = config;
  }

  async createSandbox(config = {}) {
    const merged = { provider: 'native', ...this.#config, ...config, limits: { ...this.#config.limits, ...config.limits }, env: { ...this.#config.env, ...config.env } };
    const sandbox = new Sandbox(this.client, merged, this.#group);
    this.#sandboxes.set(sandbox.id, sandbox);
    return sandbox;
  }

  getSandbox(id) {
    return this.#sandboxes.get(id);
  }

  listSandboxes() {
    return [...this.#sandboxes.values()];
  }

  async destroySandbox(id) {
    await this.#sandboxes.get(id)?.destroy();
    this.#sandboxes.delete(id);
  }

  async destroyAll() {
    await Promise.all([...this.#sandboxes.keys()].map((id) => this.destroySandbox(id)));
  }

  async #forEach(ask) {
    const started = this.listSandboxes().filter((sandbox) => sandbox.remoteId);
    return new Map(await Promise.all(started.map(async (sandbox) => [sandbox.id, await ask(sandbox)])));
  }

  getAllStats() {
    return this.#forEach((sandbox) => sandbox.getStats());
  }

  healthCheckAll() {
    return this.#forEach((sandbox) => sandbox.healthCheck());
  }

  close() {
    this.client.close();
  }
}

