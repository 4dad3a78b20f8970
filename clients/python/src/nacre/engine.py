"""Nacre without a daemon: `nacre engine` for executions, a private `nacre serve` for sandboxes. Both are children of this
process, and end with it."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from typing import Any, Callable, Dict, List, Optional

from .errors import ConnectionLost, NacreError

Json = Dict[str, Any]


def program() -> str:
    """The executable: $NACRE_PROGRAM, or `nacre` of $PATH."""
    found = shutil.which(os.environ.get("NACRE_PROGRAM") or "nacre")
    if not found:
        raise NacreError("There is no nacre here", code="no_program", remedy="Install Nacre, set NACRE_PROGRAM, or name a daemon: NACRE_SERVER=http://...")
    return found


class _Waiting:
    def __init__(self, on_output: Optional[Callable[[Json], None]]):
        self.done, self.frame, self.on_output = threading.Event(), None, on_output  # type: Any, Any, Any
        self.raised: Optional[BaseException] = None


class Engine:
    """One `nacre engine`: many executions at once, from any number of threads."""

    def __init__(self, *options: str):
        ours, theirs = socket.socketpair()
        # it expects the socket as descriptor 3
        self.process = subprocess.Popen(["/bin/sh", "-c", 'exec 3<&0 </dev/null; exec "$@"', "sh", program(), "engine", *options],
                                        stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
        theirs.close()
        self.socket, self.stream = ours, ours.makefile("rb", buffering=1 << 16)
        self.lock, self.waiting, self.count = threading.Lock(), {}, itertools.count(1)  # type: Any, Dict[int, _Waiting], Any
        self.gone: Optional[NacreError] = None
        self.pid = os.getpid()
        greeting = self._receive()
        if greeting is None or greeting["event"] != "ready":
            self.close()
            raise NacreError((greeting or {}).get("message", "nacre engine ended; standard error says why"), code="no_engine")
        self.thread = threading.Thread(target=self._listen, name="nacre-engine", daemon=True)
        self.thread.start()
        atexit.register(self.close)

    def _receive(self) -> Optional[Json]:
        try:
            head = self.stream.read(4)
            data = self.stream.read(struct.unpack("<I", head)[0]) if len(head) == 4 else b""
            frame: Optional[Json] = json.loads(data) if data else None
        except (OSError, ValueError):
            return None
        return frame

    def _listen(self) -> None:
        for frame in iter(self._receive, None):
            waiting = self.waiting.get(frame["n"])
            if waiting and frame["event"] == "output":
                try:
                    if not waiting.raised:
                        waiting.on_output(frame)
                except BaseException as error:  # the caller's own, who is told: others wait for this thread as well
                    waiting.raised = error
                    waiting.done.set()
            elif waiting:
                waiting.frame = frame
                waiting.done.set()
        self.gone = ConnectionLost("nacre engine has ended")
        for waiting in list(self.waiting.values()):
            waiting.done.set()

    def ask(self, on_output: Optional[Callable[[Json], None]] = None, begun: Optional[Callable[[int], None]] = None, **frame: Any) -> Json:
        waiting = _Waiting(on_output or (lambda frame: None))
        with self.lock:
            number = next(self.count)
            self.waiting[number] = waiting
            body = json.dumps({"n": number, **frame}).encode()
            try:
                self.socket.sendall(struct.pack("<I", len(body)) + body)
            except OSError:
                self.gone = self.gone or ConnectionLost("nacre engine has ended")
                waiting.done.set()
        if begun:
            begun(number)
        try:
            if not self.gone:
                waiting.done.wait()
            if waiting.raised:
                raise waiting.raised
        except BaseException:  # Ctrl-C: what runs is not wanted any more
            self.cancel(number)
            raise
        finally:
            self.waiting.pop(number, None)
        if waiting.frame is None:
            raise self.gone or ConnectionLost("nacre engine has ended")
        if waiting.frame["event"] == "faults":
            raise NacreError("The request is wrong", code="bad_request", faults=waiting.frame["faults"])
        if waiting.frame["event"] == "error":
            raise NacreError(waiting.frame["message"], code=waiting.frame["code"])
        answer: Json = waiting.frame
        return answer

    def cancel(self, number: int) -> None:
        with self.lock:
            body = json.dumps({"n": next(self.count), "op": "cancel", "of": number}).encode()
            try:
                self.socket.sendall(struct.pack("<I", len(body)) + body)
            except OSError:
                pass  # it has gone, and all that ran with it

    def close(self) -> None:
        if self.pid != os.getpid():
            return  # after a fork it is the parent's still, who goes on with it
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.process.wait()
        self.socket.close()
        atexit.unregister(self.close)


class Daemon:
    """A `nacre serve` of our own: on a port of this machine that the system chooses, with a key that only we have."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.home = tempfile.mkdtemp(prefix="nacre-")
        environment = {**os.environ, "NACRE_STATE": self.home}
        try:
            made = subprocess.run([program(), "key", "create", "--role", "admin"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if made.returncode:
                raise NacreError(made.stderr.strip() or "nacre key failed", code="no_daemon")
            self.key = made.stdout.split()[0]
            self.process = subprocess.Popen([program(), "serve", "--listen", "127.0.0.1:0"], env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
            self.url = self._wait()
        except BaseException:
            shutil.rmtree(self.home, ignore_errors=True)
            raise
        atexit.register(self.close)

    def _wait(self) -> str:
        said: List[str] = []
        assert self.process.stderr
        for line in self.process.stderr:
            said.append(line.decode(errors="replace").strip())
            record = json.loads(line) if line.startswith(b"{") else {}
            if record.get("message") == "Listening":
                threading.Thread(target=lambda stream: [None for _ in stream], args=[self.process.stderr], daemon=True).start()
                return f"{record['scheme']}://{record['address']}"
        raise NacreError("nacre serve did not begin: " + " ".join(said[-3:]), code="no_daemon")

    def close(self) -> None:
        if self.pid != os.getpid():
            return  # the parent's, as above
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # the second time it does not wait for what runs
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
        atexit.unregister(self.close)


_shared: Json = {}
_lock = threading.Lock()


def shared(kind: str) -> Any:
    """The one engine or daemon of this process, started when it is first wanted, and anew after a fork or its end."""
    with _lock:
        pid, thing = _shared.get(kind, (0, None))
        if pid != os.getpid() or thing.process.poll() is not None:
            thing = Engine() if kind == "engine" else Daemon()
            _shared[kind] = (os.getpid(), thing)
        return thing
