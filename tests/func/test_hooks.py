"""The layer inside of interpreters: programs run as they would without, what the policy refuses is refused, and what
can be tried against it from within the language does not work."""

import glob
import json
import re
import struct
import subprocess

import pytest

from conftest import BUILD, open_way

OBJECT = str(BUILD / "src" / "nacre-python.so")
OFF = "inherits: standard\nhooks: off\n"
SAME = {  # programs that have to do the same, hook or not
    "place": "import sys, os\nprint(sys.argv, __file__, __name__, sys.path[0], sorted(os.environ), os.getcwd())\n"
             "print(sorted(os.listdir()), sys.flags, sys.orig_argv, __spec__, __loader__.__class__)",
    "traceback": "def f(x):\n    return 1 / x\n\ntry:\n    f(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e",
    "syntax": "x = 1\ny = (2\n",
    "exit": "import sys, atexit\natexit.register(print, 'bye')\nsys.exit(37)",
    "exit_text": "raise SystemExit('so be it')",
    "signal": "import os\nprint('x', flush=True)\nos.kill(os.getpid(), 11)",
    "input": "print(input('name? '), input())\ntry:\n    input()\nexcept EOFError:\n    print('end')",
    "streams": "import sys\nfor i in range(100):\n    print(i, file=sys.stderr if i % 2 else sys.stdout)",
    "threads": "import threading\nl = []\nts = [threading.Thread(target=l.append, args=(i,)) for i in range(8)]\n"
               "[t.start() for t in ts]; [t.join() for t in ts]\nprint(sorted(l))",
    "fork": "import multiprocessing as m\ndef f(x):\n    return x * x\n"
            "if __name__ == '__main__':\n    with m.Pool(2) as p:\n        print(p.map(f, range(5)))",
    "spawn": "import multiprocessing as m\ndef f(x):\n    return x * x\n"
             "if __name__ == '__main__':\n    m.set_start_method('spawn')\n    with m.Pool(2) as p:\n        print(p.map(f, range(5)))",
    "child": "import subprocess, sys, os\nprint(subprocess.run([sys.executable, '-c', 'import os; print(sorted(os.environ), os.listdir(\"/proc/self/fd\"))'],"
             " capture_output=True, text=True))",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 1\nprint(asyncio.run(f()))",
    "made": "import collections, dataclasses, enum\nP = collections.namedtuple('P', 'a b')\n"
            "@dataclasses.dataclass\nclass D:\n    x: int = 1\nclass E(enum.Enum):\n    A = 1\nprint(P(1, 2), D(), E.A, eval('1+1'))",
    "ctypes": "import ctypes\nprint(ctypes.CDLL(None).abs(-3))",
    "weird": "import sys\nsys.stderr.buffer.write(b'\\x1e' + b'0' * 33 + b'\\xff\\n\\x1e')",
    "closed": "import os\nos.closerange(3, 1000)\nos.system('echo a')\nprint('b')",
}


@pytest.fixture
def execute(nacre, tmp_path):
    """The reply to a program under a policy: the name of one, or its text."""
    def run(policy, code, *options, inputs=(), language="python"):
        if "\n" in policy:
            (tmp_path / "its.yaml").write_text(policy)
            open_way(tmp_path)
            policy = str(tmp_path / "its.yaml")
        words = [word for line in inputs for word in ("--input", line)]
        answer = nacre("run", "--json", "--lang", language, "--policy", policy, *options, *words, "-c", code)
        assert answer.stdout, answer.stderr
        return json.loads(answer.stdout)
    return run


def language_denials(reply):
    return [(denial["rule"], denial["object"], denial["line"]) for denial in reply["denials"] if denial["layer"] == "language"]


@pytest.mark.parametrize("name", SAME)
def test_programs_do_not_notice(execute, name):
    without, held = (execute(policy, SAME[name], inputs=["ann", "b"]) for policy in (OFF, "standard"))
    for key in ("status", "error", "output", "stderr", "exit_code", "signal", "diagnostic", "denials"):
        assert held[key] == without[key], key


def test_what_is_seen_is_told_with_its_line(execute):
    reply = execute("standard", "import subprocess\n\nfor _ in range(9):\n    subprocess.run(['true'])\n")
    assert reply["status"] == "success" and reply["denials"] == []
    assert reply["noticed"] == [
        {"rule": "process.run", "object": "subprocess.Popen true", "file": "main.py", "line": 4, "count": 8}]


