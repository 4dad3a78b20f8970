"""Node that was started ahead of need (src/inside/ahead.c): programs cannot tell, but for the time it takes."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD
from leftovers import lives
from serving import Daemon
from test_zygote import daemon_of, needs_groups, outcome, plain as plain_run, wait_for

pytestmark = pytest.mark.skipif((BUILD / "src/no-zygote.so").exists(), reason="instrumented code does not run in other programs")

# A program's own start is a moment ago, a waiting one's is not.
WARM = "console.log(process.uptime() > 0.45)"


def waiting(daemon):
    listed = subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-x", "node"], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def ask(daemon, code, **fields):
    answer = daemon.post("/v1/execute", {"code": code, "language": "javascript", **fields})
    assert answer.status == 200, answer.body
    return answer.json()


def execute(daemon, code, **fields):
    ask(daemon, "0")  # who comes asks for more
    wait_for(lambda: waiting(daemon))
    time.sleep(0.5)
    before = waiting(daemon)
    reply = ask(daemon, code, **fields)
    wait_for(lambda: any(not lives(pid) for pid in before))  # one of them it was
    return reply


def plain(tmp_path, code, **fields):
    return plain_run(tmp_path, code, language="javascript", **fields)


@pytest.fixture(scope="module", params=["root", "user"])
def daemon(request, tmp_path_factory, programs):
    with daemon_of(request.param, tmp_path_factory.mktemp("ahead"), programs) as running:
        yield running


def test_it_is_warm(daemon):
    assert execute(daemon, WARM)["output"] == "true\n"


PROGRAMS = {
    "hello": "console.log('hi')",
    "arguments": "console.log(process.argv, process.execArgv, process.argv0, __filename, __dirname, process.cwd(), require.main === module)",
    "environment": "console.log(Object.entries(process.env).sort()); console.log(require('child_process').execSync('echo $A$B').toString())",
    "processes": "console.log(require('fs').readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)), require('child_process').execSync('ps -e -o comm=').toString())",
    "error": "function f() { null.x }\nf()",
    "syntax": "let x = ;",
    "rejection": "Promise.reject(new Error('no'))",
    "exit_7": "process.exit(7)",
    "exit_code": "process.exitCode = 3",
    "exit_event": "process.on('exit', (code) => console.log('exit', code)); process.on('beforeExit', () => console.log('before'))",
    "exit_after_error": "process.on('exit', (code) => console.log('exit', code)); throw new Error('x')",
    "abort": "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 9999)",
    "input": "process.stdin.on('data', (d) => console.log('got', d.toString())).on('end', () => console.log('end'))",
    "input_sync": "console.log(require('fs').readFileSync(0, 'utf8'))",
    "lines": "require('readline').createInterface({ input: process.stdin }).on('line', (l) => console.log('line', l))",
    "streams": "console.log(process.stdout.isTTY, process.stdin.isTTY, process.stdout.writableHighWaterMark); console.error('err')",
    "large": "process.stdout.write('x'.repeat(300000))",
    "timers": "setTimeout(() => console.log('late'), 500); setImmediate(() => console.log('soon')); process.nextTick(() => console.log('next'))",
    "module_paths": "console.log(module.paths, require.resolve.paths('x'), module.id, module.filename, Object.keys(require.cache))",
    "own_module": "require('fs').writeFileSync('m.js', 'module.exports = __filename'); console.log(require('./m'), Object.keys(require.cache).length)",
    "import": "import('fs').then((m) => console.log(typeof m.readFileSync))",
    "worker": "const { Worker, isMainThread } = require('worker_threads'); if (isMainThread) new Worker(__filename); else console.log('in', process.argv, process.execArgv)",
    "fork": "const c = require('child_process'); if (process.argv[2] === 'child') console.log('child', process.execArgv); else c.fork(__filename, ['child'])",
    "globals": "console.log(Object.getOwnPropertyNames(globalThis).sort().join(), typeof require, this === module.exports)",
    "process": "console.log(Object.keys(process).sort().join())",
    "ids": "console.log(process.pid, process.ppid, process.getuid(), process.getgroups(), process.umask())",
    "files": "console.log(require('fs').readdirSync('.', { withFileTypes: true }).map((e) => e.name))",
    "held": "console.log(require('fs').readFileSync('/proc/self/status', 'utf8').match(/(?:NoNewPrivs|Seccomp|Cap\\w+|Groups):.*/g))",
    "limits": "console.log(require('child_process').execSync('ulimit -n').toString())",
    "random": "console.log(Math.random() !== Math.random(), require('crypto').randomBytes(4).length)",
    "strict": "'use strict'; try { undeclared = 1 } catch (e) { console.log(e.name) }",
    "sealed": "console.log(Object.getOwnPropertyDescriptor(process, 'execArgv'))",
    "title": "console.log(process.title, process.version === process.versions.node ? 1 : 0, process.release.name)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_cannot_tell(daemon, tmp_path, name):
    fields = {"env": {"A": "1", "B": "ä"}, "args": ["a b", "ä", ""], "inputs": ["one", "two"]}
    assert outcome(execute(daemon, PROGRAMS[name], **fields)) == outcome(plain(tmp_path, PROGRAMS[name], **fields))


@pytest.mark.parametrize("fields", [{"env": {"NODE_OPTIONS": "--no-warnings"}}, {"env": {"TZ": "Asia/Tokyo"}}])
def test_what_node_reads_at_its_start_counts(daemon, fields):
    ask(daemon, "0")
    wait_for(lambda: waiting(daemon))
    time.sleep(0.3)
    reply = ask(daemon, WARM + "; console.log(new Date(0).getHours(), process.env.NODE_OPTIONS)", **fields)
    assert reply["output"] == f"false\n{9 if 'TZ' in fields['env'] else 0} {fields['env'].get('NODE_OPTIONS', '--max-old-space-size=128')}\n"


def test_limits_hold(daemon):
    needs_groups(daemon)
    assert execute(daemon, "for (;;);", limits={"execution_time_seconds": 1})["status"] == "timeout"
    assert execute(daemon, "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))")["status"] == "memory_limit"
    assert ask(daemon, WARM, limits={"memory_mb": 128})["output"] == "false\n"  # its heap was sized by more: another begins


def test_files_go_in_and_come_out(daemon):
    reply = execute(daemon, "const fs = require('fs'); fs.writeFileSync('o.txt', fs.readFileSync('d/i.txt') + '!')", files={"d/i.txt": "x"}, capture=["o.txt"])
    assert reply["files"]["o.txt"]["text"] == "x!"


def test_who_dies_while_it_waits_is_replaced(daemon):
    ask(daemon, "0")
    for pid in wait_for(lambda: waiting(daemon)):
        with contextlib.suppress(ProcessLookupError):  # what is too much for an idle pool ends by itself
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not lives(pid))
    assert ask(daemon, "console.log(1)")["output"] == "1\n"
    assert execute(daemon, WARM)["output"] == "true\n"


def test_ends_with_the_daemon(tmp_path):
    with Daemon(tmp_path) as daemon:
        ask(daemon, "0")
        pids = wait_for(lambda: waiting(daemon))
    assert not [pid for pid in pids if lives(pid)]
