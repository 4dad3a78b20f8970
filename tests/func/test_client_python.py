"""The Python client (clients/python) against a real daemon and against Nacre in its own children; the code of seed 002."""

import asyncio
import contextlib
import inspect
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from conftest import BUILD, NACRE, ROOT
from serving import Daemon

sys.path.insert(0, str(ROOT / "clients/python/src"))
nacre = pytest.importorskip("nacre")
from nacre import aio  # noqa: E402


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("serve"), respawn=True) as one:
        yield one


@pytest.fixture
def client(daemon):
    with nacre.Client(f"http://127.0.0.1:{daemon.port}") as one:
        yield one


@pytest.fixture
def embedded(monkeypatch, tmp_path):
    """No daemon is named: the client starts what it needs."""
    monkeypatch.setenv("NACRE_PROGRAM", str(NACRE))
    monkeypatch.setenv("NACRE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("NACRE_SERVER", raising=False)
    yield nacre.Client()
    from nacre import engine
    for _, one in engine._shared.values():
        one.close()
    engine._shared.clear()


@pytest.fixture(params=["daemon", "embedded"])
def either(request):
    return request.getfixturevalue("client" if request.param == "daemon" else "embedded")


def test_a_program_runs(either):
    result = either.run("import sys; print(input() + open('f').read()); sys.stderr.write('e')", "python", inputs=["hello "], files={"f": b"\xc3\xa9"},
                        limits={"memory_mb": 128}, timeout=10)
    assert result.ok and result.output == "hello é\n" and result.stderr == "e"
    assert result.limits["memory_bytes"] == 128 << 20 and result.usage["wall_seconds"] > 0 and result.strength
    with pytest.raises(AttributeError):
        result.nonsense


def test_a_program_that_fails_is_no_exception(either):
    result = either.run("1 / 0", "python")
    assert not result.ok and result.status == "error" and "ZeroDivisionError" in result.error
    assert either.run("while True: pass", "python", timeout=0.3).status == "timeout"


def test_output_streams_and_need_not_be_text(either):
    pieces = []
    code = "import os, time\nfor i in range(3):\n    os.write(1, b'%d\\xff' % i)\n    time.sleep(0.1)"
    result = either.run(code, "python", on_output=lambda stream, data: pieces.append((time.monotonic(), stream, data)))
    assert b"".join(data for _, _, data in pieces) == b"0\xff1\xff2\xff" == result.output_bytes
    assert pieces[-1][0] - pieces[0][0] > 0.1, "it came all at once"


def test_files_come_back(either):
    result = either.run("open('out.bin', 'wb').write(bytes(range(256)))", "python", capture=["*.bin"])
    assert result.files == {"out.bin": bytes(range(256))}


def test_a_wrong_request_is_an_exception_that_names_its_faults(either):
    with pytest.raises(nacre.NacreError) as error:
        either.run("x", "klingon", limits={"memory_mb": -1})
    assert {fault["pointer"] for fault in error.value.faults} == {"/language", "/limits/memory_mb"}
    assert "klingon" in str(error.value)


def test_a_check_runs_nothing(either):
    report = either.check("import subprocess; eval('1')", "python")
    assert [one["rule"] for one in report["findings"]] and report["risk"] in ("medium", "high", "critical")


def test_a_sandbox(either):
    with either.sandbox(timeout=120, env={"WHO": "me"}) as box:
        box.write_file("a/b.txt", "hello")
        assert box.read_text("a/b.txt") == "hello" and [one["name"] for one in box.list_files("/workspace/a")] == ["b.txt"]
        assert box.stat("a/b.txt")["size"] == 5
        box.move_file("a/b.txt", "c.txt")
        box.make_dir("d")
        done = box.run("cat c.txt; echo $WHO; pwd; exit 3", dir="/workspace/d", input="x")
        assert done.exit_code != 0 and "No such file" in done.stderr
        done = box.run(["sh", "-c", "cat c.txt; echo \" $WHO\"; exit 3"])
        assert (done.stdout, done.exit_code, done.ok) == ("hello me\n", 3, False)
        with pytest.raises(nacre.CommandFailed) as failed:
            box.run("false", check=True)
        assert failed.value.result.exit_code == 1
        got = []
        box.run("printf one; sleep 0.2; printf two", on_output=lambda stream, data: got.append(data))
        assert got == [b"one", b"two"]
        snapshot = box.snapshot("mine")
        box.delete_file("c.txt")
        with pytest.raises(nacre.NacreError) as missing:
            box.read_file("c.txt")
        assert missing.value.status == 404
        with either.sandbox(snapshot=snapshot) as other:
            assert other.read_file("c.txt") == b"hello"
        assert snapshot in [one["id"] for one in either.snapshots()]
        either.delete_snapshot(snapshot)
        assert either.connect(box.id).stats()["paused"] is False and box.healthy()
        box.set_timeout(60)
        assert box.info["seconds_left"] <= 60
        archive = box.download()
        box.upload(archive, "/workspace/copy")
        assert "d" in [one["name"] for one in box.list_files("/workspace/copy")]
        assert box.id in [one.id for one in either.sandboxes()]
    with pytest.raises(nacre.NacreError):
        either.connect(box.id)


def test_a_command_in_the_background(client):
    with client.sandbox() as box:
        command = box.start("while read line; do echo got $line; done", keep_input=True)
        command.write("one\n")
        command.write("two\n")
        command.close_input()
        assert command.wait().stdout == "got one\ngot two\n"
        large = box.start("sleep 0.3; wc -c", keep_input=True)
        large.write(bytes(1000000), end=True)  # more than is taken at once
        assert large.wait().stdout.strip() == "1000000"
        sleeper = box.start("exec sleep 100")
        sleeper.signal("TERM")
        assert sleeper.wait().signal == "TERM" or sleeper.wait().reply["signal"] in (15, "SIGTERM")
        killed = box.start("sleep 100")
        killed.kill()
        assert not killed.wait().ok
        terminal = box.start("stty size; sleep 0.3; stty size", terminal=True, rows=10, columns=20)
        terminal.resize(30, 40)
        assert "30 40" in terminal.wait().stdout
        assert {one.id for one in box.commands()} >= {command.id, sleeper.id}


def test_watching(client):
    with client.sandbox() as box:
        events = box.watch()
        assert next(events)[0] == "ready"
        box.run("echo x >new")
        assert next(events) == ("created", {"path": "/workspace/new", "type": "file"})
        events.close()


def test_pause_stops_it(client):
    with client.sandbox() as box:
        box.pause()
        assert box.stats()["paused"] is True
        with pytest.raises(nacre.NacreError) as paused:
            box.run("true")
        assert paused.value.status == 409
        box.resume()
        assert box.run("echo on").stdout == "on\n"


def test_a_daemon_that_dies_is_asked_again(daemon, client):
    """Events go on behind the last one that was seen; a sandbox is there again."""
    with client.sandbox() as box:
        command = box.start("for i in $(seq 20); do echo $i; sleep 0.05; done")
        got = b""
        for stream, data in command.events():
            got += data
            if got == b"1\n":
                daemon_pid = [record["pid"] for record in daemon.log() if record["message"] == "Listening"][-1]
                os.kill(daemon_pid, 9)
        assert box.run("echo alive").stdout == "alive\n"
        assert command.wait().stdout == "".join(f"{i}\n" for i in range(1, 21))


def test_nobody_there_is_an_exception():
    began = time.monotonic()
    with pytest.raises(nacre.ConnectionLost):
        nacre.Client("http://127.0.0.1:9").run("1", "python")
    assert time.monotonic() - began < 20
    with pytest.raises(nacre.NacreError):
        nacre.Client("ftp://127.0.0.1")


@pytest.fixture
def forgetful():
    """A daemon that answers every request but a streamed one: that it reads, and hangs up. Its port, and the heads that it read."""
    heads = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection):
        with connection, connection.makefile("rb") as stream:
            while head := b"".join(iter(stream.readline, b"\r\n")):
                heads.append(head)
                stream.read(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
                if b"text/event-stream" in head or b"/input" in head:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1], heads
    listener.close()


