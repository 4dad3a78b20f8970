"""nacre --server URL run, exec, ps, logs, kill: the command line with a daemon."""

import json
import os
import subprocess
import threading
import time

import pytest

from conftest import NACRE
from serving import Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("client")) as daemon:
        daemon.secret = daemon.key("--tenant", "acme")
        yield daemon


def run(daemon, *args, key=True, url=None, **options):
    env = {"PATH": os.environ["PATH"], "HOME": daemon.home, **({"NACRE_KEY": daemon.secret} if key else {})}
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None:
        del options["stdin"]
    return subprocess.run([NACRE, "--server", url or f"http://127.0.0.1:{daemon.port}", "run", *args], env=env, capture_output=True,
                          text=True, timeout=60, **options)


def test_output_and_status(daemon, tmp_path):
    done = run(daemon, "--lang", "shell", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    program = tmp_path / "hello.py"
    program.write_text("import sys; print(sys.argv[1:], open('data.txt').read())")
    (tmp_path / "data.txt").write_text("mine")
    done = run(daemon, "--file", str(tmp_path / "data.txt"), str(program), "a", "b")
    assert (done.returncode, done.stdout) == (0, "['a', 'b'] mine\n")


def test_json_and_limits(daemon):
    reply = json.loads(run(daemon, "--json", "--timeout", "1.5", "--memory", "100MB", "--lang", "python", "-c", "import time; time.sleep(9)").stdout)
    assert reply["status"] == "timeout"
    assert reply["limits"]["execution_time_seconds"] == 1.5 and reply["limits"]["memory_bytes"] == 100 << 20
    row = daemon.get(f"/v1/history/{reply['receipt']['id']}", key=daemon.secret).json()
    assert row["tenant"] == "acme"


def test_input(daemon):
    done = run(daemon, "--lang", "python", "-c", "print(sum(int(x) for x in open(0)))", input="1\n2\n39\n")
    assert done.stdout == "42\n"


def test_bytes_that_are_no_text(daemon):
    env = {"PATH": os.environ["PATH"], "HOME": daemon.home, "NACRE_KEY": daemon.secret}
    done = subprocess.run([NACRE, "--server", f"http://localhost:{daemon.port}/", "run", "--lang", "python", "-c",
                           "import sys; sys.stdout.buffer.write(bytes(range(256)))"], env=env, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stdout == bytes(range(256))


def test_refusals_are_told(daemon):
    done = run(daemon, "-c", "1", key=False)
    assert done.returncode == 125 and "401" in done.stderr and "nacre key create" in done.stderr
    for url, said in (("ftp://x", "http://127.0.0.1:7070"), ("http://127.0.0.1:1", "Connection refused"), ("http://127.0.0.1:99999", "expected")):
        done = run(daemon, "-c", "1", url=url)
        assert done.returncode == 125 and said in done.stderr
    done = subprocess.run([NACRE, "--server", "http://x", "doctor"], capture_output=True, text=True)
    assert done.returncode == 125 and "here alone" in done.stderr


def test_a_lost_connection_is_made_again(daemon):
    """Through a wire that is cut once, in the middle of the output."""
    import socket
    wire = socket.create_server(("127.0.0.1", 0))
    cut = []

    def pump(source, target, cuts):
        try:
            while data := source.recv(4096):
                target.sendall(data)
                if cuts and b'"stdout"' in data and not cut:
                    cut.append(True)
                    break
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        while True:
            try:
                client, _ = wire.accept()
            except OSError:
                return
            there = daemon.connect()
            threading.Thread(target=pump, args=(client, there, False), daemon=True).start()
            threading.Thread(target=pump, args=(there, client, True), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    code = "import time\nfor i in range(5):\n    print(i, flush=True)\n    time.sleep(0.3)"
    done = run(daemon, "--lang", "python", "-c", code, url=f"http://127.0.0.1:{wire.getsockname()[1]}")
    wire.close()
    assert cut and (done.returncode, done.stdout) == (0, "0\n1\n2\n3\n4\n")


# ---- sandboxes ----

@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("there")) as daemon:
        def run(*words, **options):
            options = {"stdin": subprocess.DEVNULL, **options} if "input" not in options else options
            return subprocess.run([NACRE, "--server", f"http://127.0.0.1:{daemon.port}", *words], env=daemon.env, capture_output=True, text=True,
                                  timeout=60, **options)
        run.daemon = daemon
        yield run


def test_exec_there(there):
    done = there("exec", "--env", "A=b", "--memory", "64MB", "--", "sh", "-c", "cat; echo $A; echo err >&2; exit 5", input="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (5, "in\nb\n", "err\n")
    assert there("exec", "--timeout", "0.3", "--", "sleep", "60").returncode == 124
    assert there("exec", "--", "sh", "-c", "kill -9 $$").returncode == 137
    missing = there("exec", "--", "/no/such/program")
    assert missing.returncode == 127 and "No such file" in missing.stderr
    told = json.loads(there("exec", "--json", "--", "echo", "é").stdout)
    assert (told["stdout"], told["status"]) == ("é\n", "success")
    assert there.daemon.get("/v1/sandboxes").json()["sandboxes"] == []  # each ended with its command
    limit = there("exec", "--memory", "32MB", "--", "sh", "-c", "cat /dev/zero | tail -c 100000000 | wc -c")
    assert limit.returncode != 0 or "100000000" not in limit.stdout


def test_exec_in_a_sandbox_that_is_there(there):
    box = there.daemon.post("/v1/sandboxes", {}).json()["id"]
    assert there("exec", "--sandbox", box, "--", "sh", "-c", "echo kept >f").returncode == 0
    assert there("exec", "--sandbox", box, "--", "cat", "f").stdout == "kept\n"
    for words, said in ((["--sandbox", box, "--memory", "64"], "there already"), (["--tty"], "here alone"), (["--bind", "/tmp"], "here alone"),
                        (["--sandbox", "sb_none"], "no such sandbox"), (["--sandbox", "../keys"], "expected an id"), (["--env", "x"], "expected K=V")):
        refused = there("exec", *words, "--", "true")
        assert refused.returncode == 125 and said in refused.stderr, refused
    alone = subprocess.run([NACRE, "exec", "--sandbox", box, "--", "true"], env=there.daemon.env, capture_output=True, text=True)
    assert alone.returncode == 125 and "--server" in alone.stderr
    assert there("kill", box).returncode == 0


def test_ps_logs_kill(there):
    box = there.daemon.post("/v1/sandboxes", {}).json()["id"]
    path = f"/v1/sandboxes/{box}/commands"
    command = there.daemon.post(path, {"command": "echo out; echo err >&2; sleep 300", "background": True}).json()["id"]
    time.sleep(0.3)
    listed = there("ps").stdout.splitlines()
    assert listed[0].startswith("SANDBOX") and listed[1].split()[:3] == [box, "running", "1"] and len(listed) == 2
    assert json.loads(there("ps", "--json").stdout)["sandboxes"][0]["id"] == box
    assert there("ps", box).stdout.splitlines()[1].split()[:3] == [command, "running", "-"]
    shown = there("logs", box, command)
    assert (shown.stdout, shown.stderr) == ("out\n", "err\n")
    follow = subprocess.Popen([NACRE, "--server", f"http://127.0.0.1:{there.daemon.port}", "logs", "-f", box, command], env=there.daemon.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)
    there.daemon.die()  # who follows goes on
    assert there("kill", "--signal", "TERM", box, command).returncode == 0
    assert follow.communicate(timeout=30) == ("out\n", "err\n") and follow.returncode == 0
    assert there("ps", box).stdout.splitlines()[1].split()[:3] == [command, "ended", "killed"]
    other = there.daemon.post(path, {"command": "sleep 300", "background": True}).json()["id"]
    assert there("kill", box, other).returncode == 0
    assert there("kill", box).returncode == 0 and len(there("ps").stdout.splitlines()) == 1
    for words, said in ((["kill", box], "no such sandbox"), (["kill"], "Name a sandbox"), (["logs", box], "Name a sandbox and a command"),
                        (["ps", "a/b"], "is no id"), (["kill", "--signal", "TERM", box], "name a command")):
        refused = there(*words)
        assert refused.returncode == 125 and said in refused.stderr, refused
    nobody = subprocess.run([NACRE, "--server", "http://127.0.0.1:1", "ps"], env=there.daemon.env, capture_output=True, text=True)
    assert nobody.returncode == 125 and "refused" in nobody.stderr.lower()
