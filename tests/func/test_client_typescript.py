"""The TypeScript client (clients/typescript) against a real daemon and against Nacre in its own children; the code of seed 003."""

import os
import shutil
import subprocess
import textwrap

import pytest

from conftest import NACRE, ROOT
from serving import Daemon

CLIENT = ROOT / "clients/typescript"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(not NODE, reason="no node")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("serve"), respawn=True) as one:
        yield one


@pytest.fixture(params=["daemon", "embedded"])
def node(request, tmp_path):
    """Runs a module that imports 'nacre', against a daemon or with none; what it printed."""
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "nacre").symlink_to(CLIENT)
    where = {"NACRE_SERVER": f"http://127.0.0.1:{request.getfixturevalue('daemon').port}"} if request.param == "daemon" else {}

    def run(code, check=True, timeout=60):
        path = tmp_path / "script.mjs"
        path.write_text("import { run, Client, Sandbox, SandboxManager, NacreError } from 'nacre';\nimport assert from 'node:assert/strict';\n" + textwrap.dedent(code))
        environment = {**{key: value for key, value in os.environ.items() if key != "NACRE_SERVER"}, "NACRE_PROGRAM": str(NACRE), "NACRE_STATE": str(tmp_path / "state"), **where}
        done = subprocess.run([NODE, path], env=environment, capture_output=True, text=True, timeout=timeout, cwd=tmp_path)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_programs(node):
    assert node("""
        const result = await run('import sys; print(input() + open("f").read()); sys.stderr.write("e")',
          { language: 'python', inputs: ['hello '], files: { f: new Uint8Array([195, 169]) }, limits: { memory_mb: 128 }, timeout: 10 });
        assert.equal(result.output, 'hello é\\n');
        assert.equal(result.stderr, 'e');
        assert.equal(result.limits.memory_bytes, 128 << 20);
        const failed = await run('1 / 0', { language: 'python' });
        assert.equal(failed.status, 'error');
        assert.match(failed.error, /ZeroDivisionError/);
        assert.equal((await run('while True: pass', { language: 'python', timeout: 0.3 })).status, 'timeout');
        const pieces = [];
        await run('import os, time\\nfor i in range(3):\\n    os.write(1, b"%d\\\\xff" % i)\\n    time.sleep(0.1)', { language: 'python', onOutput: (stream, data) => pieces.push([stream, data]) });
        assert.deepEqual(Buffer.concat(pieces.map(([, data]) => data)), Buffer.from([48, 255, 49, 255, 50, 255]));
        assert.ok(pieces.length > 1);
        const report = await new Client().check('import subprocess; eval("1")', { language: 'python' });
        assert.ok(report.findings.length > 0);
        console.log((await Promise.all([0, 1, 2, 3].map((i) => run(`print(${i})`, { language: 'python' })))).map((one) => one.output.trim()).join());
    """) == "0,1,2,3\n"


def test_errors(node):
    node("""
        await assert.rejects(run('x', { language: 'klingon', limits: { memory_mb: -1 } }), (error) => {
          assert.ok(error instanceof NacreError);
          assert.deepEqual(new Set(error.faults.map((fault) => fault.pointer)), new Set(['/language', '/limits/memory_mb']));
          assert.match(String(error), /klingon/);
          return true;
        });
        const manager = new SandboxManager();
        await assert.rejects(manager.createSandbox({ provider: 'docker' }), { code: 'no_provider', message: /docker is not there yet/ });
        await assert.rejects(manager.createSandbox({ provider: 'e2b', e2b: {} }), { code: 'no_provider', message: /e2b is not there yet/ });
        await assert.rejects(manager.createSandbox({ networkMode: 'host' }), { field: 'networkMode' });
        await assert.rejects(manager.createSandbox({ limits: { networkMbps: 5 } }), { field: 'limits.networkMbps' });
        const sandbox = await manager.createSandbox();
        await assert.rejects(sandbox.execute('true', []), { code: 'no_sandbox' });
        await sandbox.start();
        await assert.rejects(sandbox.readFile('/workspace/none'), { status: 404 });
        await manager.destroyAll();
        await assert.rejects(sandbox.execute('true', []), { code: 'no_sandbox' });
        assert.throws(() => new Client({ url: 'ftp://127.0.0.1' }), { code: 'bad_url' });
    """)