@pytest.mark.parametrize("tier", ["container", "process"])
def test_every_tier_has_it(execute, tier):
    policy = "inherits: standard\nhooks: enforce\nseverities: {process.shell: critical}\nrisk: {medium: process, high: process}\n"
    reply = execute(policy, "import importlib\nm = importlib.import_module(input())\ngetattr(m, 'sys' + input())('id')",
                    "--tier", tier, inputs=["os", "tem"])
    assert reply["tier"] == tier, reply["tier_reason"]
    assert language_denials(reply) == [("process.shell", "os.system id", 3)]
    assert reply["status"] == "error" and "uid=" not in reply["output"]


STRICT = {  # hidden from static analysis: code, input, what the layer says
    "import": ("import importlib\nm = importlib.import_module(input())", "socket", ("policy.import", "socket", 2)),
    "loaded": ("import importlib\nm = importlib.import_module(input())\nprint(m.listdir('/'))", "os", ("policy.import", "os.listdir /", 3)),
    "wrapper": ("import importlib\nm = importlib.import_module(input())\nm.makedirs('a/b')", "os", ("policy.import", "os.mkdir a", 3)),
    "shell": ("import importlib\nm = importlib.import_module(input())\nm.popen('id')", "os", ("policy.import", "subprocess", None)),
    "posix": ("import importlib\nm = importlib.import_module(input())\nm.system('id')", "posix", ("policy.import", "os.system id", 3)),
    "eval": ("import builtins\nname = input()\nf = [getattr(builtins, n) for n in dir(builtins) if n == name][0]\nf('1')", "eval", ("policy.function", "eval", 4)),
    "thread": ("import importlib, threading\ndef f():\n    importlib.import_module(name).system('id')\nname = input()\n"
               "t = threading.Thread(target=f)\nt.start()\nt.join()", "posix", ("policy.import", "os.system id", 3)),
    "caught": ("import importlib\nm = importlib.import_module(input())\ntry:\n    m.system('id')\nexcept BaseException as e:\n    print(type(e).__name__)",
               "posix", ("policy.import", "os.system id", 4)),
    "indirect": ("import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec(name)\n    await p.wait()\nname = input()\nasyncio.run(f())",
                 "id", ("policy.import", "subprocess.Popen id", 3)),
    "ctypes": ("import importlib\nm = importlib.import_module(input())\nprint(m.CDLL(None).system(b'id'))", "ctypes", ("native.call", "ctypes.dlsym", 3)),
    "memory": ("open(input(), 'r+b')", "/proc/self/mem", ("file.environment", "open /proc/self/mem", 1)),
    "memory_by_directory": ("import pathlib, importlib\nm = importlib.import_module(input())\nm.open('./mem', 2, dir_fd=m.open('/proc/self', 0))", "posix", None),
    "ctypes_bare": ("import importlib\nm = importlib.import_module(input())\nm.dlopen('libc.so.6', 2)", "_ctypes", ("native.call", "ctypes.dlopen", 3)),
    "interpreter": ("import importlib\nm = importlib.import_module(input())\n"
                    "m.run_string(m.create(), 'import posix; posix.system(\"id\")')", "_xxsubinterpreters", ("policy.import", "os.system id", None)),
    "unpickled": ("import importlib\nm = importlib.import_module(input())\nm.loads(b'cposix\\nsystem\\n(S\\'id\\'\\ntR.')", "pickle",
                  ("policy.import", "os.system id", 3)),
    "made_function": ("import importlib\ndef f(): pass\nm = importlib.import_module(input())\nm.FunctionType(f.__code__, {})", "types",
                      ("code.introspect", "function.__new__", 4)),
    "memory_of_task": ("import pathlib\np = pathlib.Path('/proc/self/task')\nopen(next(p.iterdir()) / input(), 'rb')", "mem",
                       ("file.environment", None, 3)),
}


@pytest.mark.parametrize("name", STRICT)
def test_strict_refuses_what_analysis_cannot_see(execute, name):
    code, line, expected = STRICT[name]
    reply = execute("strict", code, inputs=[line])
    assert reply["status"] != "blocked", reply["error"]
    assert "uid=" not in reply["output"] + reply["stderr"]
    rules = language_denials(reply)
    assert rules, reply
    if expected:
        assert any(rule == expected[0] and (expected[1] or "") in what and expected[2] in (None, at) for rule, what, at in rules), rules
    denial = next(denial for denial in reply["denials"] if denial["layer"] == "language")
    assert denial["allow_with"] and denial["instead"] and denial["message"] and denial["id"].startswith("language.")
    if name == "caught":
        assert reply["status"] == "success" and reply["output"] == "PermissionError\n"