def test_what_may_have_come_through_is_not_sent_again(forgetful):
    """Not even on a connection that was kept, where it may just have been closed."""
    port, heads = forgetful
    client = nacre.Client(f"http://127.0.0.1:{port}")
    client.run("1", "python")
    with pytest.raises(nacre.ConnectionLost):
        client.http.ask("POST", "/v1/sandboxes/x/commands/y/input", b"once")
    with pytest.raises(nacre.ConnectionLost):
        client.run("1", "python", on_output=print)
    assert [b"/input" in head for head in heads] == [False, True, False]
    if shutil.which("node"):
        script = f"import {{ Client }} from '{ROOT}/clients/typescript/nacre.js'; const c = new Client({{ url: 'http://127.0.0.1:{port}' }}); await c.run('1'); await c.run('1', {{ onOutput() {{}} }}).catch((e) => console.log(e.code)); process.exit();"
        done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=30)
        assert done.stdout == "connection_lost\n" and len(heads) == 5, (done, heads)


def test_a_program_that_is_not_there(monkeypatch):
    monkeypatch.setenv("NACRE_PROGRAM", "/nonexistent/nacre")
    monkeypatch.delenv("NACRE_SERVER", raising=False)
    from nacre import engine
    with pytest.raises(nacre.NacreError) as error:
        engine.Engine()
    assert error.value.code == "no_program"


