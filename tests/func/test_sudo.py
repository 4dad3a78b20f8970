"""`sudo` in sandboxes whose commands may be root's: what it does as the program of that name does, and what those can reach who ask."""

import os
import stat
import subprocess
import time

import pytest

from conftest import BUILD
from serving import Daemon
from test_sandboxes import Sandbox, pgrep

pytestmark = pytest.mark.usefixtures("as_root", "user_namespaces")

SOCKET = "/dev/nacre/run/sudo"

# What is said at the socket, by a stranger: frames of src/base/sudowire.h.
STRANGER = r'''
import socket, struct, sys, time
def frame(kind, data=b"", client=0): return struct.pack("<BBHI", client, kind, 0, len(data)) + data
def request(words, variables=(), folder=b"/", version=1):
    return frame(0, struct.pack("<BHH", version, len(words), len(variables)) + b"".join(word + b"\0" for word in (folder, *words, *variables)))
def call():
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(20)
    made.connect("/dev/nacre/run/sudo")
    return made
def hear(made):
    """All frames until it closes."""
    data = b""
    try:
        while piece := made.recv(65536): data += piece
    except ConnectionResetError: pass
    found = []
    while len(data) >= 8:
        client, kind, _, size = struct.unpack("<BBHI", data[:8])
        found.append((kind, data[8:8 + size]))
        data = data[8 + size:]
    return found
'''


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    home = tmp_path_factory.mktemp("sudo")
    policies = home / "config" / "policies"
    policies.mkdir(parents=True)
    (policies / "rootless.yaml").write_text("inherits: standard\nsandbox:\n  root: deny\n")
    with Daemon(home, config=home / "config") as made:
        yield made


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon, user="sandbox", writable_root=True)
    yield made
    made.ask("DELETE")


def python(sandbox, code, **options):
    sandbox.write("/workspace/stranger.py", (STRANGER + code).encode())
    return sandbox.run(["python3", "stranger.py"], **options)


def resident(daemon):
    return int(next(line for line in open(f"/proc/{daemon.pid}/status") if line.startswith("VmRSS")).split()[1]) << 10


# ---- what it is for ----


def test_it_is_root_and_ends_as_the_command_does(sandbox):
    done = sandbox.run("id -u; sudo id -u; sudo sh -c 'exit 3'; echo $?; sudo sh -c 'kill -TERM $$'; echo $?")
    assert done["stdout"] == "1000\n0\n3\n143\n", done


def test_it_is_no_file_that_sets_ids_and_cannot_be_changed(sandbox):
    done = sandbox.run("command -v sudo; stat -c '%a %U' /dev/nacre/bin/sudo; sudo sh -c 'id -u; echo >>/dev/nacre/bin/sudo || echo held; rm /dev/nacre/bin/sudo || echo kept; touch /dev/nacre/bin/ls || echo closed' 2>&1")
    lines = done["stdout"].split("\n")
    assert lines[0] == "/dev/nacre/bin/sudo" and lines[1].startswith("755 "), done
    assert "held" in lines and "kept" in lines and "closed" in lines, done
    assert not (BUILD / "nacre-sudo").stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_streams_pass(sandbox):
    done = sandbox.run("printf 'in\\n' | sudo sh -c 'cat; echo wrong >&2'; sudo cat </dev/null; echo over")
    assert (done["stdout"], done["stderr"]) == ("in\nover\n", "wrong\n"), done


def test_streams_that_are_closed(sandbox):
    assert sandbox.run("sudo id -u <&-; sudo sh -c 'cat; id -u' <&- 2>&-; sudo true >&- <&-; echo $?; sudo id -u >&-; echo $?")["stdout"] == "0\n0\n0\n1\n"


def test_large_streams_are_whole_in_both_directions(sandbox):
    done = sandbox.run("head -c 20000000 /dev/urandom >/tmp/big; sha256sum </tmp/big; sudo cat /tmp/big | sha256sum; sudo cat </tmp/big | sha256sum; sudo sha256sum </tmp/big")
    assert done["exit_code"] == 0 and len(set(done["stdout"].split("\n")[:4])) == 1, done


