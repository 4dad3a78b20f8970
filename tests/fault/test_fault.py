"""Every system call on the way to a box fails once: the box is as strong as without the fault, or there is none.

One good run is traced; then each of its calls, from the first of nacre-spawner to the execve of the command, is made
to fail in a run of its own by inject.c. NACRE_FAULT_ALL=1 takes every call with every error instead of a sample;
NACRE_FAULT_LOG=FILE gets what was wrong and how often each message came.
"""

import collections
import errno
import json
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("NACRE_BUILD", HERE.parents[1] / "build"))
PROGRAMS = ("nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-init", "nacre-files", "nacre-sudo", *(path.name for path in BUILD.glob("nacre-exec")))
UNISTD = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
LOCKS = pathlib.Path("/run/nacre/spawners")
USERS = {"root": 0, "user": 65534, "rootbox": 0}
# as root of a box whose root can be written to, which is that of an image: the host's /usr would be looked through call by call
OPTIONS = {"rootbox": ["--user", "root", "--writable-root", "--image", "fault"]}
APPLETS = ("readlink", "hostname", "sh")
ALL = os.environ.get("NACRE_FAULT_ALL") == "1"
FIRST_ID = 0x6fffffff  # the worker's user id; those of boxes are above it
HANG_SECONDS = 20
KNOWN_HANG_SECONDS = 3  # less patience with calls that are known to hang
SETTLE_SECONDS = 2
MARK = f"nacre-fault-{os.getpid()}-mark"  # an argument of the payload, by which pgrep finds nobody else's

ERRORS = (errno.ENOSYS, errno.EPERM, errno.ENOMEM)
# How many of equal calls in one process are taken, by user.
SPREAD = {"root": 12, "user": 4, "rootbox": 4}

# The calls that make the walls: with every error.
WALLS = frozenset("""capset clone clone3 fsconfig fsmount fsopen landlock_add_rule landlock_create_ruleset
    landlock_restrict_self mkdirat mount mount_setattr move_mount open_tree pivot_root prctl seccomp setgroups setns
    setresgid setresuid umount2 unshare write""".split())

# Calls that cannot fail this way: the kernel never refuses them, or (close) does the work whatever it says, or (brk) has
# no error numbers; and libc's own in a new child.
NEVER_FAIL = frozenset("""arch_prctl brk close exit exit_group getegid geteuid getgid getpid getppid getuid rseq rt_sigreturn
    set_robust_list set_tid_address umask""".split())

# Faults that make another box by decision, not by mistake, as far as limits and Landlock go: (role, call, error) -> why.
ACCEPTED = {
    ("payload", "landlock_create_ruleset", errno.ENOSYS):
        "a kernel without Landlock says the same; the doctor grades it (access), and the mounts are the first wall",
    ("spawner", "mkdirat", errno.EPERM):
        "control groups that are not ours to make: cgroup_box.h takes that for a host without them",
    ("spawner", "openat", errno.EPERM): "the same",
}

# Bugs that this test has found and that are not fixed yet. A line goes with its fix.
Bug = collections.namedtuple("Bug", "role calls pattern why")
NO_WORD = r"no message that says what failed: ''$"
KNOWN = []

# Of the torture.
KNOWN_NOISE = []

# What the command says about the walls around it, and then a line that ends it: a payload that was cut is no proof.
PAYLOAD = """echo RAN
while read -r name value; do case $name in NoNewPrivs:|Seccomp*:|Cap*|Uid:|Gid:|Groups:)
echo "status $name $value"; esac; done </proc/self/status
while read -r line; do echo "group $line"; done </proc/self/cgroup
while read -r line; do echo "rlimit $line"; done </proc/self/limits
while read -r line; do echo "mount $line"; done </proc/self/mountinfo
read -r line </proc/sys/user/max_user_namespaces; echo "spaces $line"
for name in user mnt pid net ipc uts cgroup; do echo "ns $name $(readlink /proc/$$/ns/$name)"; done
for name in /proc/$$/fd/*; do echo "fd $name"; done
echo "host $(hostname)"
( : >/canary ) 2>/dev/null && echo "writable /"
( : >/usr/canary ) 2>/dev/null && echo "writable /usr"
( : >/proc/sys/kernel/hostname ) 2>/dev/null && echo "writable /proc/sys"
echo END"""

