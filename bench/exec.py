"""A cold box per command, beside its peers in one interleaved run.

    /usr/bin/python3 bench/exec.py BUILD_DIR [--quick] [--write]

Every row is one process that is started and waited for by the same code (posix_spawn and waitpid), in
a helper process of the row's user, so that noise of the machine meets all rows alike. Peers that are
not installed are skipped by name. --write keeps the table in bench/RESULTS.md.
"""

import argparse
import ctypes
import datetime
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import RESULTS, put

NOBODY = 65534
ROUNDS, QUICK_ROUNDS = 120, 25
MANY = 200
TRUE = ["/bin/true"]
PYTHON = ["/usr/bin/python3", "-c", "pass"]
PROGRAMS = ("nacre", "nacre-spawner", "nacre-recorder", "nacre-init", "nacre-files")
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def time_one(argv):
    """Nanoseconds from the start to the reaping, and the wait status."""
    started = time.monotonic_ns()
    pid = os.posix_spawn(argv[0], argv, ENV, file_actions=[
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status = os.waitpid(pid, 0)
    return time.monotonic_ns() - started, status


class Helper:
    """A process that times commands as the given user."""

    def __init__(self, uid, prepare=None):
        requests, self._ask = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            os.close(self._answers)
            if prepare:
                prepare()
            self._serve(uid, os.fdopen(requests), os.fdopen(answers, "w"))
            os._exit(0)
        os.close(requests)
        os.close(answers)
        self._ask = os.fdopen(self._ask, "w")
        self._answers = os.fdopen(self._answers)

    @staticmethod
    def _serve(uid, requests, answers):
        os.chdir("/")
        if uid != os.getuid():
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        for line in requests:
            argv = json.loads(line)
            if argv is None:  # not the end of the pipe: later helpers hold it open too
                return
            print(*time_one(argv), file=answers, flush=True)

    def time(self, argv):
        print(json.dumps(argv), file=self._ask, flush=True)
        ns, status = map(int, self._answers.readline().split())
        return ns / 1e6, status

    def close(self):
        print("null", file=self._ask, flush=True)
        os.waitpid(self._pid, 0)


def bwrap(command):
    """As many namespaces as nacre has, the host's /usr, its links, and fresh /proc, /dev and /tmp."""
    argv = [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            argv += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            argv += ["--ro-bind", str(path), str(path)]
    for path in ("/etc/alternatives", "/etc/ld.so.cache"):
        argv += ["--ro-bind-try", path, path]
    return argv + ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", *command]


def make_rootfs(root):
    for name in ("usr", "proc", "dev", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            (root / name).symlink_to(os.readlink(path))


def make_bundle(directory, command):
    """The least that is comparable: same namespaces, a mapped range of ids, limits; no seccomp."""
    directory.mkdir()
    make_rootfs(directory / "rootfs")
    ids = [{"containerID": 0, "hostID": 1_700_000_000, "size": 65536}]
    config = {
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 1000, "gid": 1000}, "args": command, "cwd": "/", "noNewPrivileges": True,
                    "env": [f"{name}={value}" for name, value in ENV.items()],
                    "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted", "inheritable")}},
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "box",
        "mounts": [
            {"destination": "/usr", "type": "none", "source": "/usr", "options": ["rbind", "ro", "nosuid", "nodev"]},
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]}],
        "linux": {
            "namespaces": [{"type": name} for name in ("user", "mount", "pid", "network", "ipc", "uts", "cgroup")],
            "uidMappings": ids, "gidMappings": ids,
            "cgroupsPath": f"/nacre-bench-{directory.name}",
            "resources": {"memory": {"limit": 512 << 20}, "pids": {"limit": 100}}},
    }
    (directory / "config.json").write_text(json.dumps(config))