def test_files_of_roots_and_what_is_installed(sandbox):
    done = sandbox.run("sudo sh -c 'echo x >/etc/made; chmod 600 /etc/made'; cat /etc/made; sudo cat /etc/made; stat -c %U /etc/made; touch /usr/x; sudo touch /usr/x && stat -c %U /usr/x")
    assert done["stdout"] == "x\nroot\nroot\n", done


def test_directory_and_variables(sandbox):
    done = sandbox.run("cd /usr/lib; export OWN=mine LD_LIBRARY_PATH=/x; sudo sh -c 'pwd; echo $HOME $USER ${OWN-none} $SUDO_UID $SUDO_USER'; sudo -E sh -c 'echo $OWN $USER ${LD_LIBRARY_PATH-none}'; sudo A=b OWN='c d' sh -c 'echo $A $OWN'")
    assert done["stdout"] == "/usr/lib\n/root root none 1000 sandbox\nmine root none\nb c d\n", done


def test_options(sandbox):
    done = sandbox.run("sudo -n -E -H -u root -- id -u; sudo -nEHu root id -u; sudo --user=root --preserve-env id -u; sudo -k id -u; sudo -k && sudo -v && sudo -n true && echo well; sudo -l")
    assert done["stdout"].startswith("0\n0\n0\n0\nwell\nEvery command"), done
    for words, said in (("-u nobody id", "nobody"), ("-i", "-i"), ("--login", "--login"), ("-S id", "-S"), ("", "command is missing"), ("nosuchprogram", "command not found")):
        done = sandbox.run(f"sudo {words}")
        assert done["exit_code"] == 1 and done["stderr"].startswith("sudo: ") and said in done["stderr"], done


def test_root_needs_to_ask_nobody(sandbox):
    done = sandbox.run("sudo id -u; sudo A=b sh -c 'echo $A; sudo id -u; exit 4'; echo $?; sudo nosuch; echo $?", user="root")
    assert done["stdout"] == "0\nb\n0\n4\n1\n" and "command not found" in done["stderr"], done
    assert sandbox.run("sudo sudo sudo id -u")["stdout"] == "0\n"


def test_executions_as_root_have_it_too(daemon):
    reply = daemon.execute("sudo id -u", "shell", user="root").json()
    assert reply["output"] == "0\n", reply


def test_it_is_a_command_like_any_other(sandbox):
    sandbox.run("sudo sh -c 'echo told'")
    found = [command for command in sandbox.ask("GET", "/commands").json()["commands"] if command["command"] == ["sh", "-c", "echo told"]]
    assert len(found) == 1 and found[0]["state"] == "ended" and found[0]["usage"]["output_bytes"] == 5
    assert sandbox.command(found[0]["id"])["stdout"] == "told\n"


def test_what_listens_is_no_command_and_no_activity(daemon):
    made = Sandbox(daemon, user="sandbox", idle_timeout=2)
    assert made.run("sudo id -u")["stdout"] == "0\n"
    assert made.ask("GET").json()["running"] == 0 and len(made.ask("GET", "/commands").json()["commands"]) == 2
    until = time.monotonic() + 10
    while made.ask("GET").status == 200 and time.monotonic() < until:
        time.sleep(4)  # to ask is no activity either
    assert made.ask("GET").status == 404
    # and what it waited with has gone along
    assert not pgrep("nacre-files sudo sandbox", daemon.process.pid)


def test_many_one_after_another_and_sixteen_at_once(sandbox):
    done = sandbox.run("i=0; while [ $i -lt 80 ]; do sudo true || echo failed; i=$((i+1)); done; echo over")
    assert done["stdout"] == "over\n", done
    done = sandbox.run("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sudo sh -c 'sleep 0.2; id -u' & done; wait")
    assert done["stdout"] == "0\n" * 12, done


# ---- where it is not ----


