"""The same with async and await. Calls run in threads; one that is cancelled hangs up, which ends what it waited for."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from . import client as sync
from .http import Call

T = TypeVar("T")


async def _cancellable(run: Callable[..., T], *args: Any, **fields: Any) -> T:
    call, loop = Call(), asyncio.get_running_loop()
    future = loop.run_in_executor(None, functools.partial(run, *args, _call=call, **fields))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.shield(loop.run_in_executor(None, call.cancel))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


async def _thread(call: Callable[..., T], *args: Any, **fields: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(call, *args, **fields))


def _next(events: Iterator[Tuple[str, bytes]]) -> Optional[Tuple[str, bytes]]:
    return next(events, None)


class Command:
    def __init__(self, command: sync.Command):
        self._sync, self.id = command, command.id

    async def events(self) -> AsyncIterator[Tuple[str, bytes]]:
        call = Call()
        events = self._sync.events(call)
        try:
            while True:
                one: Optional[Tuple[str, bytes]] = await asyncio.shield(_thread(_next, events))
                if one is None:
                    return
                yield one
        finally:
            call.cancel()

    async def wait(self, on_output: Optional[sync.Output] = None, check: bool = False) -> sync.CommandResult:
        return await _cancellable(self._sync.wait, on_output, check)

    async def write(self, data: Union[str, bytes], end: bool = False) -> None:
        await _thread(self._sync.write, data, end)

    async def close_input(self) -> None:
        await _thread(self._sync.close_input)

    async def signal(self, signal: Union[str, int] = "TERM") -> None:
        await _thread(self._sync.signal, signal)

    async def kill(self) -> None:
        await _thread(self._sync.kill)


class Sandbox:
    """async with await Sandbox.create() as sandbox: ..."""

    def __init__(self, sandbox: sync.Sandbox):
        self._sync, self.id = sandbox, sandbox.id

    @classmethod
    async def create(cls, client: Optional[sync.Client] = None, **spec: Any) -> "Sandbox":
        return cls(await _thread(sync.Sandbox, client, **spec))

    async def __aenter__(self) -> "Sandbox":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await asyncio.shield(_thread(self._sync.__exit__))

    async def run(self, command: Union[str, Sequence[str]], **fields: Any) -> sync.CommandResult:
        return await _cancellable(self._sync.run, command, **fields)

    async def start(self, command: Union[str, Sequence[str]], **fields: Any) -> Command:
        return Command(await _thread(self._sync.start, command, **fields))

    async def read_file(self, path: str) -> bytes:
        return await _thread(self._sync.read_file, path)

    async def read_text(self, path: str) -> str:
        return await _thread(self._sync.read_text, path)

    async def write_file(self, path: str, content: Union[str, bytes]) -> None:
        await _thread(self._sync.write_file, path, content)

    async def list_files(self, path: str = "/workspace") -> List[Dict[str, Any]]:
        return await _thread(self._sync.list_files, path)

    async def delete_file(self, path: str) -> None:
        await _thread(self._sync.delete_file, path)

    async def snapshot(self, name: Optional[str] = None) -> str:
        return await _thread(self._sync.snapshot, name)

    async def restore(self, snapshot_id: str) -> None:
        await _thread(self._sync.restore, snapshot_id)

    async def pause(self) -> None:
        await _thread(self._sync.pause)

    async def resume(self) -> None:
        await _thread(self._sync.resume)

    async def set_timeout(self, seconds: int) -> None:
        await _thread(self._sync.set_timeout, seconds)

    async def stats(self) -> Dict[str, Any]:
        return await _thread(self._sync.stats)

    async def healthy(self) -> bool:
        return await _thread(self._sync.healthy)

    async def destroy(self) -> None:
        await _thread(self._sync.destroy)


class Client:
    """As nacre.Client."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, **options: Any):
        self._sync = sync.Client(url, key, **options)

    async def run(self, code: Optional[str] = None, language: Optional[str] = None, **fields: Any) -> sync.Result:
        return await _cancellable(self._sync.run, code, language, **fields)

    async def check(self, code: str, language: Optional[str] = None, policy: Optional[str] = None) -> Dict[str, Any]:
        return await _thread(self._sync.check, code, language, policy)

    async def sandbox(self, **spec: Any) -> Sandbox:
        return await Sandbox.create(self._sync, **spec)

    async def connect(self, sandbox_id: str) -> Sandbox:
        return Sandbox(await _thread(self._sync.connect, sandbox_id))

    async def history(self, limit: int = 100) -> List[Dict[str, Any]]:
        return await _thread(self._sync.history, limit)


async def run(code: str, language: Optional[str] = None, **fields: Any) -> sync.Result:
    return await Client().run(code, language, **fields)