def test_keys_and_refusals(tmp_path):
    with Daemon(tmp_path) as daemon:
        made = subprocess.run([NACRE, "key", "create"], env=daemon.env, capture_output=True, text=True, check=True)
        url = f"http://127.0.0.1:{daemon.port}"
        time.sleep(1.5)  # it takes the key within a second
        with pytest.raises(nacre.NacreError) as refused:
            nacre.Client(url).run("1", "python")
        assert refused.value.status == 401
        assert nacre.Client(url, made.stdout.split()[0]).run("print(1)", "python").output == "1\n"


def test_a_private_daemon_is_private_and_goes_with_its_owner(embedded, tmp_path):
    script = tmp_path / "owner.py"
    script.write_text("import nacre, sys\nbox = nacre.Sandbox()\nprint(box.client.http.port, nacre.engine.shared('daemon').process.pid, flush=True)\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src")}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    pid = int(done.stdout.split()[1])
    assert not pathlib.Path(f"/proc/{pid}").exists()
    with embedded.sandbox():
        port = embedded.http.port
        with pytest.raises(nacre.NacreError) as refused:
            nacre.Client(f"http://127.0.0.1:{port}").sandboxes()
        assert refused.value.status == 401, "another user of this machine could ask it"


def test_async(client):
    async def main():
        asked = aio.Client(client.url)
        results = await asyncio.gather(*(asked.run(f"print({i})", "python") for i in range(4)))
        assert [one.output for one in results] == [f"{i}\n" for i in range(4)]
        async with await asked.sandbox() as box:
            await box.write_file("f", "x")
            assert await box.read_text("f") == "x"
            command = await box.start("for i in 1 2 3; do echo $i; sleep 0.05; done")
            assert [data async for _, data in command.events()] == [b"1\n", b"2\n", b"3\n"]
            assert (await box.run("cat f")).stdout == "x" and (await command.wait()).ok
            assert await box.healthy() and (await box.stats())["paused"] is False

    asyncio.run(main())


