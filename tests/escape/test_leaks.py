"""Nothing is left: processes (and with them their namespaces), mounts, locks, cgroups, files; however a run ends."""

import os
import pathlib
import signal
import subprocess
import time
import uuid

import pytest
from harness import MODES, OUTER, USER, Host, func


# where spawners keep their own locks: root's, and those of users without a session
SPAWNERS = [pathlib.Path("/run/nacre/spawners"), pathlib.Path(f"/tmp/nacre-run-{USER}/spawners")]


class Traces:
    """What a run could leave on this machine; only what has our mark is counted, since others work here too."""

    def __init__(self, binaries, kills=False):
        self.kills = kills  # this test kills spawners
        self.mark = f"mark-{uuid.uuid4().hex[:12]}"
        self.binaries = str(binaries)
        self.spawners = set()  # pids, as text, of what we started
        self.family = set()  # and of everything below: pid and start, since numbers come again
        self.mounts = self._mounts()
        self.files = self._files()
        self.cgroups = self._cgroups()

    def _cgroups(self):
        """Not by glob, which stumbles over groups that vanish meanwhile; ours are near the top of each hierarchy."""
        found = set()
        for place, names, _ in os.walk("/sys/fs/cgroup", onerror=lambda error: None):
            found |= {pathlib.Path(place, name) for name in names if "nacre-sp_" in name or "nacre-sp_" in place}  # unit tests of others have other names
            if place.count("/") >= 6:
                names.clear()
        return found

    def _mounts(self):
        """Mounts in places where a box's own would show; below /tmp others may be at work."""
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        return {line for line in lines if not line.split()[4].startswith("/tmp/")}

    def _files(self):
        """Files of users that only boxes and our ordinary user are, and what process boxes and user's locks leave."""
        places = (pathlib.Path("/tmp"), pathlib.Path("/var/tmp"), pathlib.Path("/dev/shm"), pathlib.Path("/"))
        found = {path for place in places for path in place.iterdir() if "nacre" in path.name and owner_of(path) >= func.NOBODY}
        found -= {SPAWNERS[1].parent}  # stays, like /run/nacre
        if self.kills and not a_spawner_lives():  # else they are surely those of somebody else's
            found |= {path for place in (*SPAWNERS, pathlib.Path("/tmp/nacre-0"), pathlib.Path(f"/tmp/nacre-{USER}")) for path in place.glob("sp_*")}
        return found

    def locks(self):
        """Locks whose holder is one of ours, or gone; and ranges that are held while no spawner lives."""
        held = []
        for line in pathlib.Path("/proc/locks").read_text().splitlines():
            if "->" in line:
                continue
            pid, inode = line.split()[4], line.split()[5].split(":")[-1]
            if pid in self.spawners and inode in lock_inodes():
                held.append(line)
        if os.path.exists("/run/nacre/ids") and not a_spawner_lives():
            held += [f"range {index}" for index in bytes_locked()]
        return held

    def processes(self):
        """Processes of ours: our mark or our copy of the programs in the command line, or a child of such a box."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                text = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if self.mark.encode() in text or self.binaries.encode() in text:
                found.append((entry.name, text[:100]))
        return found

    def left(self):
        left = [f"process {process}" for process in self.processes()]
        left += [f"process {describe(pid)}" for pid, started in self.family if started_at(pid) == started]
        left += [f"mount {line}" for line in self._mounts() - self.mounts]
        left += [f"file {path}" for path in self._files() - self.files]
        left += [f"lock {line}" for line in self.locks()]
        if not a_spawner_lives():  # else groups may be those of somebody else's
            left += [f"cgroup {path}" for path in self._cgroups() - self.cgroups]
        return left

    def assert_none(self, seconds=3):
        """What is there in every look until the end; groups and files of others come and go."""
        end = time.monotonic() + seconds
        left = set(self.left())
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left &= set(self.left())
        assert not left


def started_at(pid):
    """When a living process was started; None if it is gone, or only waits to be reaped."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def describe(pid):
    try:
        return pid, pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return pid, "gone"


def descendants(pid):
    found = {(pid, started_at(pid))} - {(pid, None)}
    try:
        children = children_of(pid)
    except OSError:
        children = []
    return found.union(*(descendants(child) for child in children))


def owner_of(path):
    try:
        return path.lstat().st_uid
    except OSError:
        return 0


def lock_inodes():
    """Of the file with a byte for each range of ids, and of the files that spawners hold while they live."""
    found = set()
    for path in (pathlib.Path("/run/nacre/ids"), *(path for place in SPAWNERS for path in place.glob("sp_*"))):
        try:
            found.add(str(path.stat().st_ino))
        except OSError:
            continue
    return found


def bytes_locked():
    """The ranges of ids that anybody holds: open file descriptions hold them, so /proc/locks knows no pid (-1)."""
    inode = str(os.stat("/run/nacre/ids").st_ino)
    lines = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines() if "->" not in line]
    return {int(words[6]) for words in lines if words[1] == "OFDLCK" and words[5].split(":")[-1] == inode}


def a_spawner_lives():
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == "nacre-spawner\n":
                return True
        except OSError:
            continue
    return False


@pytest.fixture
def traces(runner, request):
    return Traces(runner.binaries, request.function in (test_kill_during_birth, test_end_in_the_middle))


def box(runner, traces, mode, script, *options):
    """The command line of a box whose processes carry the mark; the program says "up" when it runs."""
    return runner.nacre(mode, *options, "--", "sh", "-c", f"echo up; {script}", traces.mark)


