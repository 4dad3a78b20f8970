"""Executions and sandboxes."""

from __future__ import annotations

import base64
import os
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlencode

from .engine import shared
from .errors import CommandFailed, NacreError
from .http import Call, Http

Json = Dict[str, Any]
Output = Callable[[str, bytes], None]  # the stream, "stdout" or "stderr", and what was printed


def _bytes_of(text: Optional[str], encoded: Optional[str]) -> bytes:
    return base64.b64decode(encoded) if encoded is not None else (text or "").encode()


def _given(**fields: Any) -> Json:
    """Those that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def _file(content: Union[str, bytes, Json]) -> Any:
    return {"base64": base64.b64encode(content).decode()} if isinstance(content, bytes) else content


class _Reply:
    """A reply of Nacre's, whose fields are attributes."""

    def __init__(self, reply: Json):
        self.reply = reply

    def __getattr__(self, name: str) -> Any:
        try:
            return self.reply[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def ok(self) -> bool:
        return bool(self.reply["status"] == "success")

    def __repr__(self) -> str:
        printed = self.reply.get("output") or self.reply.get("stdout") or ""
        return f"<{type(self).__name__} {self.reply['status']} {printed[:60]!r}>"


class Result(_Reply):
    """The reply to an execution: docs/requests.md has its fields."""

    @property
    def output_bytes(self) -> bytes:
        return _bytes_of(self.reply.get("output"), self.reply.get("output_base64"))

    @property
    def files(self) -> Dict[str, bytes]:
        """What `capture` brought back."""
        return {path: _bytes_of(file.get("text"), file.get("base64")) for path, file in (self.reply.get("files") or {}).items()}


class CommandResult(_Reply):
    """How a command of a sandbox ended: docs/sandboxes.md has its fields."""

    @property
    def stdout_bytes(self) -> bytes:
        return _bytes_of(self.reply.get("stdout"), self.reply.get("stdout_base64"))


class Client:
    """A daemon (`nacre serve`), or without an address Nacre in this process's own children.

    url: http://HOST:PORT, else $NACRE_SERVER; key: an API key, else $NACRE_KEY.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: Optional[float] = None, ca_file: Optional[str] = None):
        url = url or os.environ.get("NACRE_SERVER")
        self.url, self.timeout = url, timeout
        self._http = Http(url, key or os.environ.get("NACRE_KEY"), timeout, ca_file) if url else None

    @property
    def http(self) -> Http:
        """The connection to the daemon; a private one is started where none was named."""
        if not self._http:
            daemon = shared("daemon")
            self._http = Http(daemon.url, daemon.key, self.timeout)
        return self._http

    def run(self, code: Optional[str] = None, language: Optional[str] = None, *, on_output: Optional[Output] = None, files: Optional[Json] = None,
            timeout: Optional[float] = None, packages: Optional[Sequence[str]] = None, env: Optional[Dict[str, str]] = None,
            limits: Optional[Json] = None, allow: Optional[Sequence[str]] = None, policy: Optional[str] = None,
            capture: Optional[Sequence[str]] = None, inputs: Optional[Sequence[str]] = None, args: Optional[Sequence[str]] = None,
            _call: Optional[Call] = None, **fields: Any) -> Result:
        """Runs a program in a fresh sandbox and waits for its end. A program that fails is no exception: see Result.status.

        allow: hosts that it may reach. Other fields of a request (docs/requests.md) are passed on by their names.
        """
        request = _given(code=code, language=language, timeout=timeout, packages=packages, env=env, limits=limits, policy=policy,
                         capture=capture, inputs=inputs, args=args, **fields)
        if files:
            request["files"] = {path: _file(content) for path, content in files.items()}
        if allow:
            request["network"] = {**request.get("network", {}), "allow": list(allow)}
        if self.url is None:
            return self._run_here(request, on_output, _call)
        call = _call or Call()
        identity = request.setdefault("id", f"ex_{uuid.uuid4().hex}")
        call.undo.append(lambda: self.http.ask("DELETE", f"/v1/jobs/{quote(identity, safe='')}"))
        try:
            if on_output:
                return self._run_streamed(request, on_output, call)
            # with a key of its own it is sent again without being run twice
            key = {"Idempotency-Key": uuid.uuid4().hex}
            return Result(self.http.json("POST", "/v1/execute", request, headers=key, safe=True, call=call))
        except KeyboardInterrupt:
            call.cancel()
            raise

    def _run_here(self, request: Json, on_output: Optional[Output], call: Optional[Call]) -> Result:
        engine = shared("engine")

        def told(frame: Json) -> None:
            if on_output:
                on_output(frame["stream"], _bytes_of(frame.get("text"), frame.get("base64")))

        frame = engine.ask(told, (lambda number: call.undo.append(lambda: engine.cancel(number))) if call else None,
                           op="execute", request=request, stream=on_output is not None)
        return Result(frame["reply"])

    def _run_streamed(self, request: Json, on_output: Output, call: Optional[Call]) -> Result:
        for event, data in self.http.events("/v1/execute", body={**request, "stream": True}, call=call):
            if event == "output":
                on_output(data["stream"], _bytes_of(data.get("text"), data.get("base64")))
            elif event == "done":
                return Result(data)
        raise NacreError("The events ended before the execution did", code="lost")

    def check(self, code: str, language: Optional[str] = None, policy: Optional[str] = None) -> Json:
        """What the policy says about a program, without running it (docs/policy.md)."""
        request = _given(code=code, language=language, policy=policy)
        if self.url is None:
            report: Json = shared("engine").ask(op="check", **request)["report"]
        else:
            report = self.http.json("POST", "/v1/policy/analyse", request, safe=True)["files"][0]
        return report

    def sandbox(self, **spec: Any) -> "Sandbox":
        """A new sandbox: the fields of docs/sandboxes.md, such as timeout, limits, image, env, network."""
        return Sandbox(self, **spec)

    def connect(self, sandbox_id: str) -> "Sandbox":
        """A sandbox that is there already."""
        return Sandbox._of(self, self.http.json("GET", f"/v1/sandboxes/{quote(sandbox_id, safe='')}"))

    def sandboxes(self) -> List["Sandbox"]:
        found, after = [], ""  # type: List[Sandbox], Any
        while True:
            page = self.http.json("GET", "/v1/sandboxes" + (f"?after={quote(str(after))}" if after else ""))
            found += [Sandbox._of(self, one) for one in page["sandboxes"]]
            after = page.get("next")
            if not after:
                return found

    def snapshots(self) -> List[Json]:
        return list(self.http.json("GET", "/v1/snapshots")["snapshots"])

    def delete_snapshot(self, snapshot_id: str) -> None:
        self.http.ask("DELETE", f"/v1/snapshots/{quote(snapshot_id, safe='')}")

    def history(self, limit: int = 100) -> List[Json]:
        """The latest executions, the newest first. Without a daemon: those of this machine's journal."""
        if self.url is None:
            import json
            import subprocess
            from .engine import program
            done = subprocess.run([program(), "history", "--json", "--limit", str(limit)], capture_output=True, text=True)
            if done.returncode:
                raise NacreError(done.stderr.strip(), code="no_history")
            return list(json.loads(done.stdout)["executions"])
        return list(self.http.json("GET", f"/v1/history?limit={limit}")["executions"])

    def close(self) -> None:
        if self._http:
            self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Command:
    """A command of a sandbox in the background."""

    def __init__(self, sandbox: "Sandbox", reply: Json):
        self.sandbox, self.id, self.reply = sandbox, reply["id"], reply
        self._path, self._http = f"{sandbox._path}/commands/{self.id}", sandbox.client.http

    def events(self, _call: Optional[Call] = None) -> Iterator[Tuple[str, bytes]]:
        """What it prints, as (stream, bytes), until it ends; a lost connection is resumed."""
        for event, data in self._http.events(f"{self._path}/events", call=_call):
            if event == "output":
                yield data["stream"], _bytes_of(data.get("text"), data.get("base64"))
            elif event == "gap":
                yield "gap", b""

    def wait(self, on_output: Optional[Output] = None, check: bool = False, _call: Optional[Call] = None) -> CommandResult:
        for stream, data in self.events(_call):
            if on_output and stream != "gap":
                on_output(stream, data)
        result = CommandResult(self._http.json("GET", self._path))
        if check and not result.ok:
            raise CommandFailed(result)
        return result

    def write(self, data: Union[str, bytes], end: bool = False) -> None:
        """Its input; it has to be started with keep_input or a terminal."""
        import time
        rest = data.encode() if isinstance(data, str) else data
        while True:
            try:
                self._http.ask("POST", f"{self._path}/input" + ("?end=true" if end else ""), rest)
                return
            except NacreError as error:
                if error.code != "input_full":
                    raise
                rest = rest[error.problem.get("taken", 0):]
                time.sleep(0.05)

    def close_input(self) -> None:
        self.write(b"", end=True)

    def signal(self, signal: Union[str, int] = "TERM") -> None:
        self._http.ask("POST", f"{self._path}/signal", {"signal": signal})

    def kill(self) -> None:
        """With everything that it started."""
        self._http.ask("DELETE", self._path)

    def resize(self, rows: int, columns: int) -> None:
        self._http.ask("POST", f"{self._path}/size", {"rows": rows, "columns": columns})


class Sandbox:
    """A sandbox, which stays until destroy(), the end of its time, or the end of `with`."""

    def __init__(self, client: Optional[Client] = None, *, snapshot: Optional[str] = None, timeout: Optional[float] = None,
                 allow: Optional[Sequence[str]] = None, **spec: Any):
        spec.update(_given(snapshot=snapshot, timeout=timeout))
        if allow:
            spec["network"] = {**spec.get("network", {}), "allow": list(allow)}
            spec.setdefault("network_access", True)
        self.client = client or Client()
        key = {"Idempotency-Key": uuid.uuid4().hex}
        self._take(self.client.http.json("POST", "/v1/sandboxes", spec, headers=key, safe=True))

    @classmethod
    def _of(cls, client: Client, reply: Json) -> "Sandbox":
        sandbox = cls.__new__(cls)
        sandbox.client = client
        sandbox._take(reply)
        return sandbox

    def _take(self, reply: Json) -> None:
        self.id, self.info, self._http = reply["id"], reply, self.client.http
        self._path = f"/v1/sandboxes/{self.id}"

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.destroy()
        except NacreError as error:
            if error.status != 404:  # its time was up
                raise

    def __repr__(self) -> str:
        return f"<Sandbox {self.id}>"

    # commands

    def run(self, command: Union[str, Sequence[str]], *, timeout: Optional[float] = None, env: Optional[Dict[str, str]] = None, dir: Optional[str] = None,
            input: Union[str, None] = None, on_output: Optional[Output] = None, check: bool = False,
            _call: Optional[Call] = None, **fields: Any) -> CommandResult:
        """Runs a command, a line of shell or a program with its arguments, and waits for its end. A command that fails is an
        exception only with check."""
        if on_output:
            command_ = self.start(command, timeout=timeout, env=env, dir=dir, input=input, **fields)
            return command_.wait(on_output, check, _call)
        body = {"command": command if isinstance(command, str) else list(command), **_given(timeout=timeout, env=env, dir=dir, input=input), **fields}
        result = CommandResult(self._http.json("POST", f"{self._path}/commands", body, headers={"Idempotency-Key": uuid.uuid4().hex},
                                                     safe=True, call=_call))
        if check and not result.ok:
            raise CommandFailed(result)
        return result

    def start(self, command: Union[str, Sequence[str]], *, timeout: Optional[float] = None, env: Optional[Dict[str, str]] = None, dir: Optional[str] = None,
              input: Optional[str] = None, keep_input: bool = False, terminal: bool = False, **fields: Any) -> Command:
        """Begins a command and does not wait."""
        body = {"command": command if isinstance(command, str) else list(command), "background": True,
                **_given(timeout=timeout, env=env, dir=dir, input=input, keep_input=keep_input or None, terminal=terminal or None), **fields}
        return Command(self, self._http.json("POST", f"{self._path}/commands", body, headers={"Idempotency-Key": uuid.uuid4().hex}, safe=True))

    def commands(self) -> List[Command]:
        return [Command(self, one) for one in self._http.json("GET", f"{self._path}/commands")["commands"]]

    # files

    def _files(self, path: str, below: str = "files", **more: str) -> str:
        return f"{self._path}/{below}?" + urlencode({"path": path if path.startswith("/") else f"/workspace/{path}", **more})

    def read_file(self, path: str) -> bytes:
        return self._http.ask("GET", self._files(path))[1]

    def read_text(self, path: str) -> str:
        return self.read_file(path).decode()

    def write_file(self, path: str, content: Union[str, bytes]) -> None:
        """Atomically; a directory that is missing is made."""
        self._http.ask("PUT", self._files(path), content.encode() if isinstance(content, str) else content)

    def list_files(self, path: str = "/workspace") -> List[Json]:
        return list(self._http.json("GET", self._files(path, "files/list"))["entries"])

    def stat(self, path: str) -> Json:
        return dict(self._http.json("GET", self._files(path, "files/stat"))["entries"][0])

    def make_dir(self, path: str) -> None:
        self._http.ask("POST", self._files(path, "files/directory"), safe=True)

    def move_file(self, path: str, to: str) -> None:
        names = {name: one if one.startswith("/") else f"/workspace/{one}" for name, one in (("from", path), ("to", to))}
        self._http.ask("POST", f"{self._path}/files/move?" + urlencode(names))

    def delete_file(self, path: str) -> None:
        self._http.ask("DELETE", self._files(path))

    def upload(self, archive: bytes, path: str = "/workspace") -> None:
        """A tar archive, unpacked there."""
        self._http.ask("PUT", self._files(path, "archive"), archive)

    def download(self, path: str = "/workspace") -> bytes:
        """A directory, as a tar archive."""
        return self._http.ask("GET", self._files(path, "archive"))[1]

    def watch(self, path: str = "/workspace", recursive: bool = False) -> Iterator[Tuple[str, Json]]:
        """What happens to files there, as ("created", {"path": ...}), until the sandbox ends or the caller stops."""
        return self._http.events(self._files(path, "watch", recursive="true" if recursive else "false"))

    # the sandbox

    def snapshot(self, name: Optional[str] = None) -> str:
        """Keeps its files; the id makes new sandboxes with them: Sandbox(snapshot=ID)."""
        return str(self._http.json("POST", f"{self._path}/snapshots", _given(name=name), safe=True)["id"])

    def restore(self, snapshot_id: str) -> None:
        self._http.ask("POST", f"{self._path}/restore", {"snapshot": snapshot_id}, safe=True)

    def pause(self) -> None:
        self._http.ask("POST", f"{self._path}/pause", {}, safe=True)

    def resume(self) -> None:
        self._http.ask("POST", f"{self._path}/resume", {}, safe=True)

    def set_timeout(self, seconds: int) -> None:
        """It ends that many seconds from now."""
        self._take(self._http.json("POST", f"{self._path}/timeout", {"timeout": seconds}, safe=True))

    def set_network(self, **terms: Any) -> None:
        """Other terms for all requests from now on: allow=[...], max_mb=..., as in docs/egress.md."""
        self._take(self._http.json("POST", f"{self._path}/network", terms, safe=True))

    def stats(self) -> Json:
        return dict(self._http.json("GET", f"{self._path}/stats"))

    def healthy(self) -> bool:
        return bool(self._http.json("GET", f"{self._path}/health")["healthy"])

    def destroy(self) -> None:
        self._http.ask("DELETE", self._path)


def run(code: str, language: Optional[str] = None, **fields: Any) -> Result:
    """Runs a program in a fresh sandbox: Client().run()."""
    return Client().run(code, language, **fields)