Fault = collections.namedtuple("Fault", "role process execs call number when error")
Result = collections.namedtuple("Result", "hit code spawner problems strength output stderr seconds")


def numbers():
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", UNISTD.read_text())}


@pytest.fixture(scope="session")
def tools():
    """The injector, and programs that an ordinary user may execute wherever the build tree is."""
    if platform.machine() != "x86_64":
        pytest.skip("inject.c knows the registers of x86_64 only")
    if os.geteuid() != 0:
        pytest.skip("needs root")
    # not below pytest's own directory, whose mode any other pytest of root's sets back to 0700
    directory = pathlib.Path(tempfile.mkdtemp(prefix="fault-"))
    directory.chmod(0o755)
    for name in PROGRAMS:
        shutil.copy(BUILD / name, directory / name)
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", HERE / "inject.c", "-o", directory / "inject"], check=True)
    yield directory
    shutil.rmtree(directory)


class Host:
    """What a box could leave on the host; inject.c counts processes and mounts. Groups and locks count when no living
    spawner holds them."""

    def __init__(self):
        self.before = self.now()

    @staticmethod
    def group_dirs():
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for top in (controllers.removeprefix("name="), "unified" if not controllers else ""):
                yield from {pathlib.Path(f"/sys/fs/cgroup/{top}{path}"), pathlib.Path(f"/sys/fs/cgroup/{top}")}

    def abandoned(self):
        held = {line.split()[5].rsplit(":", 1)[1] for line in pathlib.Path("/proc/locks").read_text().splitlines()
                if " FLOCK " in line and "->" not in line}
        found, living = set(), set()
        with os.scandir(LOCKS) as entries:
            for entry in entries:
                if entry.name.startswith("sp_"):
                    (living if str(entry.inode()) in held else found).add(entry.name)
        groups = {name.removeprefix("nacre-") for path in self.group_dirs() if path.is_dir() for name in os.listdir(path)
                  if name.startswith("nacre-sp_")}
        return {f"lock {name}" for name in found} | {f"group {name}" for name in groups - living}

    @staticmethod
    def files():
        """Entries of /tmp that belong to ids of boxes or workers."""
        found = set()
        for name in os.listdir("/tmp"):
            try:
                if os.lstat(f"/tmp/{name}").st_uid >= FIRST_ID:
                    found.add(f"file {name}")
            except FileNotFoundError:
                pass  # somebody else's, and gone
        return found

    def now(self):
        return (self.abandoned() if LOCKS.is_dir() else set()) | self.files()

    def left(self, spawner=None):
        """What is there that was not before, after a moment for what ends asynchronously. Others use this host too:
        if the id of the spawner is known, another one's groups and locks are not ours."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            new = {name for name in self.now() - self.before
                   if not spawner or spawner in name or not re.match("(lock|group) ", name)}
            if not new or time.monotonic() > deadline:
                self.before |= new
                return sorted(new)
            time.sleep(0.02)


def normal(line):
    """A line of the payload without what differs from box to box."""
    if line.startswith("mount "):  # ids of mounts, device numbers of file systems, user ids
        line = re.sub(r"^mount \d+ \d+ \d+:\d+", "mount", line)
        # a root of the box's own, or a copy of its spawner's (a second box soon after the first): the mount is the same
        line = re.sub(r" - tmpfs none r[ow],(size=1024k,nr_inodes=256,mode=755)(,uid=\d+)?(,gid=\d+)?$", r" - tmpfs none \1", line)
        return re.sub(r"\b[1-9]\d{9}\b", "ID", line)
    if line.startswith("ns "):
        _, name, link = line.split()
        return f"ns {name} {'host' if link == os.readlink(f'/proc/self/ns/{name}') else 'own'}"
    line = re.sub(r"nacre-sp_[0-9a-f]+/bx_\d+", "nacre-sp_ID/bx_N", line)
    return re.sub(r"^(fd /proc/)\d+", r"\1N", line)


class Lab:
    """Runs `nacre exec` behind the injector, as one user."""

    def __init__(self, tools, user):
        self.tools, self.user = tools, user
        self.report = tools / f"report-{user}"
        self.no_spawner = "nobody" if user == "user" else None  # an ordinary user has no locks and no groups

    def run(self, what, patience=HANG_SECONDS):
        """what: the words of inject.c between the user id and the command."""
        command = [self.tools / "inject", self.report, USERS[self.user], *what, "--",
                   self.tools / "nacre", "exec", *OPTIONS.get(self.user, []), "--", "sh", "-c", PAYLOAD, MARK]
        started = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd="/", text=True,
                                   env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NACRE_STATE": str(self.tools / "state")})
        problems = []
        try:
            output, stderr = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()  # everything traced dies with it
            output, stderr = process.communicate()
            problems.append(f"hangs for {patience} s")
        lines = [line.split() for line in self.report.read_text().splitlines()]
        return self.judge_report(lines, problems, output, stderr, time.monotonic() - started)

    @staticmethod
    def judge_report(lines, problems, output, stderr, seconds):
        hit, code, spawner, program, strength = False, None, None, None, []
        for kind, *words in lines:
            if kind == "hit":
                hit = True
            elif kind == "exit":
                code = int(words[0])
            elif kind == "spawner":
                spawner = words[0]
            elif kind in ("exec", "init"):
                program = words
            elif kind == "landlock":
                strength.append(f"landlock {words[0]}")
            elif kind == "limit" and program == Lab.payload_exec(lines):
                strength.append(f"limit {' '.join(words)}")
            elif kind in ("crash", "left", "mounts", "signal"):
                problems.append(f"{kind} {' '.join(words)}")
        strength += [normal(line) for line in output.splitlines()]
        return Result(hit, code, spawner, problems, strength, output, stderr, seconds)

    @staticmethod
    def payload_exec(lines):
        """Process and number of the payload's own exec: 0 to 2 are spawner, worker and process 1; transit has none."""
        execs = [words for kind, *words in lines if kind == "exec" and int(words[0]) >= 3]  # nor do process 1 of others count
        return execs[0] if execs else None

    def trace(self):
        """The calls of a good run up to the command's execve: [(role, process, execs, name, when)]."""
        result = self.run(["trace"])
        assert result.code == 0, result.stderr
        names = {number: name for name, number in numbers().items()}
        lines = [line.split() for line in self.report.read_text().splitlines()]
        payload = self.payload_exec(lines)
        end = lines.index(["exec", *payload])  # by then the spawner may have gone on
        while lines[end][:3] != ["call", payload[0], "0"]:
            end -= 1
        lines = lines[:end + 1]
        # nacre itself becomes the spawner, and what it has forked before libc was there is the worker
        roles = {("0", "1"): "nacre", ("0", "2"): "spawner", ("1", "0"): "worker", ("2", "0"): "first", ("2", "1"): "nacre-init", ("3", "0"): "transit", (payload[0], "0"): "payload"}
        loading = {("1", "0"), ("0", "2")}  # until libc has itself in place; before that it speaks for itself
        if self.user == "rootbox":  # which nacre reads itself before it forks; two processes hold namespaces for a moment, one writes root's maps
            roles |= {("4", "0"): "first", ("4", "1"): "nacre-init", ("6", "0"): "helper"}
            loading = {("0", "1")}
        seen, calls = collections.Counter(), []
        for process, execs, number in (words for kind, *words in lines if kind == "call"):
            if (process, execs) not in roles:
                continue
            name = names[int(number)]
            seen[process, execs, name] += 1
            if (process, execs) in loading:
                loading -= {(process, execs)} if name == "mprotect" else set()
            elif name == "pidfd_send_signal" and self.user == "rootbox" and roles[process, execs] == "spawner":
                pass  # to a child that is still root's as the spawner is (kernel/idmap.c): nobody refuses that
            elif name not in NEVER_FAIL:
                calls.append((roles[process, execs], int(process), int(execs), name, seen[process, execs, name]))
        return calls

    def inject(self, fault):
        hangs = any(bug.role == fault.role and fault.call in bug.calls.split() and bug.pattern == HANG for bug in KNOWN)
        return self.run([fault.process, fault.execs, fault.number, fault.when, fault.error],
                        KNOWN_HANG_SECONDS if hangs else HANG_SECONDS)