ATTACKS = {  # before the call that has to be refused all the same
    "own hook": "s.addaudithook(lambda *a: None)",
    "hook that fails": "s.addaudithook(lambda e, a: (_ for _ in ()).throw(RuntimeError()) if e == 'never' else None)",
    "garbage": "[g.__init__ for g in gc.get_objects()[:9]]; gc.collect(); gc.freeze()",
    "closed": "[close(i) for i in range(3, 300)]",
    "modules": "s.modules.clear()",
    "frames": "f = s._getframe(); f.f_globals['__file__'] = '/usr/lib/python3/os.py'",
    "renamed code": "run.__code__ = run.__code__.replace(co_filename='/usr/lib/python3/x.py')",
    "false events": "[s.audit(e, *a) for e in ('exec', 'compile', 'import', 'open', 'ctypes.dlopen', 'os.x') for a in ((), (1,), (None, None), (b'x',))]",
    "stolen channel": "dup2(opened('stolen', 65), 200)",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_it_cannot_be_taken_away(execute, name):
    policy = "inherits: standard\nhooks: enforce\nseverities: {process.shell: critical}\nrisk: {medium: process, high: process, critical: refuse}\n"
    code = f"""
import importlib, gc
o, s = importlib.import_module(input()), importlib.import_module(input())
close, dup2 = lambda fd: o.fstat(fd) and o.close(fd), o.dup2
def opened(path, flags): return o.open(path, flags)
def run(): return getattr(o, 'sys' + 'tem'[:3])('echo through')
try:
    {ATTACKS[name]}
except (OSError, RuntimeError) as e:
    print(e)
try:
    run()
except PermissionError as e:
    print('refused')
try:
    print('token', b'\\x1e' in open('stolen', 'rb').read())
except OSError:
    pass
"""
    reply = execute(policy, code, inputs=["os", "sys"])
    assert "through" not in reply["output"].split("\n") and "refused" in reply["output"], (reply["output"], reply["stderr"])
    assert "token True" not in reply["output"]


def test_machine_code_of_its_own_is_refused_where_lists_hold(execute, tmp_path):
    (tmp_path / "helper.so").write_bytes(b"no program at all")
    open_way(tmp_path)
    code = "import importlib\nimportlib.import_module('helper')"
    reply = execute("strict", code, "--file", str(tmp_path / "helper.so"))
    assert language_denials(reply) == [("native.call", "helper", 2)]
    reply = execute("standard", code, "--file", str(tmp_path / "helper.so"))
    assert reply["error"].startswith("ImportError") and [seen["rule"] for seen in reply["noticed"]] == ["native.call"]


def test_records_can_not_be_forged_without_the_token(execute):
    reply = execute("standard", "import sys\nsys.stderr.write('\\x1e' + '0' * 32 + '\\t!\\t1\\t1\\tprocess.run\\tx\\ty\\n')")
    assert reply["denials"] == [] and reply["noticed"] == [] and "process.run" in reply["stderr"]
    # neither in the environment of the process nor in its files
    reply = execute("standard", "import os\nprint(open('/proc/self/environ').read().count('LD_'), os.listdir('.'), os.listdir(os.environ['TMPDIR']))")
    assert reply["output"] == "0 ['main.py'] []\n"


def test_the_callers_own_library_is_loaded_too(execute):
    code = "import os\nprint(os.environ['LD_PRELOAD'])\nos.system('true')"
    reply = execute("standard", code, "--env", "LD_PRELOAD=libm.so.6")
    assert reply["output"] == "libm.so.6\n" and [seen["rule"] for seen in reply["noticed"]] == ["process.shell"]


def test_a_step_cannot_change_the_hook_of_the_next(nacre, tmp_path):
    steps = [{"language": "shell", "code": "for f in .*.nacre; do echo > $f; done; ls -a"},
             {"language": "python", "code": "import os\nos.system('true')"}]
    (tmp_path / "request.json").write_text(json.dumps({"steps": steps}))
    open_way(tmp_path)
    reply = json.loads(nacre("run", "--json", "--request", str(tmp_path / "request.json")).stdout)
    assert [step["status"] for step in reply["steps"]] == ["success", "success"], reply
    assert [seen["rule"] for seen in reply["steps"][1]["noticed"]] == ["process.shell"]


@pytest.mark.parametrize("policy", ["standard", "strict", "audit"])
def test_node_says_nothing_of_its_own(execute, policy):
    reply = execute(policy, "console.log(1); console.error(2)", language="javascript")
    assert (reply["status"], reply["output"], reply["stderr"]) == ("success", "1\n", "2\n")


@pytest.mark.parametrize("line, code, rule", [
    ("child_process", "c.execSync('id')", "process.run"),
    ("fs", "c.writeFileSync('x', '1')", "policy.import"),
    ("vm", "const k = Object.keys({constructor: 1})[0]; c[k][k]('return 1')()", "code.eval"),
])
def test_node_is_held_by_its_permission_model(execute, line, code, rule):
    version = execute("standard", "console.log(process.versions.node)", language="javascript")["output"]
    if tuple(map(int, version.split(".")[:2])) < (20, 11):
        pytest.skip("this Node has no permission model that can keep quiet")
    program = ("process.stdin.on('data', d => {\n  const c = module.constructor._load(String(d).trim());\n  " + code + "\n})")
    reply = execute("strict", program, inputs=[line], language="javascript")
    assert reply["status"] == "error" and language_denials(reply)[0][0] == rule, (reply["error"], reply["denials"], reply["stderr"])
    assert language_denials(reply)[0][2] == 3 and "Warning" not in reply["stderr"]


def test_bash_refuses_forbidden_commands_by_any_name(execute):
    reply = execute("strict", "read -r x\ntouch a\n$x a 2>&1\ncommand $x a\n$x a\nls -a", inputs=["rm"], language="shell")
    assert reply["output"].endswith("\n.\n..\na\nmain.sh\n")
    assert [denial for denial in language_denials(reply)] == [("policy.command", "rm", 3), ("policy.command", "rm", 4), ("policy.command", "rm", 5)]
    assert "refuses it" in reply["stderr"] and "\x1e" not in reply["stderr"]


def test_bash_finds_allowed_commands_only(execute):
    policy = "inherits: strict\nshell:\n  allowed_commands: [echo, eval, cat, ls, xargs]\n  forbidden_commands: []\n  forbidden_patterns: []\n"
    reply = execute(policy, "echo a | cat\n\neval \"$(cat)\"\nls -a | xargs echo", inputs=["sort /etc/hostname"], language="shell")
    assert reply["output"] == "a\n. .. main.sh\n"
    assert language_denials(reply) == [("policy.command", "sort", 3)]
    reply = execute(policy, "eval \"$(cat)\"\necho $PATH", inputs=["PATH=/bin:/usr/bin; sort /etc/hostname"], language="shell")
    assert ":" not in reply["output"] and "readonly" in reply["stderr"]


def test_the_object_is_of_no_version():
    """It uses stable names only: no symbol of it is of one version of Python or of libc."""
    listed = subprocess.run(["nm", "-D", OBJECT], capture_output=True, text=True, check=True).stdout
    wanted = re.findall(r" [Uw] (\S+)", listed)
    assert wanted and not [name for name in wanted if "@" in name or name.startswith("__")]
    assert "NEEDED" not in subprocess.run(["readelf", "-d", OBJECT], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("python", sorted(glob.glob("/root/.pyenv/versions/*/bin/python3") + ["/usr/bin/python3"]))
def test_other_pythons_are_held(tmp_path, python):
    rows = [("W", f"{tmp_path}/"), ("E", "!", "a", "os.system", "process.shell", "no"), ("I", "!", "p", "socket", "policy.import", "no"),
            ("F", "!", "p", "eval", "policy.function", "no")]
    text = ("0" * 32 + "\n" + "".join("\t".join(row) + "\n" for row in rows)).encode()
    (tmp_path / "x.nacre").write_bytes(open(OBJECT, "rb").read() + text + b"nacrehk1" + struct.pack("<II", len(text), 0))
    (tmp_path / "main.py").write_text("""
import importlib, sys
for f in (lambda: importlib.import_module("socket"), lambda: __import__("socket"), lambda: importlib.import_module("posix").system("id"),
          lambda: eval("1")):
    try:
        print("not refused", f())
    except PermissionError as e:
        print(e)
""")
    done = subprocess.run([python, str(tmp_path / "main.py")], env={"LD_PRELOAD": str(tmp_path / "x.nacre")}, capture_output=True, text=True)
    assert not (tmp_path / "x.nacre").exists()
    if re.search(r"/3\.[0-8]\.", python):
        assert done.returncode == 125 and done.stdout == "" and "older than 3.9" in done.stderr
        return
    assert done.stdout.splitlines() == ["socket: no [policy.import]", "socket: no [policy.import]", "os.system id: no [process.shell]",
                                        "eval: no [policy.function]"], done.stderr
    assert done.stderr.count("\x1e" + "0" * 32) == 4


def alerts_of(reply):
    return [alert["id"] for alert in reply["alerts"]]


def test_looking_for_secrets_is_an_alert(execute):
    code = ("import pathlib\nfor p in ('.ssh/id_rsa', '.aws/credentials', '.netrc'):\n    try:\n        (pathlib.Path.home() / p).read_text()\n"
            "    except OSError:\n        pass")
    reply = execute("standard", code)
    assert reply["status"] == "success" and alerts_of(reply) == ["secrets_probed"]
    assert reply["alerts"][0]["value"] == 3 and reply["alerts"][0]["reason"]
    assert {seen["rule"] for seen in reply["noticed"]} == {"file.credentials"}


STORM = ("import importlib, time\nm = importlib.import_module(input())\nfor _ in range(400):\n    try:\n        m.system('id')\n"
         "    except PermissionError:\n        time.sleep(0.02)\nprint('through')")


def test_a_storm_of_refusals_is_told_and_ended_if_the_policy_says_so(execute):
    reply = execute("strict", STORM.replace("400", "40"), inputs=["posix"])
    assert reply["status"] == "success" and alerts_of(reply) == ["language_refusals"]
    reply = execute("inherits: strict\nrespond: {high: end}\n", STORM, inputs=["posix"])
    assert reply["status"] == "blocked" and "through" not in reply["output"]
    assert "ended it" in reply["error"] and "language_refusals" in reply["error"]
    assert alerts_of(reply) == ["language_refusals"] and reply["execution_time"] < 6
    # who only reports ends nothing
    reply = execute("inherits: strict\nmode: audit\nrespond: {high: end}\nalerts: {language_refusals: 1}\n", STORM.replace("400", "40"), inputs=["posix"])
    assert reply["status"] == "success" and "uid=" in reply["output"]


def test_programs_are_counted_by_the_second(execute):
    policy = "inherits: standard\nalerts: {programs_per_second: 5}\nrespond: {medium: end}\n"
    code = "import subprocess, time\nfor _ in range(1500):\n    subprocess.run(['true'])\n    time.sleep(0.005)\nprint('through')"
    reply = execute(policy, code)
    assert reply["status"] == "blocked" and "programs_per_second" in alerts_of(reply), reply["alerts"]


# Makes so many processes a second for so many seconds, and says how many those were in the fastest second that it had.
FORKER = """\
import collections, os, time
made, begun = collections.Counter(), time.monotonic()
for i in range({rate} * {seconds}):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    now = time.monotonic() - begun
    made[int(now * 10)] += 1
    if (late := (i + 1) / {rate} - now) > 0:
        time.sleep(late)
print(max(sum(made[at + i] for i in range(10)) for at in list(made)))
time.sleep({rest})
"""


def forks_of(reply):
    return [alert["value"] for alert in reply["alerts"] if alert["id"] == "forks_per_second"]


@pytest.mark.parametrize("rate, seconds, rest", [(20, 4, 0), (200, 8, 0), (2000, 3, 0), (1000, 1, 2), (400, 2, 2)])
def test_forks_are_never_more_than_there_were(execute, rate, seconds, rest):
    """Of those that it has waited for nobody is seen, mostly, and then one with a much higher number."""
    reply = execute("inherits: standard\nalerts: {forks_per_second: 1}\n", FORKER.format(rate=rate, seconds=seconds, rest=rest))
    assert reply["status"] == "success", reply["error"]
    real, told = int(reply["output"]), forks_of(reply)
    # its processes live so shortly that none may be seen
    assert all(1 <= value <= real * 1.03 + 2 for value in told), (told, real)


def test_forks_that_are_seen_are_counted_right(execute):
    """Each lives for a while, so that some are seen whenever it is looked."""
    code = ("import os, time\nbegun, n = time.monotonic(), 0\nwhile (now := time.monotonic() - begun) < 4:\n"
            "    os.fork() or (time.sleep(0.2), os._exit(0))\n    n += 1\n    time.sleep(max(0, n / 100 - now))\n"
            "    try:\n        while os.waitpid(-1, os.WNOHANG)[0]: pass\n    except ChildProcessError: pass\nprint(n / now)")
    reply = execute("inherits: standard\nalerts: {forks_per_second: 1}\n", code)
    assert reply["status"] == "success", reply["error"]
    if not forks_of(reply):
        pytest.skip("no control groups here")
    assert 0.7 * float(reply["output"]) <= forks_of(reply)[0] <= 1.5 * float(reply["output"]) + 3, reply["alerts"]


def test_refused_forks_are_no_forks(execute):
    """The kernel gives each of them a number all the same."""
    code = ("import os, time\nkept, n, begun = [], 0, time.monotonic()\nfor i in range(40):\n    try:\n        kept.append(os.fork() or time.sleep(60))\n"
            "    except OSError: pass\nwhile time.monotonic() - begun < 3:\n    try:\n        os.fork() or os._exit(0)\n    except OSError: n += 1\n"
            "    if n % 100 == 0:\n        os.kill(kept[0], 9); os.waitpid(kept[0], 0)\n        kept[0] = os.fork() or time.sleep(60)\nprint(n)")
    reply = execute("inherits: standard\nalerts: {forks_per_second: 1, processes_refused: 0}\n", code, "--pids", "12")
    assert reply["status"] == "success", reply["error"]
    refused = int(reply["output"])
    if refused < 1000:
        pytest.skip("nothing refuses them here, or too slowly to tell")
    assert all(value <= refused / 100 + 60 for value in forks_of(reply)), (reply["alerts"], refused)


def test_a_storm_of_forks_is_ended_in_every_language(execute):
    """Told from the numbers that processes get inside, whoever makes them."""
    policy = "inherits: standard\nalerts: {forks_per_second: 50}\nrespond: {medium: end}\n"
    reply = execute(policy, "for i in $(seq 20000); do (:) & wait; done; echo through", "--timeout", "20s", language="shell")
    assert reply["status"] == "blocked" and "forks_per_second" in alerts_of(reply), (reply["status"], reply["alerts"])
    reply = execute(policy, "for i in 1 2 3; do (:); sleep 0.5; done; echo through", language="shell")
    assert reply["status"] == "success" and alerts_of(reply) == []


def test_a_busy_shell_is_no_storm(execute):
    """Some hundred programs a second, as a build starts them."""
    policy = "inherits: standard\nrespond: {medium: end, high: end, critical: end}\n"
    reply = execute(policy, "for i in $(seq 700); do /bin/true; sleep 0.004; done; echo through", "--timeout", "120s", language="shell")
    assert reply["status"] == "success" and reply["output"] == "through\n", (reply["error"], reply["alerts"])


def test_endless_output_can_be_ended(execute):
    policy = "inherits: standard\nalerts: {output_mb_per_second: 1}\nrespond: {low: end}\n"
    reply = execute(policy, "import time\nfor _ in range(100):\n    print('x' * 4000000)\n    time.sleep(0.1)", "--output", "1GB")
    assert reply["status"] == "blocked" and "output_mb_per_second" in alerts_of(reply)


def test_memory_that_grows_too_fast_can_freeze_the_run(execute):
    code = ("import time\nkept = []\nfor _ in range(40):\n    kept.append(b'x' * (8 << 20))\n    time.sleep(0.1)\nprint('through')")
    policy = "inherits: standard\nalerts: {memory_mb_per_second: 20}\n"
    reply = execute(policy, code, "--memory", "900MB")
    assert reply["status"] == "success" and alerts_of(reply) == ["memory_mb_per_second"], reply["alerts"]
    reply = execute(policy + "respond: {low: freeze}\n", code, "--memory", "900MB", "--timeout", "6s")
    assert reply["status"] == "blocked" and "froze it" in reply["error"] and reply["output"] == "" and alerts_of(reply) == ["memory_mb_per_second"]
    assert reply["usage"]["memory_peak_bytes"] < 40 * (8 << 20)
