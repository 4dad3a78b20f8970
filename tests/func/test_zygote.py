"""Python that was started ahead of need (src/inside/zygote.c): programs cannot tell, but for the time it takes."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD, NACRE, NOBODY, environment, open_way
from leftovers import lives
from serving import Daemon

WARM = "import sys; print('statistics' in sys.modules)"

needs_object = pytest.mark.skipif((BUILD / "src/no-zygote.so").exists(), reason="instrumented code does not run in other programs")
pytestmark = needs_object


def children(daemon):
    """The interpreters that wait: the zygote and its children."""
    listed = subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-x", "python3"], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def neutral(daemon):
    """How many boxes wait without an interpreter."""
    listed = subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-x", "nacre-spawner"], capture_output=True, text=True).stdout
    return len(listed.split())


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module", params=["root", "user"])
def daemon(request, tmp_path_factory, programs):
    with daemon_of(request.param, tmp_path_factory.mktemp("zygote"), programs) as running:
        wait_for(lambda: len(children(running)) >= 3)
        yield running


def daemon_of(who, home, programs):
    if who == "root":
        return Daemon(home)
    open_way(home)
    os.chown(home, NOBODY, NOBODY)
    return Daemon(home, prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"], program=programs / "nacre")


def needs_groups(daemon):
    """Limits that are named are refused where nothing can hold them."""
    if daemon.prefix:
        pytest.skip("needs control groups")


def execute(daemon, code, **fields):
    wait_for(lambda: len(children(daemon)) >= 2)
    answer = daemon.post("/v1/execute", {"code": code, "language": "python", **fields})
    assert answer.status == 200, answer.body
    return answer.json()


def plain(tmp_path, code, language="python", **fields):
    """The same by `nacre run`, which has nothing ready."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"code": code, "language": language, **fields}))
    done = subprocess.run([NACRE, "run", "--json", "--request", request], capture_output=True, text=True, env=environment(tmp_path), timeout=60)
    return json.loads(done.stdout)


def test_it_is_warm(daemon):
    assert execute(daemon, WARM)["output"] == "True\n"
    shown = dict(re.findall(r'^nacre_pool_boxes\{with="(\w+)"\} (\d+)', daemon.get("/metrics").body.decode(), re.M))
    assert int(shown["python"]) >= 2 and int(shown["nothing"]) >= 2 and shown["node"] == "0"