def spread(items, most):
    """At most so many of the items: the first, the last, and some between that a seeded choice takes."""
    if len(items) <= most:
        return items
    chosen = random.Random(len(items)).sample(range(1, len(items) - 1), most - 2)
    return [items[0], *(items[i] for i in sorted(chosen)), items[-1]]


def errors_for(call, when, user):
    if ALL or (call in WALLS and user != "user"):
        return ERRORS
    return [ERRORS[(zlib.crc32(call.encode()) + when) % len(ERRORS)]]


def plan(calls, user):
    """The faults to inject."""
    number = numbers()
    groups = collections.defaultdict(list)
    for call in calls:
        groups[call[:4]].append(call)
    return [Fault(role, process, execs, name, number[name], when, error)
            for group in groups.values()
            for role, process, execs, name, when in (group if ALL else spread(group, SPREAD[user]))
            for error in errors_for(name, when, user)]


def differences(good, strength):
    more, less = set(strength) - set(good), set(good) - set(strength)
    return [f"+ {line}" for line in sorted(more)] + [f"- {line}" for line in sorted(less)]


def judge(fault, result, good):
    """What is wrong with a run; nothing is what it should be."""
    wrong = list(result.problems)
    says = re.search(r"^nacre.{15,}", result.stderr, re.M)
    if "RAN" in result.output:
        # who goes on beside the command may come to the call later than in the run that was traced, and end it
        cut_short = fault.role in ("worker", "spawner") and result.code == 125 and says
        if not cut_short and (not result.output.endswith("END\n") or result.code != 0):
            wrong.append(f"the command ran, but not to its end: exit status {result.code}, stderr {result.stderr!r}")
        weaker = differences(good, result.strength)
        if (fault.role, fault.call, fault.error) in ACCEPTED:
            weaker = [line for line in weaker if not re.match(r"[-+] (limit|rlimit|landlock|group) ", line)]
        if weaker and "END" in result.output:
            wrong.append("another box than without the fault:\n      " + "\n      ".join(weaker))
        return wrong
    # a command that cannot be executed has the shell's status
    allowed = (125, 126) if fault.call == "execve" else (125,)
    if result.code not in allowed:
        wrong.append(f"exit status {result.code}, stderr {result.stderr!r}")
    if not says:
        wrong.append(f"no message that says what failed: {result.stderr!r}")
    if result.output:
        wrong.append(f"output: {result.output!r}")
    return wrong


