"""What engines could leave on a machine on which others are at work too."""

import ctypes
import os
import pathlib
import subprocess
import time

from conftest import NOBODY

PR_SET_CHILD_SUBREAPER = 36
LOCKS = [pathlib.Path("/run/nacre/spawners"), pathlib.Path(f"/tmp/nacre-run-{NOBODY}/spawners")]
SCRATCH = [pathlib.Path("/var/lib/nacre-boxes"), pathlib.Path(f"/tmp/nacre-{NOBODY}")]


def descendants(pid):
    """Pids below pid that live."""
    listing = subprocess.Popen(["ps", "-eo", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True)
    words = listing.communicate()[0].split()
    rows = [(int(words[i]), int(words[i + 1])) for i in range(0, len(words), 3) if words[i + 2][0] != "Z"]
    found, fresh = set(), {pid}
    while fresh:
        fresh = {child for child, parent in rows if parent in fresh and child != listing.pid} - found
        found |= fresh
    return found


def our_groups():
    """Groups that Nacre, or a probe of it, made anywhere on this machine."""
    return set(subprocess.run(["find", "/sys/fs/cgroup", "-name", "nacre-*"], capture_output=True, text=True).stdout.split())


def lives(pid):
    """Not ended; whoever is process 1 here may be slow to wait for it, or never do."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def outlivers(pids, seconds=20):
    """Those that have not ended by then, by name: who works beside a daemon ends after it, since it sees that end."""
    until = time.monotonic() + seconds
    while (left := [pid for pid in pids if lives(pid)]) and time.monotonic() < until:
        time.sleep(0.05)
    return {pid: pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in left if lives(pid)}


def reap_orphans():
    """As process 1 would: the first process of a pid namespace does not end before its children are waited for."""
    done = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.split()[1][0] == "Z":
            os.waitpid(int(line.split()[0]), os.WNOHANG)


def spawners_gone():
    """Control groups and scratch directories, by path, whose spawner does not live: its lock is free."""
    held = {line.split()[5].split(":")[-1] for line in pathlib.Path("/proc/locks").read_text().splitlines() if "->" not in line}
    places = [path for place in SCRATCH if place.is_dir() for path in place.glob("sp_*")]
    for place, names, _ in os.walk("/sys/fs/cgroup", onerror=lambda error: None):
        places += [pathlib.Path(place, name) for name in names if name.startswith("nacre-sp_")]
        if place.count("/") >= 6:
            names.clear()
    found = set()
    for path in places:
        name = path.name.removeprefix("nacre-")
        locks = [lock / name for lock in LOCKS if (lock / name).exists()]
        if not any(str(lock.stat().st_ino) in held for lock in locks) and path.exists():
            found.add(path)
    return found


def adopt_orphans(wanted):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


class Leftovers:
    """Whatever is orphaned below this process stays below it, so that it can be counted; until check(), since nobody waits for it later."""

    def __init__(self):
        adopt_orphans(True)
        self.processes = descendants(os.getpid())
        self.paths = spawners_gone()

    def now(self):
        reap_orphans()
        return (descendants(os.getpid()) - self.processes), (spawners_gone() - self.paths)

    def check(self):
        """Locks of others come and go while we look; what is left stays."""
        deadline = time.monotonic() + 10
        while any(left := self.now()) and time.monotonic() < deadline:
            time.sleep(0.1)
        adopt_orphans(False)
        assert not any(left), left