def test_a_sandbox_without_users_has_none_of_it(daemon):
    made = Sandbox(daemon)
    try:
        assert made.run("ls -d /dev/nacre || echo nothing; echo $PATH")["stdout"].startswith("nothing\n/usr/local/sbin:")
    finally:
        made.ask("DELETE")
    assert daemon.post("/v1/sandboxes", {"policy": "rootless", "user": "sandbox"}).status == 403


def test_a_sandbox_with_few_processes_keeps_them(daemon):
    made = Sandbox(daemon, user="sandbox", limits={"max_processes": 2})
    try:
        time.sleep(1.5)
        assert made.run("id -u")["stdout"] == "1000\n" and not pgrep("nacre-files sudo sandbox", daemon.process.pid)
    finally:
        made.ask("DELETE")


def test_other_users_of_the_sandbox_may_not(sandbox):
    assert sandbox.run("sudo id -u", user="root")["stdout"] == "0\n"
    done = sandbox.run("sudo id -u", user="nobody")
    assert (done["exit_code"], done["stdout"]) == (1, "") and "may not" in done["stderr"], done


def test_a_sandboxs_own_user_may(daemon):
    made = Sandbox(daemon, user="33")
    try:
        assert made.run("id -u; sudo id -u")["stdout"] == "33\n0\n"
    finally:
        made.ask("DELETE")


def test_the_policy_reads_what_is_asked_for(daemon):
    made = Sandbox(daemon, user="sandbox")
    direct = made.ask("POST", "/commands", {"command": ["rm", "-rf", "/"], "user": "root"})
    assert direct.status == 403, direct.body
    made.write("/workspace/bad.sh", b"sudo rm -rf /\n")
    done = made.run(["sh", "bad.sh"])
    assert done["exit_code"] == 1 and "policy" in done["stderr"], done
    assert made.run("ls /usr/bin/env")["exit_code"] == 0
    made.ask("DELETE")


# ---- attacks ----


def test_nobody_takes_its_place(sandbox):
    """By the box's own user: before it is there, while it is there, and what is above it."""
    done = sandbox.run(f"rm -f {SOCKET} && echo A; mv {SOCKET} {SOCKET}2 && echo B; mv /dev/nacre/run /dev/nacre/walk && echo C; mv /dev/nacre /dev/other && echo D; touch /dev/nacre/run/x && echo E;"
                       f"mkdir /dev/nacre/run/y && echo F; ln -s x /dev/nacre/run/z && echo G; chmod 777 /dev/nacre/run && echo H; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('{SOCKET}')\" && echo I;"
                       f"mount -t tmpfs x /dev/nacre/run && echo J; sudo id -u")
    assert done["stdout"] == "0\n", done


def test_the_one_that_listens_is_out_of_reach(sandbox):
    done = sandbox.run("grep -ls '[n]acre-files' /proc/[0-9]*/cmdline; i=2; while [ $i -lt 60 ]; do [ $i = $$ ] || kill -9 $i 2>/dev/null; i=$((i+1)); done; sudo id -u")
    assert done["stdout"] == "0\n", done


def test_frames_that_are_none(sandbox):
    done = python(sandbox, r'''
for data in (b"\xff" * 200, frame(0, b""), frame(0, b"\1"), frame(0, b"\2" + b"\0" * 40), request([b"\xff\xfe"]), request([b"id"], [b"novalue"]), request([b"id"], folder=b"relative"),
             request([]), request([b"id"])[:-1] + b"x", struct.pack("<BBHI", 0, 0, 0, 1 << 31), struct.pack("<BBHI", 99, 0, 0, 0), struct.pack("<BBHI", 0, 0, 7, 0), frame(1, b"input first"),
             frame(4), frame(5, b"fake output"), frame(8, b"\0"), request([b"sleep", b"1"]) * 2, request([b"sleep", b"9"]) + frame(3, b"\xff\xff\xff\xff"),
             request([b"sleep", b"9"]) + frame(1, b"x" * 40000), request([b"sleep", b"9"]) + frame(2) + frame(1, b"x"), request([b"sleep", b"9"]) + frame(2, b"x")):
    made = call()
    made.sendall(data)
    said = hear(made)
    assert all(kind in (7, 9) for kind, _ in said), (data[:40], said)
    print(said[-1][1].decode() if said else "closed")
''')
    assert done["exit_code"] == 0, done
    assert "UTF-8" in done["stdout"] and "older" in done["stdout"], done
    assert sandbox.run("sudo id -u")["stdout"] == "0\n"


