"""HTTP/1.1 as the daemon speaks it. (http.client takes longer to import than a warm sandbox to answer.)"""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union, cast

from .errors import ConnectionLost, NacreError, of_problem

# Tries to reach a daemon that is being started again, and the seconds before each.
PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)


class Call:
    """What somebody waits for, so that another thread can end it."""

    def __init__(self) -> None:
        self.cancelled, self.connection = False, None  # type: bool, Optional[Connection]
        self.undo: List[Callable[[], Any]] = []

    def cancel(self) -> None:
        self.cancelled = True
        if self.connection:
            self.connection.close()
        for undo in self.undo:
            try:
                undo()
            except NacreError:
                pass  # it has ended by itself


class Reply:
    """Status, headers, and the body piece by piece."""

    def __init__(self, connection: "Connection", status: int, headers: Dict[str, str]):
        self.connection, self.status, self.headers = connection, status, headers

    def pieces(self) -> Iterator[bytes]:
        stream = self.connection.stream
        if self.headers.get("transfer-encoding") == "chunked":
            while True:
                size = int(self.connection.line().split(";")[0], 16)
                if size:
                    yield self.connection.exactly(size)
                self.connection.line()
                if not size:
                    return
        left = int(self.headers.get("content-length", 0 if self.status in (204, 304) else -1))
        while left != 0:
            piece = stream.read1(min(left, 1 << 20) if left > 0 else 1 << 20)
            if not piece:
                if left > 0:
                    raise ConnectionResetError("The reply broke off")
                return
            left -= len(piece) if left > 0 else 0
            yield piece

    def body(self) -> bytes:
        return b"".join(self.pieces())