def test_an_exception_in_the_callers_own_function_reaches_him(node):
    node("""
        await assert.rejects(run('print(1)', { language: 'python', onOutput: () => { throw new TypeError('mine'); } }), { name: 'TypeError', message: 'mine' });
        assert.equal((await run('print(2)', { language: 'python' })).output, '2\\n');
    """)


def test_a_sandbox(node):
    node("""
        const manager = new SandboxManager({ env: { A: '1' }, limits: { memoryMB: 256, diskMB: 64 } });
        const sandbox = await manager.createSandbox({ env: { B: '2' }, workdir: '/workspace/app', limits: { cpuCores: 0.5 } });
        await sandbox.start();
        assert.equal(manager.getSandbox(sandbox.id), sandbox);
        assert.deepEqual(manager.listSandboxes(), [sandbox]);
        await sandbox.writeFile('made/here.txt', 'x');
        assert.equal(await sandbox.readFile('/workspace/app/made/here.txt'), 'x');
        assert.deepEqual(await sandbox.readFile('made/here.txt', null), Buffer.from('x'));
        assert.deepEqual(await sandbox.listFiles('/workspace/app'), ['made']);
        const done = await sandbox.execute('echo $A$B; pwd; cat; echo bad >&2; exit 3', undefined, { input: 'in\\n' });
        assert.equal(done.stdout, '12\\n/workspace/app\\nin\\n');
        assert.deepEqual([done.stderr, done.exitCode, done.success, done.status], ['bad\\n', 3, false, 'error']);
        assert.equal((await sandbox.execute('echo', ['a b', '$A'])).stdout, 'a b $A\\n');
        const got = [];
        await sandbox.execute('printf one; sleep 0.2; printf two', undefined, { onOutput: (stream, data) => got.push(`${stream} ${data}`) });
        assert.deepEqual(got, ['stdout one', 'stdout two']);
        await sandbox.deleteFile('made/here.txt');
        assert.deepEqual(await sandbox.listFiles('/workspace/app/made'), []);
        const stats = await sandbox.getStats();
        for (const name of ['memoryUsageMB', 'cpuPercent', 'diskUsageMB', 'networkRxMB', 'networkTxMB']) assert.equal(typeof stats[name], 'number', name);
        assert.ok(stats.memoryUsageMB > 0 && stats.memoryUsageMB < 256);
        await sandbox.stop();
        assert.equal((await sandbox.getStats()).paused, true);
        await assert.rejects(sandbox.execute('true', []), { status: 409 });
        await sandbox.start();
        assert.equal((await sandbox.execute('echo', ['on'])).stdout, 'on\\n');
        const other = await manager.createSandbox();
        await other.start();
        assert.equal((await manager.getAllStats()).size, 2);
        assert.deepEqual([...(await manager.healthCheckAll()).values()], [true, true]);
        await manager.destroySandbox(other.id);
        assert.equal(await other.healthCheck(), false);
        await manager.destroyAll();
        assert.deepEqual(manager.listSandboxes(), []);
    """)


def test_aborting_ends_what_runs(node):
    node("""
        const controller = new AbortController();
        const asked = run('import time; time.sleep(60)', { language: 'python', signal: controller.signal });
        setTimeout(() => controller.abort(), 500);
        await assert.rejects(asked, { name: 'AbortError' });
        const manager = new SandboxManager();
        const sandbox = await manager.createSandbox();
        await sandbox.start();
        const second = new AbortController();
        setTimeout(() => second.abort(), 300);
        await assert.rejects(sandbox.execute('sleep', ['60'], { signal: second.signal }), { name: 'AbortError' });
        for (let tries = 0; (await sandbox.getStats()).processes > 0; tries++) {
          assert.ok(tries < 100, 'it goes on');
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
        await manager.destroyAll();
    """, timeout=90)


def test_limits_hold(node):
    node("""
        const manager = new SandboxManager({ limits: { memoryMB: 64, diskMB: 8, timeoutSeconds: 1 } });
        const sandbox = await manager.createSandbox();
        await sandbox.start();
        assert.equal((await sandbox.execute('sleep', ['30'])).status, 'timeout');
        assert.match((await sandbox.execute('head -c 20000000 /dev/zero >big', undefined)).stderr, /No space/);
        assert.equal((await sandbox.execute('python3', ['-c', 'x = bytearray(200 << 20)'])).success, false);
        await manager.destroyAll();
    """)