def test_half_a_frame_costs_five_seconds_of_a_place(sandbox):
    done = python(sandbox, r'''
held = [call() for _ in range(16)]
for made in held: made.sendall(b"\0\0\0")
time.sleep(0.3)
print(hear(call()))
began = time.monotonic()
for made in held: assert hear(made) == []
assert time.monotonic() - began < 15
print("free")
''')
    assert "16 commands" in done["stdout"] and "free" in done["stdout"], done
    assert sandbox.run("sudo id -u")["stdout"] == "0\n"


def test_a_flood_of_connections(sandbox):
    done = python(sandbox, r'''
import os
for child in range(8):
    if os.fork() == 0:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            try:
                made = socket.socket(socket.AF_UNIX); made.settimeout(1); made.connect("/dev/nacre/run/sudo"); made.send(request([b"true"])[:child * 4 + 1])
            except OSError: pass
            made.close()
        os._exit(0)
for child in range(8): os.wait()
''')
    assert done["exit_code"] == 0, done
    time.sleep(1.2)
    assert sandbox.run("sudo id -u")["stdout"] == "0\n"


def test_what_is_too_long_is_refused(sandbox):
    for words, said in (("true $(head -c 60000 /dev/zero | tr '\\0' x)", ""), ("true $(head -c 90000 /dev/zero | tr '\\0' x)", "64 KiB"), ("env $(seq 3000)", "")):
        done = sandbox.run(f"sudo {words}")
        assert done["exit_code"] == 1 and done["stderr"].startswith("sudo: ") and said in done["stderr"], (words, done)
    done = sandbox.run("for i in $(seq 400); do export V$i=1; done; sudo -E true")
    assert done["exit_code"] == 1 and done["stderr"].startswith("sudo: "), done


def test_who_does_not_read_costs_itself_alone(daemon, sandbox):
    """Sixteen commands print without end and nobody reads: memory of the daemon stays, and another sandbox's sudo works."""
    sandbox.run("sudo true")
    before = resident(daemon)
    slow = python(sandbox, r'''
held = [call() for _ in range(15)]
for made in held: made.sendall(request([b"head", b"-c", b"40000000", b"/dev/zero"]))
print("held", flush=True)
time.sleep(6)
''', background=True)
    time.sleep(3)
    assert resident(daemon) - before < 48 << 20
    assert sandbox.run("sudo id -u")["stdout"] == "0\n"
    other = Sandbox(daemon, user="sandbox")
    assert other.run("sudo id -u")["stdout"] == "0\n"
    other.ask("DELETE")
    sandbox.wait(slow["id"], 20)
    until = time.monotonic() + 10  # with their clients the commands end
    while sandbox.ask("GET").json()["running"] > 0 and time.monotonic() < until:
        time.sleep(0.1)
    assert sandbox.ask("GET").json()["running"] == 0


def test_a_client_that_is_killed_ends_its_command(sandbox):
    done = sandbox.run("sudo sleep 1000 & p=$!; sleep 0.7; kill -9 $p; wait $p; echo $?")
    assert done["stdout"].startswith("137\n"), done
    until = time.monotonic() + 5
    while sandbox.ask("GET").json()["running"] > 0 and time.monotonic() < until:
        time.sleep(0.05)
    found = next(command for command in sandbox.ask("GET", "/commands").json()["commands"] if command["command"] == ["sleep", "1000"])
    assert found["state"] == "ended" and sandbox.ask("GET").json()["running"] == 0


