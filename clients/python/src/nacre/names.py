"""Security manager, resource monitor, execution engine."""

from __future__ import annotations

import enum
import os
import pathlib
import shutil
import signal
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from .client import Client, Json, Result, Sandbox
from .engine import Engine
from .errors import NacreError


class RiskLevel(enum.IntEnum):
    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3


@dataclass
class SecurityResult:
    """What the policy says about a program."""

    is_valid: bool  # it does nothing that the policy forbids
    risk_level: RiskLevel
    violations: List[Json]  # findings of what the policy forbids
    warnings: List[Json]  # the other findings
    recommendation: str  # the tier for it
    report: Json = field(repr=False)  # all of it: docs/policy.md


def _is_forbidden(finding: Json) -> bool:
    """Whether a list of the policy file names it, or it refuses the program. (Nacre itself runs the former in a sandbox.)"""
    return bool(finding["refuses"] or finding["rule"].startswith("policy."))


class SecurityManager:
    """Reads programs, and judges them by a policy. Nothing is run.

    config_path: a policy file (security_policies.yaml) or a directory with one; without it the host's configuration.
    """

    def __init__(self, config_path: Optional[str] = None):
        self._home: Optional[tempfile.TemporaryDirectory[str]] = None
        options: List[str] = []
        if config_path is not None:
            path = pathlib.Path(config_path)
            if not path.is_dir():
                self._home = tempfile.TemporaryDirectory(prefix="nacre-policy-")
                os.chmod(self._home.name, 0o755)
                copy = pathlib.Path(self._home.name) / "security_policies.yaml"
                shutil.copyfile(path, copy)
                os.chmod(copy, 0o644)
                path = pathlib.Path(self._home.name)
            options = ["--config", str(path)]
        self._engine = Engine(*options)

    def _check(self, code: str, language: str) -> Json:
        return dict(self._engine.ask(op="check", code=code, language=language)["report"])

    def validate(self, code: str, language: str) -> SecurityResult:
        report = self._check(code, language)
        refusing = [one for one in report["findings"] if _is_forbidden(one)]
        others = [one for one in report["findings"] if not _is_forbidden(one)]
        return SecurityResult(not refusing and not report.get("refused", False), RiskLevel[report["risk"].upper()], refusing, others,
                              report["recommendation"], report)

    def validate_python_code(self, code: str) -> SecurityResult:
        return self.validate(code, "python")

    def validate_javascript_code(self, code: str) -> SecurityResult:
        return self.validate(code, "javascript")

    def validate_shell_code(self, code: str) -> SecurityResult:
        return self.validate(code, "shell")

    def check_imports(self, code: str, language: str) -> List[str]:
        """The imports of a program that the policy forbids."""
        findings = self._check(code, language)["findings"]
        return [one["object"] for one in findings if one["rule"] == "policy.import"]

    def analyze_security_risk(self, code: str, language: str) -> RiskLevel:
        return RiskLevel[self._check(code, language)["risk"].upper()]

    def close(self) -> None:
        self._engine.close()
        if self._home:
            self._home.cleanup()


@dataclass
class ResourceUsage:
    cpu_seconds: float
    memory_bytes: int
    processes: int
    io_read_bytes: int
    io_written_bytes: int
    wall_seconds: float


@dataclass
class LimitStatus:
    within_limits: bool
    exceeded: List[str]  # names of limits
    usage: ResourceUsage


@dataclass
class PerformanceMetrics:
    samples: int
    wall_seconds: float
    cpu_seconds: float
    cpu_percent: float  # of one processor, on average
    memory_peak_bytes: int
    memory_average_bytes: float
    processes_peak: int


@dataclass
class MonitoringSession:
    session_id: str
    process_id: int
    started: float  # by time.monotonic()
    spent: Dict[Tuple[int, str], float] = field(repr=False, default_factory=dict)  # CPU time by process, also of those that have ended
    samples: List[ResourceUsage] = field(repr=False, default_factory=list)