def own_mounts():
    """Enters a mount namespace of its own; returns libc."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, private = 0x20000, 0x44000
    if libc.unshare(new_mounts) or libc.mount(None, b"/", None, private, None):
        raise OSError(ctypes.get_errno(), "make a mount namespace")
    return libc


def hide_unified():
    """crun refuses hosts whose version 2 tree has controllers beside version 1: it is shown none."""
    detach = 2
    own_mounts().umount2(b"/sys/fs/cgroup/unified", detach)  # where there is one


def mount_many(top):
    """As on a host of containers: a mount namespace with MANY more mounts."""
    libc = own_mounts()
    for i in range(MANY):
        place = top / "mounts" / str(i)
        place.mkdir(parents=True, exist_ok=True)
        if libc.mount(b"none", bytes(place), b"tmpfs", 0, b"size=4k"):
            raise OSError(ctypes.get_errno(), "mount")


def oci(runtime, top, command=TRUE):
    """A row of an OCI runtime; ids of containers are used once."""
    bundle = top / runtime
    make_bundle(bundle, command)
    path = shutil.which(runtime)
    count = iter(range(10 ** 9))
    return lambda: [path, "--root", str(top / f"{runtime}-state"), "run", "--bundle", str(bundle),
                    f"nacre-bench-{os.getpid()}-{next(count)}"]


def copy_programs(build, top):
    """Where everybody may run them."""
    target = top / "programs"
    target.mkdir()
    for name in (*PROGRAMS, *(path.name for path in build.glob("nacre-exec"))):
        shutil.copy(build / name, target / name)
    return target / "nacre"


def compile_c(source, program, *words, root=RESULTS.parent.parent):
    """Whether that worked; what is left out is said."""
    command = ["cc", "-O2", "-D_GNU_SOURCE", "-std=gnu17", f"-I{root}/include", f"-I{root}/src", "-o", program, root / "bench" / source, *words]
    if shutil.which("cc") and subprocess.run(command, check=False).returncode == 0:
        return True
    print(f"skipped: bench/{source} cannot be compiled", file=sys.stderr)
    return False


def build_floor(build):
    """bench/floor.c, as nacre-spawner is built and beside nacre-init; None where that fails."""
    if subprocess.run(["ninja", "-C", build, "bench-floor"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        return str(build.resolve() / "bench-floor")
    print("skipped: bench/floor.c cannot be built", file=sys.stderr)
    return None


def make_rows(build, top):
    """name -> (which helper, function that returns the command)."""
    nacre, floor = str(copy_programs(build, top)), build_floor(build)
    rows = {
        "bare true": (0, lambda: TRUE),
        "nacre exec true": (0, lambda: [nacre, "exec", "--", *TRUE]),
        "bwrap true": (0, lambda: bwrap(TRUE)),
        "nacre exec true, uid 65534": (NOBODY, lambda: [nacre, "exec", "--", *TRUE]),
        "bwrap true, uid 65534": (NOBODY, lambda: bwrap(TRUE)),
        f"nacre exec true, {MANY} mounts": ("many", lambda: [nacre, "exec", "--", *TRUE]),
        f"bwrap true, {MANY} mounts": ("many", lambda: bwrap(TRUE)),
        f"nacre exec true, uid 65534, {MANY} mounts": ("many, nobody", lambda: [nacre, "exec", "--", *TRUE]),
        f"bwrap true, uid 65534, {MANY} mounts": ("many, nobody", lambda: bwrap(TRUE)),
        "bare python3": (0, lambda: PYTHON),
        "nacre exec python3": (0, lambda: [nacre, "exec", "--", *PYTHON]),
        "bwrap python3": (0, lambda: bwrap(PYTHON)),
    }
    if floor:
        rows["floor: namespaces, root, Landlock, filter"] = (0, lambda: [floor, *TRUE])
        if Path("/sys/fs/cgroup/unified").is_dir():  # the groups that it makes
            rows["floor: all layers"] = (0, lambda: [floor, "--layers", *TRUE])
    for runtime in ("crun", "runc"):
        if shutil.which(runtime):
            rows[f"{runtime} run true"] = (runtime, oci(runtime, top))
    for tool in ("bwrap", "crun", "runc"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed", file=sys.stderr)
            rows = {name: row for name, row in rows.items() if not name.startswith(tool)}
    return rows


def drop_broken(rows, helpers):
    """Runs each row once, which also warms the caches."""
    good = {}
    for name, (uid, command) in rows.items():
        _, status = helpers[uid].time(command())
        if status == 0:
            good[name] = (uid, command)
        else:
            print(f"skipped: {name} ends with wait status {status}", file=sys.stderr)
    return good


def measure(rows, helpers, rounds):
    """In another order each time: what one leaves to the kernel (a net namespace takes 25 ms to go) is load for the next."""
    times = {name: [] for name in rows}
    shuffled = random.Random(1)
    for _ in range(rounds):
        for name, (uid, command) in shuffled.sample(list(rows.items()), len(rows)):
            ms, status = helpers[uid].time(command())
            if status != 0:
                raise SystemExit(f"{name}: wait status {status}")
            times[name].append(ms)
    return times


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def peer_of(name, kind):
    """The row of another tool with the same program, user and mounts."""
    program = "python3" if "python3" in name else "true"
    terms = name.partition(program)[2] if kind == "bwrap" else ""
    return f"{kind} {program}{terms}"


def ratio(times, name, kind):
    peer = times.get(peer_of(name, kind))
    return f"{quantile(times[name], .5) / quantile(peer, .5):.2f}" if peer else "-"


def table(times):
    lines = ["| command | p50 ms | p99 ms | min ms | to bwrap | to bare |", "|---|---|---|---|---|---|"]
    for name, values in times.items():
        cells = [f"{quantile(values, .5):.2f}", f"{quantile(values, .99):.2f}", f"{min(values):.2f}",
                 ratio(times, name, "bwrap"), ratio(times, name, "bare")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def machine():
    model = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    cgroups = "version 2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "version 1 or hybrid"
    return f"{os.cpu_count()} x {model[0] if model else platform.machine()}, Linux {platform.release()}, " \
           f"control groups {cgroups}, load {os.getloadavg()[0]:.1f}"


def measure_spawner(build, top, rounds):
    """Tables of boxes inside a running spawner, back to back and with time to prepare."""
    program = top / "bench-spawner"
    parts = []
    compiled = compile_c("spawner.c", program, build / "src/libkernel.a", build / "src/libbase.a")
    for title, pause_ms in (("back to back", 0), ("10 ms apart", 10)) if compiled else ():
        done = subprocess.run([program, build.resolve() / "nacre-spawner", str(rounds), str(pause_ms)],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=300)
        parts.append(f"Boxes inside a running spawner, {title}:\n\n{done.stdout.rstrip()}")
    return parts


def versions():
    found = []
    for tool in ("bwrap", "crun", "runc"):
        path = shutil.which(tool)
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            found.append(text.splitlines()[0] if text else tool)
    return ", ".join(found)


def write_results(text, rounds):
    command = "/usr/bin/python3 bench/exec.py " + " ".join(sys.argv[1:])
    put("exec", f"- date: {datetime.date.today()}\n- machine: {machine()}\n- peers: {versions()}\n"
                f"- command: `{command}` ({rounds} interleaved rounds)\n\n{text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, metavar="BUILD_DIR")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds instead of {ROUNDS}")
    parser.add_argument("--write", action="store_true", help="write bench/RESULTS.md")
    args = parser.parse_args()
    if os.getuid() != 0:
        raise SystemExit("bench/exec.py needs root: it measures as root and as uid 65534")
    rounds = QUICK_ROUNDS if args.quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="nacre-bench-") as name:
        top = Path(name)
        top.chmod(0o755)
        helpers = {0: Helper(0), NOBODY: Helper(NOBODY), "crun": Helper(0, hide_unified), "runc": Helper(0),
                   "many": Helper(0, lambda: mount_many(top)), "many, nobody": Helper(NOBODY, lambda: mount_many(top))}
        rows = drop_broken(make_rows(args.build, top), helpers)
        parts = [table(measure(rows, helpers, rounds)), *measure_spawner(args.build, top, rounds)]
        for helper in helpers.values():
            helper.close()
    text = "\n\n".join(parts)
    print(f"{machine()}\n\n{text}")
    if args.write:
        write_results(text, rounds)


if __name__ == "__main__":
    main()
