"""Run untrusted code in Nacre's sandboxes: nacre.run(), nacre.Sandbox; nacre.aio has the same with async and await."""

from typing import Any

from .client import Client, Command, CommandResult, Result, Sandbox, run
from .errors import CommandFailed, ConnectionLost, NacreError

__version__ = "0.1.0"

# imported when they are first asked for
_NAMES = ("SecurityManager", "SecurityResult", "RiskLevel", "ResourceMonitor", "MonitoringSession", "ResourceUsage", "LimitStatus",
          "PerformanceMetrics", "ExecutionEngine", "ExecutionContext", "ExecutionResult", "Environment", "ExecutionRecord")

__all__ = ["Client", "Command", "CommandFailed", "CommandResult", "ConnectionLost", "NacreError", "Result", "Sandbox", "run", *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        from . import names
        return getattr(names, name)
    raise AttributeError(f"module 'nacre' has no attribute '{name}'")