class ResourceMonitor:
    """Watches a process of this machine with all that it started.

    limits_config: memory_mb, cpu_time_seconds, execution_time_seconds, max_processes; or a mapping with `default_limits`.
    """

    LIMITS = ("memory_mb", "cpu_time_seconds", "execution_time_seconds", "max_processes")

    def __init__(self, limits_config: Optional[Json] = None):
        limits = dict((limits_config or {}).get("default_limits", limits_config or {}))
        self.limits = {name: float(value) for name, value in limits.items() if name in self.LIMITS}
        unknown = set(limits) - set(self.LIMITS) - {"cpu_cores", "disk_mb"}  # which hold for boxes, and not for a process outside
        if unknown:
            raise NacreError(f"There is no such limit: {', '.join(sorted(unknown))}", code="bad_limit", field=sorted(unknown)[0])
        self._sessions: Dict[str, MonitoringSession] = {}

    def start_monitoring(self, process_id: int) -> MonitoringSession:
        if process_id <= 1:
            raise NacreError(f"{process_id} is no process to be watched", code="no_process")
        try:
            os.kill(process_id, 0)
        except OSError as error:
            raise NacreError(f"Process {process_id}: {error.strerror}", code="no_process") from error
        session = MonitoringSession(uuid.uuid4().hex, process_id, time.monotonic())
        self._sessions[session.session_id] = session
        self.get_current_usage(session.session_id)
        return session

    def _session(self, session_id: str) -> MonitoringSession:
        if session_id not in self._sessions:
            raise NacreError(f"There is no monitoring session {session_id}", code="no_session")
        return self._sessions[session_id]

    def get_current_usage(self, session_id: str) -> ResourceUsage:
        session = self._session(session_id)
        memory = read = written = 0
        tree = _tree(session.process_id)
        for pid, start, ticks in tree:
            session.spent[pid, start] = ticks / os.sysconf("SC_CLK_TCK")
            memory += _memory(pid)
            one = _fields(f"/proc/{pid}/io")
            read, written = read + one.get("read_bytes", 0), written + one.get("write_bytes", 0)
        usage = ResourceUsage(sum(session.spent.values()), memory, len(tree), read, written, time.monotonic() - session.started)
        session.samples.append(usage)
        return usage

    def check_limits(self, session_id: str) -> LimitStatus:
        usage = self.get_current_usage(session_id)
        used = {"memory_mb": usage.memory_bytes / (1 << 20), "cpu_time_seconds": usage.cpu_seconds,
                "execution_time_seconds": usage.wall_seconds, "max_processes": usage.processes}
        exceeded = [name for name, most in self.limits.items() if used[name] > most]
        return LimitStatus(not exceeded, exceeded, usage)

    def terminate_if_exceeded(self, session_id: str) -> bool:
        """Kills the process and what it started if it is beyond a limit; whether it was."""
        session = self._session(session_id)
        if self.check_limits(session_id).within_limits:
            return False
        for _ in range(50):  # what is started meanwhile as well
            tree = _tree(session.process_id)
            if not tree:
                break
            for pid, start, _ticks in tree:
                _kill(pid, start)
            time.sleep(0.01)
        return True

    def get_performance_metrics(self, session_id: str) -> PerformanceMetrics:
        session = self._session(session_id)
        samples, last = session.samples, session.samples[-1]
        return PerformanceMetrics(len(samples), last.wall_seconds, last.cpu_seconds, 100 * last.cpu_seconds / max(last.wall_seconds, 1e-9),
                                  max(one.memory_bytes for one in samples), sum(one.memory_bytes for one in samples) / len(samples),
                                  max(one.processes for one in samples))

    def stop_monitoring(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)


def _fields(path: str) -> Dict[str, int]:
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if value.split() and value.split()[0].isdigit()}


def _memory(pid: int) -> int:
    """Its share of what it shares, where that is told."""
    pss = _fields(f"/proc/{pid}/smaps_rollup").get("Pss")
    return 1024 * (pss if pss is not None else _fields(f"/proc/{pid}/status").get("VmRSS", 0))


def _stat(pid: int) -> Optional[List[str]]:
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields


def _tree(root: int) -> List[Tuple[int, str, int]]:
    """The process and all below it that live: pid, when it was started, CPU time."""
    children: Dict[int, List[int]] = {}
    stats = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := _stat(int(name)))}
    for pid, stat in stats.items():
        children.setdefault(int(stat[1]), []).append(pid)
    found, open_ = [], [root]
    while open_:
        pid = open_.pop()
        if pid in stats:
            found.append((pid, stats[pid][19], int(stats[pid][11]) + int(stats[pid][12])))
            open_ += children.get(pid, [])
    return found


def _kill(pid: int, start: str) -> None:
    """The process that this is, and not another that has its number meanwhile."""
    assert pid > 1
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        stat = _stat(pid)
        if stat and stat[19] == start:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        pass  # it has just ended
    finally:
        os.close(pidfd)


@dataclass
class ExecutionContext:
    timeout: Optional[float] = None
    limits: Optional[Json] = None
    env: Optional[Dict[str, str]] = None
    files: Optional[Json] = None
    packages: Optional[List[str]] = None
    policy: Optional[str] = None
    network_access: bool = False
    environment: Optional["Environment"] = None  # of prepare_environment: the program finds what others have left there