PROGRAMS = {
    "hello": "print('hi')",
    "arguments": "import sys\nprint(sys.argv, sys.orig_argv, __file__, __name__, sys.path[0], sys.executable)",
    "main": "import sys\nm = sys.modules['__main__']\nprint(sorted(vars(m)), m.__spec__, type(m.__loader__).__name__, __builtins__)",
    "environment": "import os\nprint(sorted(os.environ.items()), os.getenv('A'), os.getcwd())\nos.system('echo $A$B')",
    "process_environment": "print(sorted(word for word in open('/proc/self/environ').read().split('\\0') if 'NACRE' in word or 'LD_' in word))",
    "processes": "import os, subprocess\nprint([name for name in os.listdir('/proc') if name.isdigit()])\n"
                 "subprocess.run(['ps', '-e', '-o', 'comm='])\ntry:\n    os.wait()\nexcept ChildProcessError as error:\n    print(error)",
    "log_kept": "import logging, logging.handlers, sys\nlogging.lastResort = None\nout = logging.StreamHandler(sys.stdout)\n"
                "logging.getLogger().addHandler(logging.handlers.MemoryHandler(100, target=out))\nlogging.warning('kept')",
    "log_replaced": "import sys, types\nsys.modules['logging'] = types.ModuleType('logging')\nprint(1)",
    "error": "def f():\n    return 1 / 0\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('x') from error",
    "syntax": "print('a')\nif True\n    pass",
    "indentation": "def f():\nreturn 1",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "recursion": "def f():\n    f()\nf()",
    "exit_0": "import sys; sys.exit()",
    "exit_7": "import sys; sys.exit(7)",
    "exit_300": "import sys; sys.exit(300)",
    "exit_negative": "import sys; sys.exit(-1)",
    "exit_text": "import sys; sys.exit('no')",
    "exit_true": "raise SystemExit(True)",
    "exit_tuple": "raise SystemExit(1, 2)",
    "quit": "quit(3)",
    "os_exit": "import os; print('x', flush=True); os._exit(9)",
    "interrupt": "raise KeyboardInterrupt",
    "interrupt_handled": "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    print('caught')",
    "signals": "import signal\nprint([(s.name, str(signal.getsignal(s))[:20]) for s in sorted(signal.valid_signals()) if isinstance(s, signal.Signals) and signal.getsignal(s) not in (signal.SIG_DFL, None)])",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "atexit": "import atexit\natexit.register(print, 'b')\natexit.register(print, 'a')",
    "atexit_error": "import atexit\natexit.register(lambda: 1 / 0)\nprint('x')",
    "finalizer": "class A:\n    def __del__(self):\n        print('gone', __name__)\na = A()\nb = A(); b.me = b",
    "finalizer_after_error": "class A:\n    def __del__(self):\n        print('gone')\na = A()\n1 / 0",
    "generator": "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\nit = g(); next(it)",
    "unclosed_file": "import atexit, os\nf = open('x', 'w'); f.write('data')\npid = os.fork()\nif pid == 0:\n    os._exit(0)\nos.wait()",
    "weak": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')",
    "thread": "import threading, time\ndef f():\n    time.sleep(0.1)\n    print('late')\nthreading.Thread(target=f).start()",
    "daemon_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('x')",
    "thread_error": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T'); t.start(); t.join()",
    "multiprocessing": "import multiprocessing\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as pool:\n        print(pool.map(f, range(5)))",
    "spawned": "import multiprocessing\ndef f(x):\n    print('in', x, flush=True)\nif __name__ == '__main__':\n    p = multiprocessing.get_context('spawn').Process(target=f, args=(1,)); p.start(); p.join(); print(p.exitcode)",
    "fork": "import os, sys\nprint('a')\npid = os.fork()\nif pid == 0:\n    sys.exit(5)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True, text=True))",
    "input": "print(input('? ')); print(input())\ntry:\n    input()\nexcept EOFError:\n    print('end')",
    "stdin": "import sys\nprint(sys.stdin.read(), sys.stdin.encoding, sys.stdin.isatty())",
    "streams": "import sys\nprint(sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.errors)",
    "closed_output": "import sys\nsys.stdout.close()",
    "broken_output": "import os, sys\nprint('x', end='')\nos.close(1)\nsys.stdout.write('more')",
    "unicode": "print('ä€😀', len('ä'))",
    "cookie": "# -*- coding: latin-1 -*-\nprint(len('ä'))",
    "bom": "\ufeffprint('x')",
    "crlf": "print('a')\r\nprint('b')\r\n",
    "no_newline": "if True:\n    print('x')",
    "docstring": "'''doc'''\nprint(__doc__, __annotations__)\nx: int = 1\nprint(__annotations__)",
    "future": "from __future__ import annotations\ndef f(x: Unknown): pass\nprint(f.__annotations__)",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))), pickle.dumps(A)[:30])",
    "source": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.stack()[0].filename, len(inspect.stack()))",
    "frames": "import sys\nprint(sys._getframe().f_back, sys._getframe().f_code.co_name)\nimport traceback; traceback.print_stack()",
    "flags": "import sys\nprint(sys.flags, sys.hash_info.width, hash('x'), sys.getrecursionlimit(), sys.dont_write_bytecode)",
    "warning": "import warnings\nwarnings.warn('careful')\nopen('/dev/null')",
    "collector": "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.garbage)",
    "logging": "import logging\nlogging.warning('x'); logging.getLogger('a').info('hidden')",
    "import_own": "import sys\nopen('mine.py', 'w').write('print(__name__, __file__)')\nimport mine\nprint('mine' in sys.modules)",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "unraisable": "class A:\n    def __del__(self):\n        1 / 0\nA()",
    "time_zone": "import os, time\nprint(time.tzname, time.localtime(0).tm_hour)\nos.environ['TZ'] = 'Asia/Tokyo'; time.tzset(); print(time.localtime(0).tm_hour)",
    "locale": "import locale, sys\nprint(locale.getpreferredencoding(), sys.getfilesystemencoding(), locale.getlocale())",
    "ids": "import os\nprint(os.getpid(), os.getppid(), os.getuid(), os.getgid(), os.getgroups(), os.getpgid(0) == os.getsid(0) == os.getpid(), os.umask(0))",
    "rlimits": "import resource\nprint([(n, resource.getrlimit(getattr(resource, n))) for n in sorted(dir(resource)) if n.startswith('RLIMIT_') and n not in ('RLIMIT_DATA', 'RLIMIT_NPROC')])",
    "descriptors": "import os\nprint([fd for fd in range(200) if os.path.exists(f'/proc/self/fd/{fd}')])",
    "held": "import re\nprint(re.findall(r'(?:NoNewPrivs|Seccomp|Cap\\w+|Groups|NSpid):.*', open('/proc/self/status').read()))",
    "dumpable": "import ctypes\nprint(ctypes.CDLL(None).prctl(3), open('/proc/self/comm').read(), open('/proc/self/oom_score_adj').read())",
    "names": "import socket, os\nprint(socket.gethostname(), sorted(p for p in os.listdir('/proc') if p.isdigit()), os.listdir('/workspace'))",
    "refused": "import os\ntry:\n    os.mkfifo('/usr/x')\nexcept OSError as error:\n    print(error)\nimport ctypes\nprint(ctypes.CDLL(None, use_errno=True).mount(b'a', b'b', b'c', 0, None), ctypes.get_errno())",
    "enters_nothing": "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\nprint([(c.setns(os.open(f'/proc/self/ns/{n}', os.O_RDONLY), 0), ctypes.get_errno()) for n in ('user', 'mnt', 'pid', 'net')], c.unshare(0x10000000), ctypes.get_errno())",
    "kills_nobody": "import os\nfor pid in (-1, 1):\n    try:\n        os.kill(pid, 9); pid > 0 and print('sent')\n    except OSError as error:\n        pid > 0 and print(error)",
}

