"""Attacks on processes and IPC: a box sees, signals, traces and joins nobody but itself."""

from inside import *  # noqa: F403

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
CLONE_NEW = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
CLONE_NEWUSER = 0x10000000


def own_family():
    """The ids of our ancestors and of the other attacks: everything that python runs here."""
    return {pid for pid in processes() if b"python3" in read_some(f"/proc/{pid}/cmdline")}


@attack("process", control=True)
def see_foreign_processes(context):
    """Looks for processes that are not its own. Promise: own pid namespace, process 1 hidden."""
    foreign = set(processes()) - own_family()
    return f"sees {sorted(foreign)}" if foreign else None


@attack("process", control=True, alone=True, ends=("success", 0, None))
def kill_everybody(context):
    """kill(-1): every process that it may signal. Promise: signals stay in the box, and the result comes back."""
    libc.kill(-1, signal.SIGKILL)
    return None  # the victim beside the box tells


@attack("process")
def kill_guessed_pids(context):
    """Signals numbers that it cannot see. Promise: no process but its own can be signalled."""
    family = own_family()

    def signal_it(pid):
        os.kill(pid, 0)
        return "signalled"

    # 1 is process 1 of the box, which may be asked with the single-id map and takes no signal; it has attacks of its own
    return first_that_works((pid for pid in range(2, 5000) if pid not in family and not os.path.exists(f"/proc/{pid}")), signal_it)


@attack("process")
def kill_init(context):
    """SIGKILL, SIGSTOP, SIGTERM and a pidfd to process 1. Promise: it takes no signal from the box."""
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
        libc.kill(1, number)
    try:
        pidfd = call("pidfd_open", 1, 0)
        call("pidfd_send_signal", pidfd, signal.SIGKILL, 0, 0)
    except OSError:
        pass
    time.sleep(0.05)  # if it died, so do we
    return None


@attack("process")
def trace_init(context):
    """ptrace of process 1. Promise: it is not dumpable."""
    return first_that_works([PTRACE_ATTACH, PTRACE_SEIZE], lambda how: "attached" if libc.ptrace(how, 1, 0, 0) == 0 else None)


@attack("process")
def open_files_of_init(context):
    """Opens whatever /proc/1 has. Promise: memory, descriptors, executable, environment of process 1 are closed."""
    names = ("mem", "environ", "maps", "exe", "fd", "fdinfo", "root", "cwd", "ns", "syscall", "stack", "auxv", "io", "map_files", "task/1/mem", "pagemap", "cmdline", "status")
    return first_that_works([f"/proc/1/{name}" for name in names], lambda path: f"descriptor {os.open(path, os.O_RDONLY)}")


@attack("process")
def write_executable_of_init(context):
    """Opens the runtime's own binary for writing (CVE-2019-5736). Promise: a sealed copy, out of reach."""
    return first_that_works(["/proc/1/exe", "/proc/self/exe", f"/proc/{os.getppid()}/exe"], lambda path: f"descriptor {os.open(path, os.O_WRONLY)}")


@attack("process")
def read_memory_of_init(context):
    """process_vm_readv, kcmp, pidfd_getfd on process 1. Promise: process 1 cannot be looked into."""
    buffer = ctypes.create_string_buffer(64)
    local = struct.pack("QQ", ctypes.addressof(buffer), 64)
    remote = struct.pack("QQ", 0x400000, 64)

    def steal(how):
        if how == "process_vm_readv":
            return call(how, 1, local, 1, remote, 1, 0)
        if how == "kcmp":
            return f"kcmp {call(how, 1, os.getpid(), 0, 0, 0)}"
        return f"descriptor {call('pidfd_getfd', call('pidfd_open', 1, 0), 0, 0)}"

    return first_that_works(["process_vm_readv", "kcmp", "pidfd_getfd"], steal)


@attack("process")
def join_namespaces(context):
    """setns to every namespace that can be named, by file and by pidfd. Promise: no other namespace can be joined."""
    files = [f"/proc/{pid}/ns/{name}" for pid in (1, *processes()) for name in ("mnt", "net", "pid", "user", "ipc", "uts", "cgroup", "pid_for_children")]

    def join(what):
        if isinstance(what, int):
            return call("setns", call("pidfd_open", what, 0), 0x20000 | CLONE_NEWUSER) or "joined"
        return call("setns", os.open(what, os.O_RDONLY), 0) or "joined"

    return first_that_works([*files, 1], join)


@attack("process", control=True)
def make_user_namespace(context):
    """unshare and clone with CLONE_NEWUSER, alone and with others, for new capabilities. Promise: no nesting."""
    def attempt(how):
        if how == "unshare":
            status = in_child(lambda: 0 if libc.unshare(CLONE_NEWUSER) == 0 else 1)
        else:
            status = in_child(lambda: 0 if call("clone", CLONE_NEWUSER | CLONE_NEW["mount"] | signal.SIGCHLD, 0, 0, 0, 0) >= 0 else 1)
        return "made" if status == 0 else None

    return first_that_works(["unshare", "clone"], attempt)


@attack("process", control=True)
def make_user_namespace_by_clone3(context):
    """The same by clone3, whose flags no filter sees. Promise: no nesting."""
    arguments = ctypes.create_string_buffer(struct.pack("Q" * 8, CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    pid = call("clone3", arguments, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made by clone3"


@attack("process", control=True)
def make_other_namespaces(context):
    """unshare of each other kind of namespace. Promise: no capability to make one."""
    def attempt(name):
        status = in_child(lambda: 0 if libc.unshare(CLONE_NEW[name]) == 0 else 1)
        return "made" if status == 0 else None

    return first_that_works(CLONE_NEW, attempt)


@attack("process", control=True)
def attach_host_shared_memory(context):
    """Looks for a SysV segment of the host's. Promise: own IPC namespace."""
    return f"segment {segment}" if (segment := libc.shmget(context["shm_key"], 0, 0)) >= 0 else None


@attack("process", control=True)
def open_host_posix_shared_memory(context):
    """Opens a file that the host keeps in /dev/shm. Promise: own /dev/shm."""
    return read_some(context["shm_file"])


@attack("process")
def open_terminal(context):
    """Opens the caller's terminal, and pushes input into whatever is one (CVE-2017-5226). Promise: no terminal at all."""
    for path in ("/dev/tty", "/dev/console", "/dev/pts/0", "/proc/self/fd/0", "/proc/self/fd/2"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            continue
        if os.isatty(descriptor):
            return f"{path} is a terminal"
    for descriptor in range(3):
        for request in (0x5412, 0x541C, 0x5412 | 1 << 32):  # TIOCSTI, TIOCLINUX, and with a high bit (CVE-2019-10063)
            if libc.ioctl(descriptor, ctypes.c_ulong(request), ctypes.create_string_buffer(b"x")) == 0:
                return f"ioctl {request:#x} on {descriptor}"
    return None


@attack("process", needs="seccomp", control=True)
def read_session_keyring(context):
    """Searches the caller's session keyring, which is inherited by fork. Promise: no secret of the caller's; deny keyctl."""
    key = call("keyctl", 10, -3, b"user", context["key_name"].encode(), 0)
    buffer = ctypes.create_string_buffer(256)
    size = call("keyctl", 11, key, buffer, 256)
    return f"read key: {buffer.raw[:size]!r}"


@attack("process", needs="seccomp", control=True)
def trace_own_child(context):
    """ptrace as such, of a child of its own. Promise: ptrace is always denied."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        return "attached" if libc.ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 else None
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