@dataclass
class ExecutionResult:
    status: str
    output: str
    error: Optional[str]
    exit_code: Optional[int]
    execution_time: float
    resource_usage: Json
    execution_id: str
    result: Any = field(repr=False, default=None)  # Result or CommandResult

    @property
    def success(self) -> bool:
        return self.status == "success"


@dataclass
class Environment:
    env_id: str
    language: str
    sandbox: Sandbox = field(repr=False)


@dataclass
class ExecutionRecord:
    execution_id: str
    language: str
    status: str
    started: str
    execution_time: float
    memory_peak_bytes: int
    risk: Optional[str]
    record: Json = field(repr=False)


class ExecutionEngine:
    """Runs programs that the security manager lets pass, with the resource monitor's limits where the context names none."""

    # how a program of the language is run in an environment: name of its file, command
    LANGUAGES = {"python": ("main.py", ["python3", "main.py"]), "javascript": ("main.js", ["node", "main.js"]), "shell": ("main.sh", ["bash", "main.sh"])}

    def __init__(self, security_manager: Optional[SecurityManager] = None, resource_monitor: Optional[ResourceMonitor] = None,
                 client: Optional[Client] = None):
        self.security_manager, self.resource_monitor, self.client = security_manager, resource_monitor, client or Client()
        self._environments: Dict[str, Environment] = {}

    def _limits(self, context: ExecutionContext) -> Json:
        limits = dict(self.resource_monitor.limits) if self.resource_monitor else {}
        if context.timeout is not None:
            limits.pop("execution_time_seconds", None)
        whole = ("memory_mb", "max_processes")
        return {**{name: int(value) if name in whole else value for name, value in limits.items()}, **(context.limits or {})}

    def execute_code(self, code: str, language: str, context: Optional[ExecutionContext] = None) -> ExecutionResult:
        context = context or ExecutionContext()
        if self.security_manager:
            judged = self.security_manager.validate(code, language)
            if not judged.is_valid:
                why = "; ".join(f"line {one['line']}: {one['why']} ({one['rule']})" for one in judged.violations) or "The policy refuses it"
                return ExecutionResult("blocked", "", why, None, 0.0, {}, "", judged)
        if context.environment:
            return self._execute_in(context.environment, code, context)
        result = self.client.run(code, language, timeout=context.timeout, limits=self._limits(context) or None, env=context.env, files=context.files,
                                 packages=context.packages, policy=context.policy, network_access=context.network_access or None)
        return _of_result(result)

    def _execute_in(self, environment: Environment, code: str, context: ExecutionContext) -> ExecutionResult:
        name, command = self.LANGUAGES[environment.language]
        for path, content in (context.files or {}).items():
            environment.sandbox.write_file(path, content)
        environment.sandbox.write_file(name, code)
        done = environment.sandbox.run(command, timeout=context.timeout, env=context.env)
        usage = {"cpu_time": done.usage["cpu_user_seconds"] + done.usage["cpu_system_seconds"], "memory_peak": _text_of_size(done.usage["memory_peak_bytes"]),
                 "disk_usage": _text_of_size(done.usage["disk_bytes"])} if done.reply.get("usage") else {}
        return ExecutionResult(done.status, done.stdout, done.error, done.exit_code, (done.reply.get("usage") or {}).get("wall_seconds", 0.0), usage, done.id, done)

    def prepare_environment(self, language: str) -> Environment:
        """A sandbox in which programs run one after the other."""
        if language not in self.LANGUAGES:
            raise NacreError(f"There are no environments for {language}", code="bad_language", remedy=f"One of {', '.join(self.LANGUAGES)}")
        sandbox = self.client.sandbox()
        environment = Environment(sandbox.id, language, sandbox)
        self._environments[environment.env_id] = environment
        return environment

    def cleanup_environment(self, env_id: str) -> bool:
        environment = self._environments.pop(env_id, None)
        if not environment:
            return False
        environment.sandbox.destroy()
        return True

    def get_execution_history(self, limit: int = 100) -> List[ExecutionRecord]:
        return [ExecutionRecord(one["id"], one["language"], one["status"], one["started"], one["wall_seconds"], one["memory_peak_bytes"],
                                one.get("risk"), one) for one in self.client.history(limit)]


def _text_of_size(size: int) -> str:
    """As executions have it: rounded up."""
    return f"{-(-size // (1 << 20))}MB" if size >= 1 << 20 else f"{-(-size // 1024)}KB"


def _of_result(result: Result) -> ExecutionResult:
    reply = result.reply
    return ExecutionResult(reply["status"], reply.get("output", ""), reply.get("error"), reply.get("exit_code"), reply.get("execution_time") or 0.0,
                           reply.get("resource_usage") or {}, reply["id"], result)
