"""A daemon of the test's own: `nacre serve` on a free port, with a state of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import time

from conftest import NACRE, environment


class Answer:
    """One HTTP reply, read by hand so that nothing of it is hidden."""

    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/1.1 ") else 0
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            self.body = unchunk(self.body)

    def json(self):
        return json.loads(self.body)


def unchunk(data):
    out, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        n = int(data[at:end], 16)
        if n == 0:
            break
        out.append(data[end + 2:end + 2 + n])
        at = end + 2 + n + 2
    return b"".join(out)


class Daemon:
    """Use as a context: leaving it stops the daemon, which must end well. Without respawn the process is the spawner itself."""

    def __init__(self, home, *options, prefix=(), config=None, env=None, program=NACRE, quiet=False, respawn=False, listen="127.0.0.1:0"):
        self.home, self.respawn = home, respawn
        self.state = f"{home}/state"
        self.env = {**environment(home), "NACRE_STATE": self.state, **(env or {})}
        self.log_path = f"{home}/serve.log"
        self.prefix = list(prefix)
        self.program = str(program)
        self.config = ["--config", str(config)] if config else []
        command = [*self.prefix, str(program), *self.config, "serve", "--listen", listen, *([] if respawn else ["--no-respawn"]), *options]
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log)
        if quiet:  # its configuration lets it say nothing
            self.find()
            return
        listening = self.wait_for_log("Listening")
        self.pid = listening["pid"]
        self.port = int(listening["address"].rpartition(":")[2])

    def find(self):
        """The worker of the spawner, and the port on which it listens."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            for pid in subprocess.run(["pgrep", "-P", str(self.process.pid), "-x", "nacre"], capture_output=True, text=True).stdout.split():
                ports = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True).stdout
                found = re.search(rf"127\.0\.0\.1:(\d+) .*pid={pid},", ports)
                if found:
                    self.pid, self.port = int(pid), int(found.group(1))
                    return
            time.sleep(0.1)
        raise AssertionError("it does not listen")

    def log(self):
        records = []
        for line in open(self.log_path):
            try:
                records.append(json.loads(line))
            except ValueError:
                records.append({"message": line.strip()})
        return records

    def wait_for_log(self, message, seconds=20):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for record in self.log():
                if record["message"] == message:
                    return record
            assert self.process.poll() is None, open(self.log_path).read()
            time.sleep(0.02)
        raise AssertionError(f"no {message!r} in {open(self.log_path).read()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                os.kill(self.process.pid if self.respawn else self.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        try:
            self.code = self.process.wait(timeout=60)
        finally:
            if self.process.poll() is None:
                self.process.kill()

    def connect(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def raw(self, data, timeout=30, half_close=False):
        """Sends bytes and reads until the daemon closes."""
        with self.connect(timeout) as client:
            client.sendall(data)
            if half_close:
                client.shutdown(socket.SHUT_WR)
            out = []
            while True:
                try:
                    piece = client.recv(65536)
                except ConnectionResetError:
                    break
                if not piece:
                    break
                out.append(piece)
        return b"".join(out)

    def ask(self, method, path, body=None, headers=None, key=None, host=None, timeout=60):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}", "Connection: close"]
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            lines.append(f"Content-Length: {len(data)}")
            if not any(name.lower() == "content-type" for name in headers or {}):
                lines.append("Content-Type: application/json")
        if key:
            lines.append(f"Authorization: Bearer {key}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return Answer(self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + data, timeout))

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body, **options):
        return self.ask("POST", path, body, **options)

    def execute(self, code, language="python", **more):
        key, headers = more.pop("key", None), more.pop("headers", None)
        return self.post("/v1/execute", {"language": language, "code": code, **more}, key=key, headers=headers)

    def aides(self):
        """The pids of those who work beside it, by name."""
        below = subprocess.run(["ps", "-eo", "pid=,ppid=,stat=,comm="], capture_output=True, text=True).stdout
        rows = [line.split(None, 3) for line in below.splitlines()]
        rows = [(int(pid), int(parent), name) for pid, parent, state, name in rows if state[0] != "Z"]
        keeper = [pid for pid, parent, name in rows if parent == self.process.pid and name == "nacre-keeper"]
        return {name.removeprefix("nacre-"): pid for pid, parent, name in rows if pid in keeper or parent in keeper}

    def die(self):
        """kill -9 of the worker, and the next one is there; not more often than the spawner puts up with."""
        self.deaths = [*getattr(self, "deaths", []), time.monotonic()]
        if len(self.deaths) > 5:
            time.sleep(max(0, self.deaths[-6] + 10.2 - time.monotonic()))
            self.deaths[-1] = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            pid = [record["pid"] for record in self.log() if record["message"] == "Listening"][-1]
            if pid != self.pid:
                self.pid = pid
                return
            assert self.process.poll() is None, open(self.log_path).read()
            time.sleep(0.005)
        raise AssertionError(open(self.log_path).read())

    def key(self, *options):
        """Makes a key with the command line, as its owner would."""
        done = subprocess.run([*self.prefix, self.program, "key", "create", *options], env=self.env, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        time.sleep(1.1)  # the daemon looks once a second
        return done.stdout.strip()


def events_of(raw):
    """The events of a stream: (id, name, data)."""
    found = []
    for block in raw.decode().split("\n\n"):
        fields = dict(re.match(r"(\w+): ?(.*)", line).groups() for line in block.split("\n") if line)
        if fields:
            found.append((int(fields["id"]) if "id" in fields else None, fields["event"], json.loads(fields["data"])))
    return found


def descriptors(pid):
    """What each descriptor of a process leads to, by its number; who is closed meanwhile is left out."""
    found = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[number] = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            pass
    return found
