"""Runs attacks: in boxes of three kinds of callers, and outside of boxes as a control; watches the host meanwhile.

Each run is wrapped into a pid namespace of its own, so that an attack that gets out harms nobody. In there a victim
of the same user waits beside nacre; afterwards the wrapper tells whether it lives, and which processes are left.
"""

import ast
import ctypes
import dataclasses
import importlib.util
import json
import os
import pathlib
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from attacks import ATTACKS, inside, program  # noqa: E402

spec = importlib.util.spec_from_file_location("nacre_func_conftest", HERE.parent / "func" / "conftest.py")
func = importlib.util.module_from_spec(spec)
spec.loader.exec_module(func)

USER = str(func.NOBODY)
AS_USER = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
MODES = {"root": [], "user": AS_USER, "userns": [*AS_USER, "unshare", "-Ur"], "rootbox": []}
# by root, as root of the box, with a root that it may write to
ROOT_OF_BOX = "rootbox"
BY_ROOT = ("root", ROOT_OF_BOX)
# "root-process" and so on: the same callers, with --tier process
PROCESS = "-process"
PROGRAMS = ("nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-init", "nacre-files", "nacre-sudo", *(path.name for path in func.BUILD.glob("nacre-exec")))
OUTER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "prlimit", "--nproc=4096"]

# $1: a secret, $2: the victim's user; then the command. Process 1 of its namespace; it reports on descriptor 9.
WRAPPER = """
secret=$1 user=$2; shift 2
setpriv --reuid "$user" --regid "$user" --clear-groups sh -c 'kill -STOP $$' "$secret" 9>&- &
victim=$!
while read -r _ _ state _ <"/proc/$victim/stat" && [ "$state" != T ]; do :; done
"$@" 9>&-
code=$?
state=Z; [ -e /proc/$victim ] && read -r _ _ state _ <"/proc/$victim/stat"
[ "$state" = Z ] && echo "dead $code" >&9 || echo "alive $code" >&9
for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" = 1 ] || [ "$pid" = "$victim" ] && continue
    { read -r _ name state _ <"$process/stat"; } 2>/dev/null || continue
    [ "$state" = Z ] || echo "$name" >&9
done
"""


@dataclasses.dataclass
class Result:
    hung: bool
    code: int = None  # of the command, None if it hung
    output: str = ""
    error: str = ""
    victim: str = "alive"
    left: tuple = ()
    hits: tuple = ()  # what connected to the host

    def verdicts(self, text=None):
        """The verdict lines, by the attack's name."""
        lines = [line.split(" ", 2) for line in (text or self.output).splitlines() if line.startswith("verdict ")]
        return {name: ast.literal_eval(quoted) for _, name, quoted in lines}

    def answer(self):
        """The JSON answer of nacre exec --json."""
        return json.loads(self.output)