def known_bug(fault, wrong):
    """The bug that explains everything that is wrong with this fault, or None."""
    for bug in KNOWN:
        if bug.role == fault.role and fault.call in bug.calls.split() and all(
                re.search(bug.pattern, text, re.S) for text in wrong):
            return bug
    return None


def describe(fault):
    return f"{fault.role}: {fault.call} #{fault.when} (process {fault.process}.{fault.execs}) {errno.errorcode[fault.error]}"


@pytest.fixture(params=USERS)
def lab(request, tools):
    if request.param == "user" and subprocess.run(
            ["setpriv", f"--reuid={USERS['user']}", f"--regid={USERS['user']}", "--clear-groups", "unshare", "--user",
             "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces for ordinary users here")
    if request.param == "rootbox":
        import_image(tools)
    return Lab(tools, request.param)


def import_image(tools):
    """A tree with the little that the payload needs."""
    if (tools / "state").exists():
        return
    busybox = shutil.which("busybox")
    if not busybox:
        pytest.skip("needs busybox")
    for name in ("bin", "usr", "etc"):
        (tools / "tree" / name).mkdir(parents=True)
    shutil.copy(busybox, tools / "tree/bin/busybox")
    for name in APPLETS:
        (tools / "tree/bin" / name).symlink_to("busybox")
    done = subprocess.run([tools / "nacre", "image", "import", "fault", tools / "tree"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NACRE_STATE": str(tools / "state")})
    assert done.returncode == 0, done.stderr


NO_FAULT = [9, 9, 9999, 1, 1]  # a call that nobody makes


def test_the_fingerprint_of_a_good_box(lab):
    """The measure of the faults below is itself as it should be, and the same each time."""
    first, second = lab.run(NO_FAULT), lab.run(NO_FAULT)
    assert (first.code, first.stderr, first.problems) == (0, "", [])
    assert differences(first.strength, second.strength) == []
    lines = set(first.strength)
    root = lab.user == "rootbox"
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"status {name}: {'00000000000000fb' if root and name in ('CapPrm', 'CapEff', 'CapBnd') else '0' * 16}" in lines
    assert {"status NoNewPrivs: 1", "status Seccomp: 2", "host nacre", "RAN", "END"} <= lines and ("spaces 0" in lines) != root
    assert {f"ns {name} own" for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")} <= lines
    assert any(re.match(r"mount /root / rw,nosuid,nodev" if root else r"mount / / ro,nosuid,nodev", line) for line in lines), lines
    assert {line for line in lines if line.startswith("writable")} == ({"writable /", "writable /usr"} if root else set())
    assert any(line.startswith("mount /null /proc/interrupts ") for line in lines), lines
    assert {line for line in lines if line.startswith("landlock")} <= {"landlock 0"}


def test_a_good_box_does_not_see_the_name_of_its_group(lab):
    """Its cgroup namespace begins at its own group: else it reads the spawner's id, and by bx_N how many were before it."""
    seen = [line for line in lab.run(NO_FAULT).output.splitlines() if line.startswith("group ") and "nacre-" in line]
    assert not seen


def show(capsys, text):
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")


def test_each_call_fails_once(lab, capsys):
    host = Host()
    good = lab.run(NO_FAULT).strength
    faults = plan(lab.trace(), lab.user)
    failures, known, missed, slow, ran = [], collections.Counter(), 0, [], 0
    messages = collections.Counter()
    started = time.monotonic()
    for fault in faults:
        result = lab.inject(fault)
        wrong = judge(fault, result, good) + [f"left behind: {name}" for name in host.left(result.spawner or lab.no_spawner)]
        missed += not result.hit
        ran += "RAN" in result.output
        if result.stderr:
            messages[result.stderr.splitlines()[0]] += 1
        if result.seconds > 5:
            slow.append(f"{describe(fault)}: {result.seconds:.1f} s")
        bug = known_bug(fault, wrong) if wrong else None
        if bug:
            known[f"{bug.role}: {fault.call}: {bug.why}"] += 1
        elif wrong:
            failures.append(f"{describe(fault)}\n    " + "\n    ".join(wrong))
    show(capsys, f"{lab.user}: {len(faults) - missed} faults injected ({missed} more were not reached) in "
                 f"{time.monotonic() - started:.0f} s; {ran} harmless, {len(failures)} bad, "
                 f"{sum(known.values())} known" + "".join(f"\n  known: {n} x {text}" for text, n in known.items())
         + "".join(f"\n  slow: {line}" for line in slow))
    if "NACRE_FAULT_LOG" in os.environ:
        with open(os.environ["NACRE_FAULT_LOG"], "a") as log:
            log.write("\n".join([*failures, *(f"{n:5} {text}" for text, n in messages.most_common())]) + "\n")
    assert subprocess.run(["pgrep", "-f", MARK], capture_output=True).returncode == 1, "processes are left"
    assert missed <= len(faults) // 20, "too many faults were not reached: the count of calls is not stable"
    assert not failures, f"{len(failures)} of {len(faults)}:\n" + "\n".join(failures)


def test_torture_leaves_nothing(tools, capsys):
    host = Host()
    done = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
                           HERE / "torture.py", tools / "nacre", "300", "40"], capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    show(capsys, f"340 boxes: {answer['before']}, MemAvailable went down by {answer['drift_kb']} kB")
    assert [text for text in answer["failures"] if text not in KNOWN_NOISE] == []
    assert answer["after"] == answer["before"]
    assert host.left() == []
