"""A client of `nacre engine` in Python: the protocol as docs/library.md describes it, and nothing of libnacre."""

import base64
import json
import os
import socket
import struct
import subprocess

from conftest import NACRE


class Engine:
    """One engine. Use as a context: leaving it hangs up and waits for the end."""

    def __init__(self, home, *options, program=NACRE, prefix=(), env=None):
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        number = theirs.fileno()
        command = [] if number == 3 else ["bash", "-c", f'exec 3<&{number} {number}<&-; exec "$@"', "bash"]
        self.process = subprocess.Popen(
            [*command, *prefix, str(program), "engine", *options], pass_fds=[number], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=write,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "NACRE_STATE": f"{home}/state", **(env or {})})
        theirs.close()
        os.close(write)
        self.messages = os.fdopen(read)
        self.socket = ours
        self.socket.settimeout(120)
        self.n = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        try:
            self.code = self.process.wait(timeout=60)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.errors = self.messages.read()
            self.messages.close()

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, frame):
        body = json.dumps(frame).encode()
        self.send_bytes(struct.pack("<I", len(body)) + body)

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                return None
            data += piece
        return data

    def receive(self):
        """The next frame; None: the engine has hung up."""
        try:
            head = self._read(4)
            body = head and self._read(struct.unpack("<I", head)[0])
        except ConnectionResetError:
            return None
        return body and json.loads(body)

    def ask(self, **frame):
        """Sends a frame under a number of its own, which is returned."""
        self.n += 1
        self.send({"n": self.n, **frame})
        return self.n

    def execute(self, request, **frame):
        return self.ask(op="execute", request=request, **frame)

    def replies(self, count):
        """The next replies by number; everything else on the way is kept out."""
        found = {}
        while len(found) < count:
            frame = self.receive()
            assert frame is not None, "the engine has hung up"
            if frame["event"] != "output":
                found[frame["n"]] = frame
        return found


def data_of(frame):
    return base64.b64decode(frame["base64"]) if "base64" in frame else frame["text"].encode()