class Connection:
    def __init__(self, host: str, port: int, tls: Any, timeout: Optional[float]):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.stream = cast(io.BufferedReader, self.socket.makefile("rb", buffering=65536))
        self.used = False

    def line(self) -> str:
        line = self.stream.readline(65537)
        if not line.endswith(b"\n"):
            raise ConnectionResetError("The reply broke off")
        return line.strip().decode("latin-1")

    def exactly(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            raise ConnectionResetError("The reply broke off")
        return data

    def ask(self, head: bytes, body: bytes) -> Reply:
        self.socket.sendall(head + body if len(body) < 65536 else head)
        if len(body) >= 65536:
            self.socket.sendall(body)
        status = 100
        while status == 100:  # "100 Continue" was not asked for, and may come
            status, headers = int(self.line().split(" ", 2)[1]), {}
            while True:
                name, colon, value = self.line().partition(":")
                if not colon:
                    break
                headers[name.lower()] = value.strip()
        self.used = True
        return Reply(self, status, headers)

    def close(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # whoever reads in another thread is told
        except OSError:
            pass
        self.stream.close()
        self.socket.close()


class Http:
    """Requests to one daemon, from any number of threads."""

    def __init__(self, url: str, key: Optional[str] = None, timeout: Optional[float] = None, ca_file: Optional[str] = None):
        scheme, mark, rest = url.partition("://")
        where = (rest or scheme).split("/")[0]
        self.tls = None
        if mark and scheme not in ("http", "https"):
            raise NacreError(f"{url} is no address of a daemon", code="bad_url", remedy="Such as http://127.0.0.1:7070")
        if scheme == "https":
            import ssl
            self.tls = ssl.create_default_context(cafile=ca_file)
        host, _, port = where.rpartition(":") if where[-1:] != "]" and ":" in where else (where, "", "")
        self.host, self.port = host.strip("[]"), int(port or (443 if self.tls else 7070))
        self.timeout, self.idle, self.lock = timeout, [], threading.Lock()  # type: Optional[float], List[Connection], Any
        self.pid = os.getpid()
        self.head = f"Host: {where}\r\n" + (f"Authorization: Bearer {key}\r\n" if key else "")

    def _take(self, kept: bool) -> Connection:
        if self.pid != os.getpid():  # two processes on one connection would read each other's replies
            self.pid, self.idle, self.lock = os.getpid(), [], threading.Lock()
        with self.lock:
            if kept and self.idle:
                return self.idle.pop()
        return Connection(self.host, self.port, self.tls, self.timeout)

    def give_back(self, connection: Connection) -> None:
        with self.lock:
            self.idle.append(connection)

    def open(self, method: str, path: str, body: Union[bytes, Any, None] = None, headers: Optional[Dict[str, str]] = None,
             safe: Optional[bool] = None, call: Optional[Call] = None) -> Reply:
        """Sends a request and reads the head of its reply. safe: it may be sent again where nobody knows whether it came
        through; without a word GET, PUT and DELETE are."""
        head = f"{method} {path} HTTP/1.1\r\n{self.head}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            head += "Content-Type: application/json\r\n"
        if body is not None or method in ("POST", "PUT"):
            head += f"Content-Length: {len(body or b'')}\r\n"
        for name, value in (headers or {}).items():
            head += f"{name}: {value}\r\n"
        safe = method != "POST" if safe is None else safe
        for pause in (*PAUSES, None):
            connection = None
            try:
                connection = self._take(safe)  # a kept one may be closed: did it come through then?
                if call:
                    call.connection = connection
                return connection.ask((head + "\r\n").encode(), body or b"")
            except TimeoutError:
                if connection:
                    connection.close()
                raise
            except (OSError, ValueError) as error:
                stale = connection is not None and connection.used and isinstance(error, (BrokenPipeError, ConnectionResetError))
                if connection:
                    connection.close()
                if pause is None or (call and call.cancelled) or not (safe or connection is None):
                    raise ConnectionLost(f"{self.host}:{self.port}: {error}") from error
                if not stale:
                    time.sleep(pause)
        raise AssertionError("not reached")

    def ask(self, method: str, path: str, body: Union[bytes, Any, None] = None, headers: Optional[Dict[str, str]] = None,
            safe: Optional[bool] = None, call: Optional[Call] = None) -> Tuple[int, bytes]:
        """Status and body; an error is an exception."""
        reply = self.open(method, path, body, headers, safe, call)
        try:
            data = reply.body()
        except (OSError, ValueError) as error:
            reply.connection.close()
            raise ConnectionLost(f"{self.host}:{self.port}: {error}") from error
        if reply.headers.get("connection") == "close":
            reply.connection.close()
        else:
            self.give_back(reply.connection)
        if reply.status >= 400:
            try:
                problem = json.loads(data)
            except ValueError:
                problem = None
            raise of_problem(reply.status, problem, reply.headers.get("retry-after"))
        return reply.status, data

    def json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        data = self.ask(method, path, body, **options)[1]
        return json.loads(data) if data else None

    def events(self, path: str, last: int = 0, body: Any = None, call: Optional[Call] = None) -> Iterator[Tuple[str, Any]]:
        """Server-sent events as (event, data); a connection that is lost is made again where it was. With a body the first
        request is a POST, and says in an event "job" where its events are read again."""
        method, wanted = ("POST", path) if body is not None else ("GET", path)
        failures = 0
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(last)} if last else {})}
            reply = self.open(method, wanted, body if method == "POST" else None, headers, call=call)
            try:
                if reply.status >= 400:
                    raise of_problem(reply.status, json.loads(reply.body()), reply.headers.get("retry-after"))
                for event, data, last in _parse(reply, last):
                    if event == "job":
                        method, wanted = "GET", f"/v1/jobs/{data['id']}/events"
                    failures = 0
                    yield event, data
                    if event in ("done", "end"):
                        return
                raise ConnectionResetError("The events broke off")
            except (OSError, ValueError) as error:
                failures += 1
                if method == "POST" or failures > len(PAUSES) or (call and call.cancelled):
                    raise ConnectionLost(f"{self.host}:{self.port}: {error}") from error
                time.sleep(PAUSES[failures - 1])
            finally:
                reply.connection.close()

    def close(self) -> None:
        with self.lock:
            while self.idle:
                self.idle.pop().close()


def _parse(reply: Reply, last: int) -> Iterator[Tuple[str, Any, int]]:
    rest, event = b"", "message"
    for piece in reply.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.decode().partition(": ")
            if name == "id":
                last = int(value)
            elif name == "event":
                event = value
            elif name == "data":
                yield event, json.loads(value), last
                event = "message"