# Of seed 003, but for the import and where a tier is named that there is not yet.
SEED = """
const manager = new SandboxManager({
  provider: 'native',
  limits: {
    memoryMB: 512,
    cpuCores: 1,
    timeoutSeconds: 300
  }
});

const sandbox = await manager.createSandbox({
  networkMode: 'none'
});

await sandbox.start();

// Execute commands
const result = await sandbox.execute('node', ['-v']);
console.log('Node version:', result.stdout);

// File operations
await sandbox.writeFile('/workspace/app.js', 'console.log("Hello!");');
const output = await sandbox.execute('node', ['/workspace/app.js']);

const stats = await sandbox.getStats();
console.log('Memory:', stats.memoryUsageMB, 'MB');
console.log('CPU:', stats.cpuPercent, '%');
console.log('Disk:', stats.diskUsageMB, 'MB');
console.log('Network RX:', stats.networkRxMB, 'MB');
console.log('Network TX:', stats.networkTxMB, 'MB');

// Cleanup
await manager.destroySandbox(sandbox.id);
"""


def test_the_samples_of_the_seed(node):
    printed = node(SEED + "console.log(output.stdout);")
    assert printed.startswith("Node version: v") and "Network TX: 0 MB" in printed and printed.endswith("Hello!\n\n")
    node("""
        new SandboxManager({
          provider: 'native',
          networkMode: 'isolated',
          limits: {
            memoryMB: 512,
            cpuCores: 1,
            diskMB: 1024,
            timeoutSeconds: 300
          }
        });
    """)


def test_the_readme_runs(node):
    code = (CLIENT / "README.md").read_text().split("```js\n")[1].split("```")[0]
    assert node("\n".join(line for line in code.splitlines() if not line.startswith("import"))) == "42\n success\nHello!\n\n"


def test_the_package_is_small_and_whole():
    import json
    package = json.loads((CLIENT / "package.json").read_text())
    files = [CLIENT / name for name in package["files"]]
    assert all(path.is_file() for path in files) and sum(path.stat().st_size for path in files) < 60 << 10
    assert "dependencies" not in package


def test_types(tmp_path):
    """The declarations hold for a program that uses all of them, and are of what there is."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("no npm")
    done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--prefix", tmp_path, "typescript@5.9.3", "@types/node@20"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm has no typescript: {done.stderr[-200:]}")
    (tmp_path / "node_modules/nacre").symlink_to(CLIENT)
    (tmp_path / "use.mts").write_text("""
        import { run, Client, SandboxManager, Sandbox, NacreError, type Stats, type Result, type ExecuteResult } from 'nacre';
        const result: Result = await run('x', { language: 'python', files: { a: new Uint8Array(1) }, signal: AbortSignal.timeout(5), onOutput: (stream, data) => data.length });
        const manager = new SandboxManager({ provider: 'native', limits: { memoryMB: 1, cpuCores: 1, diskMB: 1, networkMbps: 1, timeoutSeconds: 1 }, networkMode: 'bridge' });
        const sandbox: Sandbox = await manager.createSandbox({ image: 'x', env: { A: 'b' }, workdir: '/app' });
        const done: ExecuteResult = await sandbox.execute('node', ['-v'], { cwd: '/' });
        const text: string = await sandbox.readFile('f');
        const bytes: Buffer = await sandbox.readFile('f', null);
        const stats: Map<string, Stats> = await manager.getAllStats();
        // @ts-expect-error: no such mode
        await manager.createSandbox({ networkMode: 'host' });
        // @ts-expect-error: a number
        await manager.createSandbox({ limits: { memoryMB: '1' } });
        export { result, done, text, bytes, stats, Client, NacreError };
    """)
    tsc = [NODE, tmp_path / "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "--preserveSymlinks", "use.mts"]
    done = subprocess.run(tsc, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    names = subprocess.run([NODE, "--input-type=module", "-e", "import * as n from 'nacre'; console.log(Object.keys(n).sort().join())"], cwd=tmp_path, capture_output=True, text=True)
    assert names.stdout == "Client,NacreError,Sandbox,SandboxManager,run\n", names.stderr
