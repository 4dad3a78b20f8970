/** What goes wrong: `code` is one word for programs, `field` what is meant, `remedy` what to do. */
export class NacreError extends Error {
  code: string;
  field: string | null;
  remedy: string | null;
  /** The HTTP status, or 0. */
  status: number;
  /** All that is wrong with a request. */
  faults: { pointer: string; message: string }[];
  problem: Record<string, unknown>;
}

export type OnOutput = (stream: 'stdout' | 'stderr', data: Buffer) => void;

export interface RunOptions {
  language?: string;
  files?: Record<string, string | Uint8Array>;
  inputs?: string[];
  args?: string[];
  env?: Record<string, string>;
  packages?: string[];
  /** Hosts that it may reach. */
  allow?: string[];
  timeout?: number;
  limits?: Record<string, number>;
  policy?: string;
  capture?: string[];
  onOutput?: OnOutput;
  /** Aborting it cancels the execution. */
  signal?: AbortSignal;
  /** Every other field of a request: docs/requests.md. */
  [field: string]: unknown;
}

/** The reply to an execution; docs/requests.md has all of its fields. */
export interface Result {
  id: string;
  status: string;
  output: string;
  stderr: string;
  error: string | null;
  exit_code: number | null;
  execution_time: number;
  usage: Record<string, number | null>;
  denials: Record<string, unknown>[];
  files?: Record<string, { size: number; executable: boolean; text?: string; base64?: string }>;
  [field: string]: unknown;
}

/** A daemon, or without an address Nacre in children of this process. */
export class Client {
  constructor(options?: { url?: string; key?: string });
  /** Runs a program in a fresh sandbox. One that fails is no exception: see `status`. */
  run(code: string, options?: RunOptions): Promise<Result>;
  /** What the policy says about a program, without running it. */
  check(code: string, options?: { language?: string; policy?: string }): Promise<{ risk: string; findings: Record<string, unknown>[]; [field: string]: unknown }>;
  close(): void;
}

/** `new Client().run()` */
export function run(code: string, options?: RunOptions): Promise<Result>;

export interface Limits {
  memoryMB?: number;
  cpuCores?: number;
  diskMB?: number;
  /** With networkMode 'bridge'. */
  networkMbps?: number;
  /** Of each command. */
  timeoutSeconds?: number;
}

export interface SandboxConfig {
  /** 'native' is Nacre's own; others are refused with a sentence. */
  provider?: 'native' | 'docker' | 'e2b';
  image?: string;
  limits?: Limits;
  /** none; isolated: the manager's sandboxes reach each other by their ids; bridge: the hosts of `allow` and of the policy. */
  networkMode?: 'none' | 'isolated' | 'bridge';
  allow?: string[];
  env?: Record<string, string>;
  workdir?: string;
  policy?: string;
  labels?: Record<string, string>;
  /** When it ends by itself; 3600 if not given. */
  lifetimeSeconds?: number;
}

export interface ExecuteOptions {
  cwd?: string;
  env?: Record<string, string>;
  timeoutSeconds?: number;
  input?: string;
  onOutput?: OnOutput;
  /** Aborting it ends the command. */
  signal?: AbortSignal;
}

export interface ExecuteResult {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  signal: string | null;
  status: string;
  error: string | null;
  success: boolean;
  durationMs: number;
  usage: Record<string, number> | null;
  denials: Record<string, unknown>[];
}

export interface Stats {
  memoryUsageMB: number;
  /** Of one processor, since it was last asked. */
  cpuPercent: number;
  diskUsageMB: number;
  networkRxMB: number;
  networkTxMB: number;
  processes: number;
  paused: boolean;
  secondsLeft: number;
}

export class Sandbox {
  readonly id: string;
  /** Its id at the daemon, once it is started. */
  readonly remoteId: string | null;
  readonly config: SandboxConfig;
  start(): Promise<void>;
  /** A program with its arguments, or without these a line of shell. */
  execute(command: string, args?: string[], options?: ExecuteOptions): Promise<ExecuteResult>;
  writeFile(path: string, content: string | Uint8Array): Promise<void>;
  readFile(path: string, encoding?: BufferEncoding): Promise<string>;
  readFile(path: string, encoding: null): Promise<Buffer>;
  listFiles(path?: string): Promise<string[]>;
  deleteFile(path: string): Promise<void>;
  snapshot(name?: string): Promise<string>;
  getStats(): Promise<Stats>;
  healthCheck(): Promise<boolean>;
  /** Everything in it stands still until start(). */
  stop(): Promise<void>;
  destroy(): Promise<void>;
}

export class SandboxManager {
  constructor(config?: SandboxConfig & { url?: string; key?: string });
  createSandbox(config?: SandboxConfig): Promise<Sandbox>;
  getSandbox(id: string): Sandbox | undefined;
  listSandboxes(): Sandbox[];
  destroySandbox(id: string): Promise<void>;
  destroyAll(): Promise<void>;
  getAllStats(): Promise<Map<string, Stats>>;
  healthCheckAll(): Promise<Map<string, boolean>>;
  close(): void;
}