def test_its_own_loading_cannot_be_changed(sandbox):
    if "libasan" in subprocess.run(["ldd", BUILD / "nacre-sudo"], capture_output=True, text=True).stdout:
        pytest.skip("with AddressSanitizer it is not static")
    done = sandbox.run("export LD_PRELOAD=/tmp/no.so LD_AUDIT=/tmp/no.so LD_DEBUG=all; sudo -E /dev/nacre/bin/sudo id -u 2>/tmp/said; unset LD_PRELOAD LD_AUDIT LD_DEBUG; grep -c 'no.so' /tmp/said")
    assert done["stdout"] == "0\n0\n", done


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    home = tmp_path_factory.mktemp("tenants")
    (home / "config").mkdir()
    (home / "config" / "serve.yaml").write_text("tenants:\n  lazy: {cpu_seconds_per_hour: 1}\n")
    with Daemon(home, config=home / "config") as made:
        made.keys = {name: made.key("--tenant", name) for name in ("acme", "rival", "lazy")}
        yield made


def test_two_tenants(shared):
    """Each asks at its own socket, and what was asked for is its own."""
    one, two = (Sandbox(shared, user="sandbox", key=shared.keys[name]) for name in ("acme", "rival"))
    mark = ["sh", "-c", "echo one >/tmp/mark"]
    one.run("sudo sh -c 'echo one >/tmp/mark'")
    assert two.run("sudo sh -c 'cat /tmp/mark || echo none'")["stdout"] == "none\n"
    commands = {box: [found["command"] for found in box.ask("GET", "/commands").json()["commands"]] for box in (one, two)}
    assert mark in commands[one] and mark not in commands[two]
    identity = next(found["id"] for found in one.ask("GET", "/commands").json()["commands"] if found["command"] == mark)
    assert shared.get(one.path(f"/commands/{identity}"), key=shared.keys["rival"]).status == 404
    # one cannot take the places of the other
    python(one, "held = [call() for _ in range(16)]\nfor made in held: made.sendall(request([b'sleep', b'8']))\nprint('held', flush=True)\ntime.sleep(5)\n", background=True)
    time.sleep(1)
    assert one.run("sudo id -u")["exit_code"] == 1 and two.run("sudo id -u")["stdout"] == "0\n"
    for box in (one, two):
        box.ask("DELETE")


def test_quotas_hold(shared):
    box = Sandbox(shared, user="sandbox", key=shared.keys["lazy"])
    done = box.run("sudo python3 -c 'import time\nwhile time.process_time() < 1.3: pass'; echo $?; sudo id -u; echo $?")
    assert done["stdout"] == "0\n1\n" and "sudo: " in done["stderr"] and "cpu_seconds_per_hour" in done["stderr"], done
    box.ask("DELETE")


def test_pause_and_resume(sandbox):
    sandbox.run("sudo true")
    assert sandbox.ask("POST", "/pause").status in (200, 202, 204)
    assert sandbox.ask("POST", "/resume").status in (200, 202, 204)
    assert sandbox.run("sudo id -u")["stdout"] == "0\n"


def test_root_may_end_what_listens_and_it_comes_back(sandbox):
    """Only root of the sandbox can take the socket away, which hurts nobody else; nacre-files ends, and is begun again."""
    sandbox.run("sudo true")
    for pid in pgrep("nacre-files sudo sandbox", sandbox.daemon.process.pid):
        os.kill(int(pid), 9)
    done = sandbox.run("sleep 0.2; sudo id -u")
    if done["exit_code"]:
        time.sleep(3)
        done = sandbox.run("sudo id -u")
    assert done["stdout"] == "0\n", done


def test_it_works_after_the_daemon_has_died(daemon):
    made = Sandbox(daemon, user="sandbox", writable_root=True)
    running = made.run("sudo sh -c 'sleep 3; echo went on >/etc/went'; echo $?", background=True)
    time.sleep(1)
    daemon.die()
    done = made.wait(running["id"], 20)
    assert done["stdout"] == "1\n" and "connection to the daemon is lost" in done["stderr"], done
    assert made.run("sudo id -u")["stdout"] == "0\n"
    time.sleep(3)
    assert made.run("sudo cat /etc/went")["stdout"] == "went on\n"
    made.ask("DELETE")
    assert not pgrep("nacre-files sudo sandbox", daemon.process.pid)
