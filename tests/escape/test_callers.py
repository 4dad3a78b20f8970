"""What the caller does to Nacre, or what goes wrong around it: it must fail closed, and lose nothing."""

import json
import os
import socket
import subprocess
import sys

import pytest
from harness import MODES, Host

# pauses a little after each of the first reads, until the end of the program has been noticed, and then for long
SLOW_READER = """
import os, time
size = 0
for seconds in (0.2, 0.2, 0.2, 0.2, 2.5):
    size += len(os.read(0, 65536)); time.sleep(seconds)
while part := os.read(0, 65536): size += len(part)
print(size)
"""


def run(words, **options):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=20, cwd="/", **options)


@pytest.mark.parametrize("mode", MODES)
def test_descriptors_of_the_spawner_cannot_be_executed(runner, mode):
    """CVE-2024-21626: a command below /proc/self/fd while the spawner's own descriptors are still open."""
    started = [number for number in range(3, 24) if run(runner.nacre(mode, "--", f"/proc/self/fd/{number}")).returncode not in (126, 127)]
    assert not started, f"ESCAPED: executed descriptors {started} of the spawner"


@pytest.mark.parametrize("maps", [["--map-root-user"], ["--map-user=5", "--map-group=5"], ["--map-user=5", "--map-group=5", "unshare", "--user", "--map-root-user"]], ids=" ".join)
def test_host_root_is_never_mapped_into_a_box(runner, maps):
    """Root in a user namespace of its own, under whatever number: the box would run as the host's root."""
    script = "import os, sys; sys.stdout.write(open('/proc/self/uid_map').read())"
    done = run(["unshare", "--user", *maps, runner.binaries / "nacre", "exec", "--", "python3", "-c", script])
    assert done.returncode == 125 and not done.stdout, f"ESCAPED: a box runs as the host's root: {done.stdout}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", ["3", "0", "999", "x", ""])
def test_pretended_spawner_means_nothing(runner, mode, value):
    """NACRE_SPAWNER in the caller's environment, with a socket of the caller's as that descriptor: nacre exec makes its own
    spawner all the same, says nothing to the pretended one, and the box is as strong as any."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = "grep -E '^(Seccomp|NoNewPrivs|CapBnd)' /proc/self/status; ls -l /proc/self/fd | grep -c socket; env | grep -c SPAWNER"
    done = run([*MODES[mode], "env", f"NACRE_SPAWNER={value}", runner.binaries / "nacre", "exec", "--", "sh", "-c", script],
               preexec_fn=lambda: os.dup2(theirs.fileno(), 3), pass_fds=(3,))
    theirs.close()
    ours.setblocking(False)
    try:
        heard = ours.recv(4096)
    except BlockingIOError:
        heard = b""
    ours.close()
    lines = done.stdout.split()
    assert heard == b"", f"ESCAPED: nacre spoke to a pretended spawner: {heard}"
    assert lines[lines.index("NoNewPrivs:") + 1] == "1" and lines[lines.index("Seccomp:") + 1] == "2", done
    assert int(lines[lines.index("CapBnd:") + 1], 16) == 0 and lines[-2:] == ["0", "0"], done


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_of_the_caller(runner, mode, closed):
    """A caller without 0, 1 or 2: no descriptor of ours may end up there, and the exit status is the program's."""
    script = "for n in 0 1 2; do case $(readlink /proc/$$/fd/$n) in pipe:*) ;; *) exit 9;; esac; done; exit 7"
    done = run(["sh", "-c", f'exec "$@" {closed}', "sh", *runner.nacre(mode, "--", "sh", "-c", script)])
    assert done.returncode == 7, f"exit status {done.returncode}: {done.stderr}"


@pytest.mark.parametrize("mode", MODES)
def test_slow_reader_loses_nothing(runner, mode):
    """The program ends at once with a megabyte in its pipe; who reads our output pauses. All of it must arrive."""
    program = "import fcntl, os; fcntl.fcntl(1, 1031, 1 << 20); os.write(1, b'x' * (1 << 20))"
    box = subprocess.Popen(runner.nacre(mode, "--", "python3", "-c", program), stdout=subprocess.PIPE, cwd="/")
    reader = subprocess.run([sys.executable, "-c", SLOW_READER], stdin=box.stdout, capture_output=True, text=True, timeout=20)
    box.stdout.close()
    code = box.wait(20)
    assert reader.stdout.strip() == str(1 << 20) or code != 0, f"{reader.stdout.strip()} of {1 << 20} bytes, and exit status {code}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["LD_PRELOAD=/tmp/x.so", "LD_LIBRARY_PATH=/tmp", "PATH=/tmp", "NACRE_SPAWNER=3", "GCONV_PATH=/tmp"])
def test_variables_for_the_box_reach_nobody_else(runner, mode, name):
    """What a client sets with --env is for the program in the box, not for the spawner, the worker or the loader of these."""
    done = run(runner.nacre(mode, "--json", "--env", name, "--", "/usr/bin/env"))
    answer = json.loads(done.stdout)
    assert answer["status"] == "success" and name in answer["stdout"]
    assert "x.so" not in done.stderr, "the engine itself loaded with the client's variable"


@pytest.mark.parametrize("mode", MODES)
def test_secrets_of_the_caller_stay_outside(runner, mode):
    """The environment that the box begins with has the six variables, what --env says, and the limits for Java where there is one and for Go."""
    with Host() as host:
        result = runner.run(mode, host, runner.nacre(mode, "--env", "A=b", "--", "/usr/bin/env"))
    names = {line.split("=")[0] for line in result.output.splitlines()}
    java = {"JAVA_TOOL_OPTIONS"} if os.access("/usr/bin/java", os.X_OK) else set()
    go = {"GOMAXPROCS"} if len(os.sched_getaffinity(0)) > 1 else set()
    assert names == {"HOME", "LANG", "PATH", "SHELL", "TMPDIR", "USER", "A"} | java | go


@pytest.mark.skipif(not os.path.exists("/usr/bin/script"), reason="script is not installed")
@pytest.mark.parametrize("mode", MODES)
def test_no_terminal_in_the_box(runner, mode):
    """Nacre started in a terminal: the box has none, neither as 0 to 2 nor as its controlling one."""
    command = " ".join(runner.nacre(mode, "--", "sh", "-c", "'tty; (: </dev/tty) && echo has one'"))
    done = run(["script", "-qec", command, "/dev/null"])
    assert "not a tty" in done.stdout and "has one" not in done.stdout
