"""Attacks on privilege: a box has none, gets none, and the kernel's risky calls are closed."""

from inside import *  # noqa: F403

PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_SET_SECUREBITS, PR_CAPBSET_READ = 38, 47, 28, 23


def status_of(pid="self"):
    return dict(line.rstrip("\n").split(":\t", 1) for line in open(f"/proc/{pid}/status") if ":\t" in line)


@attack("privilege", control=True)
def have_capabilities(context):
    """Looks for a capability in any of the five sets, or no_new_privs unset. Promise: all are empty."""
    status = status_of()
    full = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[name], 16)]
    return f"has {full}, NoNewPrivs {status['NoNewPrivs']}" if full or status["NoNewPrivs"] != "1" else None


@attack("privilege")
def regain_capabilities(context):
    """capset, ambient raise, securebits. Promise: what is dropped stays dropped."""
    header = struct.pack("Ii", 0x20080522, 0)
    everything = struct.pack("6I", *[0xFFFFFFFF] * 6)

    def attempt(how):
        if how == "capset":
            return call("capset", header, everything) or "set"
        words = (PR_CAP_AMBIENT, 2, 21, 0, 0) if how == "ambient" else (PR_SET_SECUREBITS, 0, 0, 0, 0)
        return "done" if libc.prctl(*words) == 0 else None

    return first_that_works(["capset", "ambient", "securebits"], attempt)


@attack("privilege")
def clear_no_new_privs(context):
    """prctl to take no_new_privs back. Promise: it is for good."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)
    return None if status_of()["NoNewPrivs"] == "1" else "no_new_privs is off"


@attack("privilege", control=True)
def become_root_by_call(context):
    """setuid, setgid and setgroups. Promise: one id, and no way to another."""
    return first_that_works(["setuid", "setgid", "setgroups"], lambda how: {
        "setuid": lambda: os.setresuid(0, 0, 0),
        "setgid": lambda: os.setresgid(0, 0, 0),
        "setgroups": lambda: os.setgroups([0]),
    }[how]() or "done")


@attack("privilege")
def become_root_by_setuid_programs(context):
    """Runs every setuid and setgid program that is shown, and looks at what it runs as. Promise: nosuid, no_new_privs."""
    programs = []
    for directory in ("/usr/bin", "/usr/sbin", "/usr/lib/openssh", "/usr/lib/dbus-1.0"):
        try:
            programs += [f"{directory}/{name}" for name in os.listdir(directory) if os.lstat(f"{directory}/{name}").st_mode & 0o6000]
        except OSError:
            continue

    def run(path):
        reader, writer = os.pipe()
        child = subprocess.Popen([path], stdin=reader, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ids = status_of(child.pid) if child.poll() is None else {}
        child.kill()
        child.wait()
        os.close(reader)
        os.close(writer)
        wanted = {str(os.getuid())}, {str(os.getgid())}
        if ids and (set(ids["Uid"].split()), set(ids["Gid"].split())) != wanted:
            return f"runs as {ids['Uid']} {ids['Gid']}"
        return None

    return first_that_works(programs, run)


@attack("privilege")
def become_root_by_own_setuid_program(context):
    """A setuid and setgid copy of a program in scratch space. Promise: nosuid everywhere."""
    path = f"/tmp/suid-{os.getpid()}"
    with open("/usr/bin/id", "rb") as source, open(path, "wb") as target:
        target.write(source.read())
    os.chmod(path, 0o6755)
    out = subprocess.run([path], capture_output=True, text=True).stdout
    return out if "uid=0" in out or "euid" in out or "egid" in out else None


@attack("privilege")
def give_file_capabilities(context):
    """security.capability on a file of its own. Promise: no right to, and nosuid."""
    path = f"/tmp/caps-{os.getpid()}"
    open(path, "w").close()
    os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0))
    return "set file capabilities"


@attack("privilege")
def map_more_ids(context):
    """Writes its own id maps. Promise: maps are written once, by the spawner."""
    return first_that_works(["uid_map", "gid_map", "setgroups"], lambda name: os.write(os.open(f"/proc/self/{name}", os.O_WRONLY), b"0 0 1\n" if name != "setgroups" else b"allow"))


@attack("privilege")
def map_project_ids(context):
    """Maps the host's project id 0, which the kernel lets everybody do once. Promise: maps are written by the spawner."""
    return os.write(os.open("/proc/self/projid_map", os.O_WRONLY), b"0 0 1\n")


