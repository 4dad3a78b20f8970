"""What goes wrong, as exceptions."""

from __future__ import annotations

from typing import Any, Dict, List, Optional


class NacreError(Exception):
    """A request that Nacre refused or could not carry out.

    code: one word for programs; field: which part of the request is meant; remedy: what to do;
    status: the HTTP status, or 0; faults: all that is wrong with a request, as {"pointer", "message"}.
    """

    def __init__(self, message: str, code: str = "error", field: Optional[str] = None, remedy: Optional[str] = None,
                 status: int = 0, faults: Optional[List[Dict[str, str]]] = None, retry_after: Optional[float] = None,
                 problem: Optional[Dict[str, Any]] = None):
        super().__init__(message)
        self.message, self.code, self.field, self.remedy = message, code, field, remedy
        self.status, self.faults, self.retry_after, self.problem = status, faults or [], retry_after, problem or {}

    def __str__(self) -> str:
        text = self.message
        for fault in self.faults:
            if fault.get("message") != text:
                text += f"\n  {fault.get('pointer') or '/'}: {fault.get('message')}"
        return f"{text} ({self.remedy})" if self.remedy else text


class ConnectionLost(NacreError):
    """The daemon or the engine has gone, and could not be reached again."""

    def __init__(self, message: str):
        super().__init__(message, code="connection_lost", remedy="See whether nacre serve runs, and ask again")


class CommandFailed(NacreError):
    """A command in a sandbox ended with something else than 0, and check=True was asked for."""

    def __init__(self, result: Any):
        super().__init__(f"The command ended with {result.status}: {result.error or result.stderr.strip()[-500:]}", code=result.status)
        self.result = result


def of_problem(status: int, body: Any, retry_after: Optional[str] = None) -> NacreError:
    """From a problem document."""
    if not isinstance(body, dict):
        return NacreError(f"HTTP status {status}", code="http", status=status)
    wait = float(retry_after) if retry_after and retry_after.isdigit() else None
    return NacreError(body.get("detail") or body.get("title") or f"HTTP status {status}", body.get("code") or "http", body.get("field"),
                      body.get("remedy"), status, body.get("faults"), wait, body)