# What differs in any two runs, of whatever interpreter.
NOISE = [(r"0x[0-9a-f]+", "0x"), (r"pid=\d+", "pid=")]


def outcome(reply):
    texts = []
    for text in (reply["output"], reply["stderr"]):
        for pattern, instead in NOISE:
            text = re.sub(pattern, instead, text)
        texts.append(text)
    return (*texts, reply["status"], reply["exit_code"], reply["signal"], reply["error"], [(d["rule"], d["object"], d["line"]) for d in reply["denials"]],
            json.dumps(reply.get("noticed"), sort_keys=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_cannot_tell(daemon, tmp_path, name):
    fields = {"env": {"A": "1", "B": "ä"}, "args": ["a b", "ä", ""], "inputs": ["one", "two"]}
    assert outcome(execute(daemon, PROGRAMS[name], **fields)) == outcome(plain(tmp_path, PROGRAMS[name], **fields))


# CPython's own tests of what a waiting interpreter could have got wrong; test_io, test_signal and test_weakref, which take long, were compared by hand.
SUITE = """
import io, unittest
suite = unittest.defaultTestLoader.loadTestsFromName("test.{}")
result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
print(result.testsRun, sorted(test.id() for test, _ in result.failures + result.errors), sorted(f"{{test}} {{why}}" for test, why in result.skipped))
"""


@pytest.mark.parametrize("module", ["test_atexit", "test_contextlib", "test_dataclasses", "test_exceptions", "test_gc", "test_generators", "test_module",
                                    "test_random", "test_sys", "test_tempfile", "test_traceback", "test_types", "test_uuid"])
def test_cpythons_own_tests(daemon, tmp_path, module):
    needs_groups(daemon)
    fields = {"limits": {"execution_time_seconds": 120, "memory_mb": 1024, "max_processes": 60}}
    warm, cold = execute(daemon, SUITE.format(module), **fields), plain(tmp_path, SUITE.format(module), **fields)
    assert int(re.search(r"^(\d+) \[", warm["output"], re.M)[1]) > 5
    assert warm["output"] == cold["output"]


@pytest.mark.parametrize("policy", ["standard", "strict", "audit"])
@pytest.mark.parametrize("code", [
    "m = __import__('sub' + 'process')\nprint(m.run(['true']))",
    "import importlib\nprint(importlib.import_module('so' + 'cket').gethostname())",
    "import sys\nprint('subprocess' in sys.modules, sys.modules.get('sub' + 'process'))",
    "print(getattr(__builtins__, 'ev' + 'al')('1 + 1'))",
    "import importlib\nprint(importlib.import_module(input()).run(['true']))",
    "import json, random, re\nprint(json.dumps({}), re.sub('a', 'b', 'a'))",
])
def test_policies_see_the_same(daemon, tmp_path, policy, code):
    """What is loaded before a program is imported without an event: whoever watches imports has a fresh interpreter."""
    fields = {"policy": policy, "inputs": ["subprocess"]}
    warm, cold = execute(daemon, code, **fields), plain(tmp_path, code, **fields)
    if "in sys.modules" in code and policy != "strict":  # that much a program can tell
        assert warm["status"] == cold["status"] == "success"
        return
    assert outcome(warm) == outcome(cold)


@pytest.mark.parametrize("env", [{"PYTHONOPTIMIZE": "1"}, {"LANG": "C"}, {"LD_PRELOAD": "/nowhere.so"}, {"PYTHONHASHSEED": "1"}])
def test_what_an_interpreter_reads_at_its_start_counts(daemon, tmp_path, env):
    code = WARM + "; import os; print(sys.flags, hash('x'), os.environ.get('LD_PRELOAD'), os.environ['LANG'])"
    warm = execute(daemon, code, env=env)
    assert warm["output"].startswith("False\n")
    assert outcome(warm) == outcome(plain(tmp_path, code, env=env))


def test_files_go_in_and_come_out(daemon):
    code = WARM + "; open('out.txt', 'w').write(open('in/a.txt').read() + '!')"
    reply = execute(daemon, code, files={"in/a.txt": "text"}, capture=["*.txt"])
    assert reply["output"] == "True\n" and reply["status"] == "success"
    assert {name: file["text"] for name, file in reply["files"].items()} == {"in/a.txt": "text", "out.txt": "text!"}


def test_limits_hold(daemon):
    needs_groups(daemon)
    assert execute(daemon, "x = bytearray(300 << 20)", limits={"memory_mb": 64})["status"] == "memory_limit"
    assert execute(daemon, "while True: pass", limits={"execution_time_seconds": 1})["status"] == "timeout"
    assert execute(daemon, "import time; time.sleep(60)", limits={"execution_time_seconds": 1})["status"] == "timeout"
    assert execute(daemon, "while True: pass", limits={"cpu_time_seconds": 1})["status"] == "cpu_limit"
    full = execute(daemon, "open('x', 'wb').write(bytes(3 << 20))", limits={"disk_mb": 1})
    assert "No space left" in full["stderr"]
    forks = execute(daemon, "import os\nfor _ in range(200):\n    os.fork() or __import__('time').sleep(9)", limits={"max_processes": 10})
    assert "Resource temporarily unavailable" in forks["stderr"] or forks["status"] != "success"
    assert execute(daemon, WARM)["output"] == "True\n"


@pytest.mark.parametrize("limit, wanted", [(10, 9), (9, 8)])
def test_the_limit_of_processes_is_what_a_program_has(daemon, limit, wanted):
    """Its shade (src/inside/shade.c) is one more in its group, and is in nobody's way."""
    needs_groups(daemon)
    code = "import os, time\nn = 0\ntry:\n    while os.fork() or time.sleep(9):\n        n += 1\nexcept OSError:\n    print(n)\n    os.kill(0, 9)"
    reply = execute(daemon, code, limits={"max_processes": limit})
    assert (reply["output"], reply["usage"]["pids_peak"], reply["limits"]["hit"]) == (f"{wanted}\n", limit, ["pids"])
    assert execute(daemon, "import os\nif os.fork():\n    os.wait()")["usage"]["pids_peak"] == 2
    assert execute(daemon, "print()")["usage"]["pids_peak"] == 1


def test_a_shade_is_all_memory(daemon):
    """Who waits has one: a process with its memory, and with nothing that could be used."""
    needs_groups(daemon)
    wait_for(lambda: len(children(daemon)) >= 3)
    time.sleep(0.5)  # for the last of them to be held
    owners = ",".join(map(str, children(daemon)))
    shades = [pathlib.Path("/proc", word) for word in subprocess.run(["pgrep", "-P", owners, "-x", "python3"], capture_output=True, text=True).stdout.split()]
    assert len(shades) >= 2
    for shade in shades:
        shown = dict(re.findall(r"^(\w+):\s*(.*)$", (shade / "status").read_text(), re.M))
        owner = dict(re.findall(r"^(\w+):\s*(.*)$", pathlib.Path("/proc", shown["PPid"], "status").read_text(), re.M))
        assert not os.listdir(shade / "fd") and shown["State"][0] == "S" and shown["Seccomp"] == "2"
        assert int(shown["CapPrm"], 16) == int(shown["CapBnd"], 16) == 0 and shown["NoNewPrivs"] == "1" and shown["Uid"] == owner["Uid"]
        assert int(shown["SigBlk"], 16) | 1 << 8 | 1 << 18 | 3 << 31 == 2**64 - 1  # but for KILL, STOP and two of libc's own


def test_usage_is_its_own(daemon):
    reply = execute(daemon, "sum(range(3 * 10**6)); x = bytearray(50 << 20)")
    assert reply["usage"]["memory_peak_bytes"] > 50 << 20 and 0.01 < reply["usage"]["cpu_user_seconds"] + reply["usage"]["cpu_system_seconds"] < 5


def test_its_time_is_its_own(daemon):
    """To the microsecond where groups count it, and nothing of what was done before the program came."""
    needs_groups(daemon)
    times = [execute(daemon, "print('hi')")["resource_usage"]["cpu_time"] for _ in range(5)]
    assert all(time > 0 for time in times) and min(times) < 0.02
    usage = execute(daemon, "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass")["usage"]
    assert 0.29 < usage["cpu_user_seconds"] + usage["cpu_system_seconds"] < 0.4


def test_the_next_ones_have_warmed_up(tmp_path):
    """Whenever there was time for it, also when more wait than are wanted."""
    count = "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)"
    with Daemon(tmp_path) as daemon:
        wait_for(lambda: len(children(daemon)) >= 3)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            burst = list(pool.map(lambda _: int(daemon.execute(count).json()["output"]), range(64)))
        time.sleep(1)
        spaced = []
        for _ in range(8):
            time.sleep(0.3)
            spaced.append(int(execute(daemon, count)["output"]))
        # who has warmed up has touched more memory before its program comes
        assert sorted(spaced)[4] > min(burst) + 100


def test_no_two_are_alike(daemon):
    code = ("import random, uuid, os, tempfile, secrets, ssl\n"
            "print(random.random(), random.SystemRandom().random(), uuid.uuid4(), os.urandom(8).hex(), next(tempfile._get_candidate_names()),\n"
            "      secrets.token_hex(8), ssl.RAND_bytes(8).hex(), sep='\\n')")
    replies = [execute(daemon, code)["output"].split() for _ in range(4)]
    for values in zip(*replies):
        assert len(set(values)) == 4, values


@pytest.mark.skipif(subprocess.run(["/usr/bin/python3", "-c", "import numpy, pandas"], capture_output=True).returncode != 0, reason="needs numpy and pandas")
def test_numpy_and_pandas_are_loaded_where_programs_use_them(daemon):
    code = "import sys\nwarm = 'pandas.core.frame' in sys.modules\nimport numpy, pandas\nprint(warm, numpy.random.random(), pandas.DataFrame({'a': [1, 2]}).a.sum())"
    execute(daemon, code)  # who comes first has it started
    wait_for(lambda: execute(daemon, code)["output"].startswith("True"), 60)
    replies = [execute(daemon, code)["output"].split() for _ in range(3)]
    assert {reply[0] for reply in replies} == {"True"} and {reply[2] for reply in replies} == {"3"}
    assert len({reply[1] for reply in replies}) == 3
    assert execute(daemon, "import sys; print('pandas' in sys.modules)")["output"] == "False\n"


def test_nothing_of_others_is_left(daemon):
    """The program before may change all it can reach; the next one has another box and another copy."""
    dirty = ("import os, sys, json, builtins, random, socket\n"
             "json.dumps = None; builtins.secret = 1; sys.secret = 1; os.environ['SECRET'] = '1'; random.seed(1)\n"
             "for place in ('/tmp', '/workspace', '/dev/shm', '/var/tmp'):\n"
             "    try: open(place + '/secret', 'w').write('x')\n"
             "    except OSError: pass\n"
             "s = socket.socket(); s.bind(('127.0.0.1', 7777)); s.listen()\n"
             "os.fork() or __import__('time').sleep(60)")
    clean = ("import os, sys, json, builtins, random, socket\n"
             "print(json.dumps({}), hasattr(builtins, 'secret'), hasattr(sys, 'secret'), 'SECRET' in os.environ, random.random() == 0.13436424411240122,\n"
             "      [p for p in ('/tmp', '/workspace', '/dev/shm', '/var/tmp') if os.path.exists(p + '/secret')],\n"
             "      len([p for p in os.listdir('/proc') if p.isdigit()]), socket.socket().connect_ex(('127.0.0.1', 7777)) != 0,\n"
             "      [line.split()[1] for line in open('/proc/net/tcp').readlines()[1:]])")
    for _ in range(3):
        execute(daemon, dirty)
        assert execute(daemon, clean)["output"] == "{} False False False False [] 1 True []\n"


def test_a_zygote_that_dies_is_replaced(tmp_path):
    with Daemon(tmp_path) as daemon:
        before = wait_for(lambda: len(found := children(daemon)) >= 3 and found)
        os.kill(min(before), signal.SIGKILL)  # the zygote, which is older than its children
        wait_for(lambda: not lives(min(before)))
        for _ in range(5):  # whatever is ready, it is answered
            assert daemon.post("/v1/execute", {"code": "print(1)", "language": "python"}).json()["output"] == "1\n"
        wait_for(lambda: any(pid not in before for pid in children(daemon)) and
                 daemon.post("/v1/execute", {"code": WARM, "language": "python"}).json()["output"] == "True\n", 40)
        # nobody could order those that waited with children of the dead one
        wait_for(lambda: not set(before) & set(children(daemon)))
        wait_for(lambda: neutral(daemon) >= 2)


def test_who_dies_while_it_waits_is_replaced(tmp_path):
    with Daemon(tmp_path) as daemon:
        zygote, *waiting = sorted(wait_for(lambda: len(found := children(daemon)) >= 3 and found))
        for pid in waiting:
            os.kill(pid, signal.SIGKILL)
        assert daemon.execute("print(1)").json()["output"] == "1\n"  # also if its death was not noticed yet
        wait_for(lambda: len(children(daemon)) >= 3)
        assert daemon.execute(WARM).json()["output"] == "True\n" and lives(zygote)


def test_tenants_do_not_share(tmp_path):
    """Children of one zygote have their addresses in common."""
    keys = {}
    for tenant in ("one", "two"):
        done = subprocess.run([NACRE, "key", "create", "--tenant", tenant, "--role", "execute", "--json"], capture_output=True, text=True,
                              env={**environment(tmp_path), "NACRE_STATE": f"{tmp_path}/state"}, check=True)
        keys[tenant] = json.loads(done.stdout)["key"]
    code = "import sys\nprint('statistics' in sys.modules, id(sys))"

    def places(daemon, tenant):
        def ask():
            reply = daemon.post("/v1/execute", {"code": code, "language": "python"}, key=keys[tenant]).json()
            return reply["output"].startswith("True") and reply["output"]
        return {wait_for(ask) for _ in range(2)}

    with Daemon(tmp_path) as daemon:
        one, two = places(daemon, "one"), places(daemon, "two")
        assert len(one) == len(two) == 1 and one != two


def test_nothing_is_kept_ready_if_so_configured(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    open_way(config)

    def configure(daemon, warm):
        (config / "serve.yaml").write_text(f"warm: {warm}\n")
        (config / "serve.yaml").chmod(0o644)
        if daemon:
            os.kill(daemon.pid, signal.SIGHUP)

    def holds(daemon, interpreters, boxes):
        wait_for(lambda: (len(children(daemon)) >= 3) == interpreters and (neutral(daemon) > 0) == boxes)
        assert daemon.execute("print(1)").json()["output"] == "1\n"
        wait_for(lambda: (len(children(daemon)) > 0) == interpreters and (neutral(daemon) > 0) == boxes)

    configure(None, "nothing")
    with Daemon(tmp_path, config=config) as daemon:
        holds(daemon, False, False)
        configure(daemon, "interpreters")
        holds(daemon, True, True)
        configure(daemon, "boxes")
        holds(daemon, False, True)
        configure(daemon, "nothing")
        holds(daemon, False, False)
        configure(daemon, "much")  # which is nothing that can be said
        daemon.wait_for_log("The configuration is bad, keeping the old one")
        holds(daemon, False, False)
    configure(None, "interpreters")
    with Daemon(tmp_path, "--no-warm", config=config) as daemon:
        holds(daemon, False, False)
        daemon.die()
        holds(daemon, False, False)
        configure(daemon, "interpreters")
        holds(daemon, False, False)


def test_modules_are_those_of_the_configuration(tmp_path):
    """What is not there is left out; another list is another interpreter; no list is the usual one."""
    config = tmp_path / "config"
    config.mkdir()
    open_way(config)
    loaded = "import sys; print([name for name in ('sqlite3', 'zoneinfo', 'statistics') if name in sys.modules])"

    def configure(text):
        (config / "serve.yaml").write_text(text)
        (config / "serve.yaml").chmod(0o644)

    configure("preload: [sqlite3, no_such_module, zoneinfo]\n")
    with Daemon(tmp_path, config=config) as daemon:
        wait_for(lambda: daemon.execute(loaded).json()["output"] == "['sqlite3', 'zoneinfo']\n")
        for text, expected in (("preload: [zoneinfo]\n", "['zoneinfo']\n"), ("warm: interpreters\n", "['statistics']\n")):
            configure(text)
            os.kill(daemon.pid, signal.SIGHUP)
            wait_for(lambda expected=expected: daemon.execute(loaded).json()["output"] == expected)
    configure("preload: ['os; import x']\n")
    done = subprocess.run([NACRE, "--config", config, "config", "check"], capture_output=True, text=True)
    assert done.returncode != 0 and "the name of a Python module" in done.stderr + done.stdout


def test_ends_with_the_daemon(tmp_path):
    with Daemon(tmp_path) as daemon:
        pids = wait_for(lambda: len(found := children(daemon)) >= 3 and found)
    assert not [pid for pid in pids if lives(pid)]


def test_a_zygote_has_no_rights(daemon):
    zygote = min(children(daemon))
    status = pathlib.Path(f"/proc/{zygote}/status").read_text()
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
        assert f"Cap{kind}:\t0000000000000000" in status
    if not daemon.prefix:
        assert int(re.search(r"Uid:\t(\d+)", status)[1]) > 1879048192
    assert pathlib.Path(f"/proc/{zygote}/environ").read_bytes().count(b"NACRE") == 0
    assert os.readlink(f"/proc/{zygote}/root") == "/" and not os.path.exists(f"/proc/{zygote}/root/root/.bashrc")
    for space in ("mnt", "net", "ipc", "uts", "cgroup"):
        assert os.readlink(f"/proc/{zygote}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}")