class Host:
    """What the host has that a box must not reach: secrets, services, shared memory. Notes who connects."""

    def __init__(self):
        self.secret = f"nacre-canary-{uuid.uuid4().hex}"
        self.hits = []
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="escape-"))
        self.dir.chmod(0o755)
        self.key_name = f"nacre-key-{uuid.uuid4().hex}"
        self.shm_key = int.from_bytes(os.urandom(3), "big") + 1
        self.shm_id = inside.libc.shmget(self.shm_key, 4096, 0o1666)
        self.files = [self.dir / "canary", pathlib.Path(f"/var/tmp/{self.secret[:20]}"), pathlib.Path(f"/dev/shm/{self.secret[:20]}")]
        # what root alone may read of what boxes are shown: a file, and one in a directory
        self.root_dir = pathlib.Path(f"/usr/local/lib/{self.secret[:20]}")
        self.root_dir.mkdir(mode=0o755)
        (self.root_dir / "closed").mkdir(mode=0o700)
        self.root_files = [self.root_dir / "key", self.root_dir / "closed" / "key"]
        for file in self.root_files:
            file.touch(mode=0o600)
        (self.root_dir / "closed" / "key").chmod(0o644)
        for file in [*self.files, *self.root_files]:
            file.write_text(self.secret)
        self.selector = selectors.DefaultSelector()
        self.stop_reader, self.stop_writer = os.pipe()
        self.selector.register(self.stop_reader, selectors.EVENT_READ)
        self.sockets = {}
        self._listen("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._listen("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        self._listen("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._listen("abstract", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.key_name)
        self._listen("path", socket.AF_UNIX, socket.SOCK_STREAM, str(self.dir / "socket"))
        (self.dir / "socket").chmod(0o777)
        self._listen("vsock", socket.AF_VSOCK, socket.SOCK_STREAM, (0xFFFFFFFF, 20000 + self.shm_key % 40000))
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _listen(self, name, family, kind, address):
        try:
            server = socket.socket(family, kind)
            server.bind(address)
            if kind == socket.SOCK_STREAM:
                server.listen()
        except OSError:
            return  # no IPv6 or no vsock on this machine
        self.sockets[name] = server
        self.selector.register(server, selectors.EVENT_READ, name)

    def _watch(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                if key.data == "udp":
                    key.fileobj.recv(64)
                else:
                    key.fileobj.accept()[0].close()
                self.hits.append(key.data)

    def port(self, name):
        return self.sockets[name].getsockname()[1] if name in self.sockets else 0

    def context(self):
        listing = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        addresses = {word for word in listing if ":" not in word}
        return {
            "canaries": [str(file) for file in self.files], "root_files": [str(file) for file in self.root_files], "tcp_port": self.port("tcp"), "tcp6_port": self.port("tcp6"),
            "udp_port": self.port("udp"), "vsock_port": self.port("vsock"), "abstract": self.key_name,
            "path_socket": str(self.dir / "socket"), "addresses": sorted(addresses), "shm_key": self.shm_key,
            "shm_file": str(self.files[2]), "key_name": self.key_name, "host_name": socket.gethostname(),
            "host_paths": [str(self.dir), str(func.ROOT)],
            "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        }

    def leave_traps(self):
        """In the child that becomes nacre: a key in its session, and a secret file that stays open as descriptor 7."""
        inside.libc.syscall(ctypes.c_long(inside.NUMBERS["keyctl"][inside.MACHINE == "aarch64"]), 1, None)
        inside.libc.syscall(ctypes.c_long(inside.NUMBERS["add_key"][inside.MACHINE == "aarch64"]), b"user", self.key_name.encode(), self.secret.encode(), len(self.secret), -3)
        os.dup2(os.open(self.files[0], os.O_RDONLY), 7, inheritable=True)

    def close(self):
        os.write(self.stop_writer, b"x")
        self.thread.join()
        for server in self.sockets.values():
            server.close()
        inside.libc.shmctl(self.shm_id, 0, None)
        for file in self.files:
            file.unlink(missing_ok=True)
        shutil.rmtree(self.dir)
        shutil.rmtree(self.root_dir)
        os.close(self.stop_reader)
        os.close(self.stop_writer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Runner:
    """Starts commands behind the wrapper. binaries: a directory with the three programs that everybody may execute."""

    def __init__(self, binaries):
        self.binaries = binaries

    def nacre(self, mode, *words):
        tier = ["--tier", "process"] if mode.endswith(PROCESS) else []
        user = ["--user", "root", "--writable-root"] if mode == ROOT_OF_BOX else []
        return [*MODES[mode.removesuffix(PROCESS)], str(self.binaries / "nacre"), "exec", *tier, *user, *words]

    def start(self, mode, host, command, **pipes):
        reader, writer = os.pipe()
        user = "0" if mode.removesuffix(PROCESS) in BY_ROOT else USER

        def prepare():
            host.leave_traps()
            os.dup2(writer, 9, inheritable=True)

        environment = {"PATH": os.environ["PATH"], "HOME": "/", "CALLER_SECRET": host.secret}
        words = [*OUTER, "sh", "-c", WRAPPER, "sh", host.secret, user, *command]
        process = subprocess.Popen(words, preexec_fn=prepare, close_fds=False, env=environment, cwd="/", start_new_session=True, **pipes)
        os.close(writer)
        return process, reader

    def finish(self, process, report, host, feed, within):
        try:
            output, error = process.communicate(feed, timeout=within)
        except subprocess.TimeoutExpired:
            process.kill()  # takes the namespace with it
            output, error = process.communicate()
            os.close(report)
            return Result(True, None, output.decode(errors="replace"), error.decode(errors="replace"), hits=tuple(host.hits))
        lines = read_all(report).decode().splitlines() or ["dead 255"]
        victim, code = lines[0].split()
        return Result(False, int(code), output.decode(errors="replace"), error.decode(errors="replace"), victim, tuple(lines[1:]), tuple(host.hits))

    def run(self, mode, host, command, feed=b"", within=20):
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process, report = self.start(mode, host, command, **pipes)
        return self.finish(process, report, host, feed, within)

    def batch(self, mode, names):
        """Many attacks in one box, each in a process of its own."""
        with Host() as host:
            # an ordinary user has no control groups, and a named limit that cannot be held is refused
            memory = ["--memory", "1GB"] if mode.removesuffix(PROCESS) in BY_ROOT else []
            pids = ["--pids", "64"] if memory or not mode.endswith(PROCESS) else []
            words = self.nacre(mode, "--timeout", "60s", *pids, *memory, "--", "python3", "-")
            return host.secret, self.run(mode, host, words, program(names, host.context(), True).encode(), 90)

    def control(self, names):
        """The same without a box: as root, with mounts and host name of its own."""
        with Host() as host:
            text = program(names, {**host.context(), "control": True}, True).encode()
            return host.secret, self.run("root", host, ["/usr/bin/python3", "-"], text, 90)

    def alone(self, mode, name):
        """One attack in a box of its own, as its main process."""
        attack = ATTACKS[name]
        with Host() as host:
            text = program([name], host.context(), False)
            words = self.nacre(mode, "--json", *attack.options, "--", "python3", "-c", text)
            return host.secret, self.run(mode, host, words, b"x" * attack.feed, attack.within)

    def while_held(self, mode, name, look):
        """One attack that says "holding"; look() is called then. Gives back the result and what look() saw."""
        attack = ATTACKS[name]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with Host() as host:
            words = self.nacre(mode, *attack.options, "--", "python3", "-c", program([name], host.context(), False))
            process, report = self.start(mode, host, words, **pipes)
            first = process.stdout.readline()
            seen = look() if first == b"holding\n" else None
            return self.finish(process, report, host, b"", attack.within), seen


def read_all(descriptor):
    text = b""
    while part := os.read(descriptor, 65536):
        text += part
    os.close(descriptor)
    return text


def copy_programs(directory):
    """A copy that every user may execute, wherever the build tree is."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)
    for name in PROGRAMS:
        shutil.copy(func.BUILD / name, directory / name)
        (directory / name).chmod(0o755)
    return directory