def test_a_command_that_is_cancelled_ends(client):
    async def main():
        async with await aio.Client(client.url).sandbox() as box:
            task = asyncio.create_task(box.run("sleep 60"))
            await asyncio.sleep(0.5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            until = time.monotonic() + 10
            while (await box.stats())["processes"]:
                assert time.monotonic() < until, "it goes on"
                await asyncio.sleep(0.1)

    asyncio.run(main())


def test_a_call_that_is_cancelled_ends_what_it_waited_for(either):
    async def main():
        asked = aio.Client()
        asked._sync = either
        task = asyncio.create_task(asked.run("import time; time.sleep(60)", "python", labels={"which": "cancelled"}))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    until = time.monotonic() + 20
    while not [one for one in either.history(5) if one.get("labels") == {"which": "cancelled"} and one["status"] == "cancelled"]:
        assert time.monotonic() < until, either.history(5)
        time.sleep(0.1)


# Seed 002's files, as they are printed there.
POLICIES = """python:
  forbidden_imports:
    - os
    - subprocess
    - sys
    - socket
  forbidden_functions:
    - eval
    - exec
    - compile
  forbidden_patterns:
    - "__import__"
    - "globals()"
    - "locals()"

javascript:
  forbidden_patterns:
    - "require('fs')"
    - "require('child_process')"
    - "process.exit"
    - "eval("

shell:
  forbidden_commands:
    - rm
    - sudo
    - chmod
    - chown
  forbidden_patterns:
    - ">/dev/"
    - "curl"
    - "wget"
"""
LIMITS = {"memory_mb": 512, "cpu_cores": 1, "execution_time_seconds": 30, "max_processes": 5, "disk_mb": 100}


@pytest.fixture
def manager(embedded, tmp_path):
    path = tmp_path / "security_policies.yaml"
    path.write_text(POLICIES)
    one = nacre.SecurityManager(str(path))
    yield one
    one.close()


def test_the_security_manager_of_the_seed(manager):
    assert manager.validate_python_code("print(1)").is_valid
    judged = manager.validate_python_code("import os\nos.remove('x')")
    assert not judged.is_valid and judged.violations[0]["line"] == 1 and isinstance(judged.risk_level, nacre.RiskLevel)
    assert not manager.validate_javascript_code("require('child_process').exec('ls')").is_valid
    assert manager.validate_javascript_code("console.log(1)").is_valid
    assert not manager.validate_shell_code("sudo rm -rf /").is_valid
    assert manager.check_imports("import os, json\nimport socket as s", "python") == ["os", "socket"]
    assert manager.analyze_security_risk("print(1)", "python") == nacre.RiskLevel.LOW
    assert manager.analyze_security_risk("import os; eval(input())", "python") > nacre.RiskLevel.LOW


def test_the_resource_monitor_of_the_seed():
    monitor = nacre.ResourceMonitor({**LIMITS, "memory_mb": 60, "max_processes": 2})
    code = "import subprocess, sys, time\nx = bytearray(80 << 20)\nsubprocess.Popen(['sleep', '100'])\nsubprocess.Popen(['sleep', '100'])\nprint('up', flush=True)\ntime.sleep(100)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.read(2)
    session = monitor.start_monitoring(process.pid)
    usage = monitor.get_current_usage(session.session_id)
    assert usage.processes == 3 and usage.memory_bytes > 80 << 20 and usage.cpu_seconds >= 0
    status = monitor.check_limits(session.session_id)
    assert not status.within_limits and set(status.exceeded) == {"memory_mb", "max_processes"}
    assert monitor.terminate_if_exceeded(session.session_id)
    assert process.wait(10) == -9
    assert not monitor.get_current_usage(session.session_id).processes
    metrics = monitor.get_performance_metrics(session.session_id)
    assert metrics.memory_peak_bytes > 80 << 20 and metrics.processes_peak == 3 and metrics.samples > 2
    monitor.stop_monitoring(session.session_id)
    with pytest.raises(nacre.NacreError):
        monitor.get_current_usage(session.session_id)
    with pytest.raises(nacre.NacreError):
        monitor.start_monitoring(1)


def test_the_execution_engine_of_the_seed(manager):
    engine = nacre.ExecutionEngine(manager, nacre.ResourceMonitor({"default_limits": LIMITS}))
    result = engine.execute_code("print(6 * 7)", "python", nacre.ExecutionContext())
    assert result.success and result.output == "42\n" and result.execution_time > 0 and result.resource_usage["memory_peak"].endswith("B")
    assert result.result.limits["memory_bytes"] == 512 << 20 and result.result.limits["max_processes"] == 5
    refused = engine.execute_code("import os", "python", nacre.ExecutionContext())
    assert refused.status == "blocked" and "line 1" in refused.error
    assert engine.execute_code("while True: pass", "python", nacre.ExecutionContext(timeout=0.3)).status == "timeout"
    environment = engine.prepare_environment("python")
    inside = nacre.ExecutionContext(environment=environment)
    assert engine.execute_code("open('kept', 'w').write('x')", "python", inside).success
    assert engine.execute_code("print(open('kept').read())", "python", inside).output == "x\n"
    assert engine.cleanup_environment(environment.env_id) and not engine.cleanup_environment(environment.env_id)
    records = engine.get_execution_history(limit=100)
    assert isinstance(records[0], nacre.ExecutionRecord) and result.execution_id in [one.execution_id for one in records]


def test_the_signatures_are_those_of_the_seed():
    """Names, order of arguments and defaults, as seed 002 prints them."""
    wanted = {
        "SecurityManager": {"__init__": ["config_path"], "validate_python_code": ["code"], "validate_javascript_code": ["code"], "validate_shell_code": ["code"],
                            "check_imports": ["code", "language"], "analyze_security_risk": ["code", "language"]},
        "ResourceMonitor": {"__init__": ["limits_config"], "start_monitoring": ["process_id"], "get_current_usage": ["session_id"], "check_limits": ["session_id"],
                            "terminate_if_exceeded": ["session_id"], "get_performance_metrics": ["session_id"]},
        "ExecutionEngine": {"__init__": ["security_manager", "resource_monitor"], "execute_code": ["code", "language", "context"],
                            "prepare_environment": ["language"], "cleanup_environment": ["env_id"], "get_execution_history": ["limit"]}}
    for name, methods in wanted.items():
        for method, arguments in methods.items():
            has = list(inspect.signature(getattr(getattr(nacre, name), method)).parameters)[1:]
            assert has[:len(arguments)] == arguments, f"{name}.{method}"
    assert inspect.signature(nacre.ExecutionEngine.get_execution_history).parameters["limit"].default == 100


def test_the_package_is_small_and_needs_nothing(tmp_path):
    files = [*(ROOT / "clients/python/src/nacre").glob("*.py")]
    assert sum(path.stat().st_size for path in files) < 60 << 10
    script = "import sys; before = set(sys.modules); import nacre; print([m for m in set(sys.modules) - before if m.split('.')[0] not in sys.stdlib_module_names and m.split('.')[0] != 'nacre'])"
    done = subprocess.run([sys.executable, "-S", "-c", script], env={"PYTHONPATH": str(ROOT / "clients/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_the_readme_runs(embedded, tmp_path):
    """Pasted as it is."""
    text = (ROOT / "clients/python/README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src")},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("42\n success") and "2 data.csv" in done.stdout and "streamed" in done.stdout, done.stdout + done.stderr


def in_child(do):
    """Runs it after a fork; the child ends as a program does, with what it has registered for that. Its exit status."""
    pid = os.fork()
    if pid == 0:
        import atexit
        code = 1
        try:
            code = 0 if do() else 2
        finally:
            atexit._run_exitfuncs()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_leaves_the_parents_children_alone(embedded):
    with embedded.sandbox() as box:
        assert embedded.run("print(1)", "python").output == "1\n"
        ours = {kind: one for kind, (_, one) in nacre.engine._shared.items()}
        assert set(ours) == {"engine", "daemon"} and in_child(lambda: True) == 0
        time.sleep(0.2)
        assert ours["engine"].process.poll() is None and pathlib.Path(ours["daemon"].home).is_dir()
        assert embedded.run("print(2)", "python").output == "2\n" and box.run("echo 3").stdout == "3\n"


def test_a_fork_shares_no_connection(client):
    with client.sandbox() as box:
        assert box.run("true").ok and len(client.http.idle) == 1
        kept = client.http.idle[0]
        assert in_child(lambda: box.run("echo child").stdout == "child\n" and kept not in client.http.idle) == 0
        assert client.http.idle == [kept] and box.run("echo parent").stdout == "parent\n"


def test_an_exception_in_the_callers_own_function_reaches_him(either):
    def fail(stream, data):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        either.run("print(1)", "python", on_output=fail, timeout=10)
    assert either.run("print(2)", "python").output == "2\n"


def test_a_reply_that_is_no_http_is_an_exception_of_ours():
    import socket
    import threading
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def lie():
            for reply in (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
                          b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"):
                connection = listener.accept()[0]
                connection.recv(65536)
                connection.sendall(reply)
                connection.close()

        threading.Thread(target=lie, daemon=True).start()
        with nacre.Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as one:
            for _ in range(3):
                with pytest.raises(nacre.ConnectionLost):
                    one.http.ask("GET", "/v1/version")


@pytest.mark.parametrize("name", ["../sandboxes/{}", "{}/commands", "{}?x=", "{}#x", "%2e%2e/{}", " {}", "{}\r\nX: y"])
def test_an_id_is_no_part_of_an_address(client, name):
    with client.sandbox() as box:
        for call in (client.connect, client.delete_snapshot):
            with pytest.raises(nacre.NacreError) as error:
                call(name.format(box.id))
            assert error.value.status in (400, 404), error.value
        assert box.run("true").ok