@attack("privilege", modes=("root",))
def have_host_ids(context):
    """Looks whether an id of the box is one that the host uses. Promise: disjoint ranges, and never the host's 0."""
    for name in ("uid_map", "gid_map"):
        for line in open(f"/proc/self/{name}"):
            inside, outside, count = map(int, line.split())
            if outside < 0x70000000 or count != 65536:
                return f"{name}: {line}"
    return None


@attack("privilege", control=True)
def take_priority(context):
    """Negative nice, real-time scheduling and I/O class. Promise: no better than others."""
    def attempt(how):
        if how == "nice":
            os.setpriority(os.PRIO_PROCESS, 0, -5)
        elif how == "fifo":
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        else:
            call("ioprio_set", 1, 0, 1 << 13)
        return "got it"

    return first_that_works(["nice", "fifo", "io"], attempt)


def zeros(size=128):
    return ctypes.create_string_buffer(size)


# calls that a box never needs: name, arguments that would do no harm if they got through, who stops it
CLOSED = {
    "acct": ((b"/tmp/acct",), None),
    "adjtimex": ((struct.pack("I", 1) + bytes(204),), None),
    "clock_settime": ((0, struct.pack("qq", 0, -1)), None),
    "delete_module": ((b"nacre_none", 0), None),
    "init_module": ((zeros(), 128, b""), None),
    "finit_module": ((0, b"", 0), None),
    "kexec_load": ((0, 0, 0, 0), None),
    "quotactl": ((0x80000400, b"/dev/vda", 0, zeros()), None),
    "reboot": ((0xFEE1DEAD, 672274793, 0, 0), None),  # Ctrl-Alt-Del off
    "settimeofday": ((struct.pack("qq", 0, -1), 0), None),
    "swapon": ((b"/tmp/swap", 0), None),
    "swapoff": ((b"/tmp/swap",), None),
    "syslog": ((3, zeros(), 128), None),
    "vhangup": ((), None),
    "bpf": ((0, struct.pack("IIII", 1, 4, 4, 1) + bytes(112), 128), None),
    "perf_event_open": ((struct.pack("IIQ", 1, 128, 1) + bytes(112), 0, -1, -1, 0), None),
    "add_key": ((b"user", b"nacre", b"x", 1, -2), "seccomp"),
    "request_key": ((b"user", b"nacre-none", 0, -2), None),
    "keyctl": ((0, -3, 0), "seccomp"),
    "fanotify_init": ((0x200, 0), "seccomp"),
    "io_uring_setup": ((4, zeros()), "seccomp"),
    "userfaultfd": ((1,), "seccomp"),
    "name_to_handle_at": ((-100, b"/tmp", struct.pack("Ii", 120, 0) + bytes(120), zeros(), 0), "seccomp"),
    "personality": ((0x0040000,), "seccomp"),
    "memfd_secret": ((0,), "seccomp"),
    "process_vm_readv": ((os.getpid(), 0, 0, 0, 0, 0), "seccomp"),
    "kcmp": ((os.getpid(), os.getpid(), 0, 0, 0), "seccomp"),
}


def close_call(name):
    def attempt(context):
        return f"{name} gives {call(name, *CLOSED[name][0])}"

    attempt.__name__ = f"use_{name}"
    attempt.__doc__ = f"The call {name} itself. Promise: it is always denied."
    attack("privilege", needs=CLOSED[name][1])(attempt)


for closed_name in CLOSED:
    close_call(closed_name)


@attack("privilege", needs="seccomp")
def call_by_old_gate(context):
    """getpid by int 0x80, whose numbers a filter for 64 bits misreads. Promise: the architecture is checked first."""
    if MACHINE != "x86_64":
        return None
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
    ctypes.memmove(place, bytes.fromhex("b814000000cd80c3"), 8)  # mov eax, 20; int 0x80; ret
    pid = ctypes.CFUNCTYPE(ctypes.c_int)(place)()
    return f"int 0x80 says {pid}" if pid == os.getpid() else None


@attack("privilege")
def call_by_x32(context):
    """getpid with the x32 bit. Promise: the bit is refused."""
    return f"x32 says {call(0x40000000 + 39)}" if MACHINE == "x86_64" else None


@attack("privilege", needs="seccomp")
def run_without_filter(context):
    """Looks at its own filter. Promise: a filter is on, for the payload and all that it starts."""
    return None if status_of()["Seccomp"] == "2" else "no seccomp filter"