# a family that clings to life: daemons that ignore everything, and a foreground that waits
CLINGING = "trap '' TERM INT HUP QUIT PIPE; (setsid sh -c \"trap '' TERM INT HUP; while :; do sleep 1; done\" \"$0\" >/dev/null &) ; while :; do sleep 1; done"


def start(runner, traces, mode, script=CLINGING, *options):
    process = subprocess.Popen(box(runner, traces, mode, script, "--pids", "16", *options), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")
    traces.spawners.add(str(process.pid))
    assert process.stdout.readline() == b"up\n"
    traces.family |= descendants(process.pid)
    assert len(traces.family) >= 4  # spawner, worker, nacre-init, the program
    return process


def run_box(traces, words):
    """Runs it to its end; the exit status."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/") as process:
        traces.spawners.add(str(process.pid))
        process.communicate(timeout=30)
        return process.returncode


def children_of(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def worker_of(spawner):
    """The spawner is the process that we started; its first child is the worker."""
    workers = [pid for pid in children_of(spawner) if b"exec" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    return workers[0]


FIFTY = 'n=0; while [ $n -lt 50 ]; do "$@" "exit $n"; [ $? = $n ] || exit 1; n=$((n + 1)); done'
TEN = 'for n in 1 2 3 4 5 6 7 8 9 10; do ("$@" "(setsid sleep 30 >/dev/null 2>&1 &); sleep 0.3; exit 3"; echo $?) & done; wait'


@pytest.mark.parametrize("mode", MODES)
def test_fifty_boxes_in_a_row(runner, traces, mode):
    """In the wrapper's pid namespace, which sees every process that is left, whatever its name."""
    with Host() as host:
        result = runner.run(mode, host, ["sh", "-c", FIFTY, "sh", *runner.nacre(mode, "--", "sh", "-c")], within=60)
    assert (result.hung, result.code, result.left) == (False, 0, ()), result
    traces.assert_none()


@pytest.mark.parametrize("mode", MODES)
def test_ten_boxes_at_once(runner, traces, mode):
    with Host() as host:
        result = runner.run(mode, host, ["bash", "-c", TEN, "bash", *runner.nacre(mode, "--pids", "8", "--", "sh", "-c")], within=60)
    assert (result.hung, result.left, result.output.split()) == (False, (), ["3"] * 10), result
    traces.assert_none()


def kill_worker(spawner):
    os.kill(worker_of(spawner), signal.SIGKILL)


def kill_spawner(spawner):
    os.kill(spawner, signal.SIGKILL)


def kill_both(spawner):
    worker = worker_of(spawner)
    os.kill(spawner, signal.SIGKILL)
    try:
        os.kill(worker, signal.SIGKILL)
    except ProcessLookupError:
        pass


def terminate(spawner):
    os.kill(spawner, signal.SIGTERM)


def interrupt_group(spawner):
    os.killpg(spawner, signal.SIGINT)


def hang_up_group(spawner):
    os.killpg(spawner, signal.SIGHUP)


# the exit status that the caller sees; None: the process that we started was killed itself
ENDS = {kill_worker: 137, kill_spawner: None, kill_both: None, terminate: None, interrupt_group: 130, hang_up_group: 129}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_end_in_the_middle(runner, traces, mode, end):
    process = start(runner, traces, mode)
    end(process.pid)
    code = process.wait(10)
    process.stdout.close()
    if end in (kill_spawner, kill_both):  # its groups are empty, and the next spawner's to sweep
        assert subprocess.run(runner.nacre(mode, "--", "true")).returncode == 0
    traces.assert_none()
    if ENDS[end] is not None:
        assert code == ENDS[end]


@pytest.mark.parametrize("mode", MODES)
def test_end_by_timeout(runner, traces, mode):
    process = start(runner, traces, mode, CLINGING, "--timeout", "1500ms")
    assert process.wait(10) == 124
    process.stdout.close()
    traces.assert_none()


@pytest.mark.parametrize("mode", MODES)
def test_end_by_closed_output(runner, traces, mode):
    """Who reads our output goes away, and the program prints on."""
    process = start(runner, traces, mode, "while :; do echo more; done")
    process.stdout.close()
    process.wait(10)
    traces.assert_none()


@pytest.mark.parametrize("mode", MODES)
def test_kill_during_birth(runner, traces, mode):
    """SIGKILL to the spawner at moments all over the birth of a box: a half-made box must not live on."""
    for step in range(12):
        process = subprocess.Popen(box(runner, traces, mode, "sleep 30"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        traces.spawners.add(str(process.pid))
        time.sleep(step * 0.0015)
        process.kill()
        process.wait()
    assert subprocess.run(runner.nacre(mode, "--", "true")).returncode == 0  # sweeps their groups
    traces.assert_none()


def test_failed_birth_leaves_nothing(runner, traces):
    """A command that does not exist, ten times: it fails at the last step of the birth: boxes are undone."""
    for _ in range(10):
        assert run_box(traces, runner.nacre("root", "--", f"/nonexistent/{traces.mark}")) == 127
    traces.assert_none()


def test_the_count_itself_finds_a_leak(runner, traces):
    """A control: a process with the mark is counted."""
    process = subprocess.Popen([*OUTER, "sh", "-c", "sleep 30; :", traces.mark])
    try:
        end = time.monotonic() + 3
        while not traces.left() and time.monotonic() < end:
            time.sleep(0.02)
        assert traces.left()
    finally:
        process.kill()
        process.wait()
    traces.assert_none()
