"""Attacks by root of the box, with a root that it may write to: all that it rules is the box's own files and its own processes."""

from inside import *  # noqa: F403

ROOT = ("rootbox",)
PROCESS_1_ID = 65535
# CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID: what user.c leaves it
LEFT_TO_ROOT = 0xFB
HOST_FILE = "/usr/bin/env"


def status_field(name, pid="self"):
    return next(line.split(":")[1].strip() for line in open(f"/proc/{pid}/status") if line.startswith(name + ":"))


@attack("root", modes=ROOT)
def be_no_root_at_all(context):
    """The control of this file. Promise: this is uid 0 with the capabilities that root has in a box, no more and no less."""
    have = int(status_field("CapEff"), 16)
    return None if (os.getuid(), os.getgid(), have) == (0, 0, LEFT_TO_ROOT) else f"{os.getuid()} {os.getgid()} {have:x}"


@attack("root", modes=ROOT)
def have_more_capabilities(context):
    """Looks for a capability beyond the closed set, or no_new_privs unset. Promise: the bounding set is closed."""
    wide = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status_field(name), 16) & ~LEFT_TO_ROOT]
    return f"has {wide}" if wide or status_field("NoNewPrivs") != "1" else None


@attack("root", modes=ROOT)
def gain_capabilities_by_programs(context):
    """Executes programs, set-user-id ones of its own too, and looks what they have. Promise: never more than itself."""
    path = f"/usr/local/bin/suid-{os.getpid()}"
    with open("/usr/bin/cat", "rb") as source, open(path, "wb") as target:
        target.write(source.read())
    os.chmod(path, 0o6755)
    for program in ("/usr/bin/cat", path):
        text = subprocess.run([program, "/proc/self/status"], capture_output=True, text=True).stdout
        for name in ("CapPrm", "CapEff", "CapBnd"):
            if int(text.split(f"{name}:")[1].split()[0], 16) & ~LEFT_TO_ROOT:
                return f"{program}: {text}"
    return None


@attack("root", modes=ROOT)
def regain_by_set_user_id_file(context):
    """A set-user-id file of root's, run by a user that it has become. Promise: nosuid everywhere, no_new_privs."""
    path = f"/usr/local/bin/root-{os.getpid()}"
    with open("/usr/bin/id", "rb") as source, open(path, "wb") as target:
        target.write(source.read())
    os.chmod(path, 0o6755)

    def become():
        os.setgroups([])
        os.setresgid(1000, 1000, 1000)
        os.setresuid(1000, 1000, 1000)

    out = subprocess.run([path], capture_output=True, text=True, preexec_fn=become).stdout
    return None if "uid=1000" in out and "euid" not in out and "egid" not in out else out or "nothing printed"


@attack("root", modes=ROOT)
def keep_capabilities_as_a_user(context):
    """Becomes a user and looks what is left. Promise: what root gives up it has given up."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(1000, 1000, 1000)
        os.write(writer, status_field("CapPrm").encode())
        os._exit(0)
    os.waitpid(pid, 0)
    have = int(os.read(reader, 64), 16)
    return f"{have:x}" if have else None


@attack("root", modes=ROOT)
def look_into_process_1(context):
    """Opens what there is of process 1 in /proc. Promise: it belongs to a user namespace above, and is not even to be seen."""
    names = ("mem", "root", "cwd", "exe", "environ", "maps", "fd", "auxv", "ns/user", "ns/mnt", "syscall", "stack", "pagemap", "oom_score_adj", "status")
    return first_that_works([f"/proc/1/{name}" for name in names], lambda path: os.stat(path) and f"descriptor {os.open(path, os.O_RDONLY)}")


@attack("root", modes=ROOT)
def take_over_process_1(context):
    """ptrace, process_vm_*, pidfd_getfd, setns by its pidfd. Promise: nobody in the box reaches process 1."""
    buffer = ctypes.create_string_buffer(64)
    vector = struct.pack("PN", ctypes.addressof(buffer), 64)

    def attempt(how):
        if how in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
            return libc.ptrace(how, 1, 0, 0) == 0 and "traced"
        if how == "readv":
            return call("process_vm_readv", 1, vector, 1, vector, 1, 0) or "read"
        if how == "writev":
            return call("process_vm_writev", 1, vector, 1, vector, 1, 0) or "written"
        pidfd = call("pidfd_open", 1, 0)
        return call("setns", pidfd, 0x10000000) if how == "setns" else call("pidfd_getfd", pidfd, 0, 0)

    return first_that_works([16, 0x4206, "readv", "writev", "setns", "getfd"], attempt)


@attack("root", modes=ROOT)
def signal_process_1(context):
    """Every signal to process 1. Promise: root of the box may not signal it, so nothing is queued there either."""
    return first_that_works([*range(0, 65)], lambda number: os.kill(1, number) or "sent")


@attack("root", modes=ROOT)
def slow_down_process_1(context):
    """Scheduling, affinity, limits and priorities of process 1. Promise: they stay as they are, or the box would not end in time."""
    limit = struct.pack("QQ", 0, 0)
    return first_that_works(["prlimit", "affinity", "policy", "nice", "io"], lambda how: {
        "prlimit": lambda: call("prlimit64", 1, 7, limit, 0),
        "affinity": lambda: os.sched_setaffinity(1, {0}),
        "policy": lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
        "nice": lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
        "io": lambda: call("ioprio_set", 1, 1, 3 << 13),
    }[how]() or "done")


@attack("root", modes=ROOT)
def become_process_1s_user(context):
    """The id of process 1, and ids outside of the box's. Promise: no command has them, and no file gets them."""
    path = f"/usr/local/lib/owned-{os.getpid()}"
    open(path, "w").close()
    ids = [PROCESS_1_ID, 65536, 100000, 0x70000000, 2**31, 2**32 - 2]
    return first_that_works([(how, number) for how in ("setuid", "setgid", "chown", "chgrp", "groups") for number in ids], lambda pair: {
        "setuid": lambda: os.setresuid(-1, pair[1], -1),
        "setgid": lambda: os.setresgid(-1, pair[1], -1),
        "chown": lambda: os.chown(path, pair[1], -1),
        "chgrp": lambda: os.chown(path, -1, pair[1]),
        "groups": lambda: os.setgroups([pair[1]]),
    }[pair[0]]() or "done")


@attack("root", modes=ROOT)
def rule_the_network(context):
    """Interfaces, ports below 1024, raw sockets, settings. Promise: the box's network is not root's, and nobody takes its door."""
    def attempt(how):
        tcp = socket.socket()
        if how == "down":
            return fcntl.ioctl(tcp, 0x8914, struct.pack("16sH", b"lo", 0)) and "down"  # SIOCSIFFLAGS
        if how == "address":
            return fcntl.ioctl(tcp, 0x8916, struct.pack("16sHH4s8x", b"lo", socket.AF_INET, 0, socket.inet_aton("10.0.0.1"))) and "set"
        if how == "raw":
            return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno()
        if how == "packet":
            return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).fileno()
        if how == "sysctl":
            return os.open("/proc/sys/net/ipv4/ip_unprivileged_port_start", os.O_WRONLY)
        tcp.bind(("127.0.0.1", how))
        return "bound"

    return first_that_works(["down", "address", "raw", "packet", "sysctl", 80, 888], attempt)


@attack("root", modes=ROOT)
def write_below_proc_and_sys(context):
    """Settings of itself and of the kernel. Promise: /proc is read-only where root could write it, /sys has nothing of the host's."""
    names = ["self/oom_score_adj", "self/uid_map", "self/setgroups", "self/loginuid", "self/coredump_filter", "sys/kernel/core_pattern",
             "sys/user/max_user_namespaces", "sys/vm/drop_caches", "sysrq-trigger", "sys/kernel/random/boot_id", "irq/default_smp_affinity", "meminfo"]
    got = first_that_works([f"/proc/{name}" for name in names if not os.path.exists(f"/proc/{name}") or not stat.S_ISCHR(os.stat(f"/proc/{name}").st_mode)],
                           lambda path: f"descriptor {os.open(path, os.O_WRONLY)}")
    return got or [name for name in os.listdir("/sys") if name not in ("fs", "devices", "cgroups")] or None


@attack("root", modes=ROOT)
def steer_the_overlay(context):
    """The attributes and devices that overlayfs keeps its notes in. Promise: nobody in the box can write those."""
    path, folder = "/usr/lib/os-release", "/usr/local/lib"
    notes = ["redirect", "opaque", "metacopy", "origin", "whiteout", "impure"]
    names = [*(f"trusted.overlay.{name}" for name in notes), "security.capability", "security.ima"]
    got = first_that_works([(place, name) for place in (path, folder) for name in names], lambda pair: os.setxattr(*pair, b"/../../etc") or "set")
    # since Linux 6.8 these are kept under other names, where they mean nothing
    before = read_some(path), set(os.listdir("/usr/share"))
    for place in (path, "/usr/share"):
        for name in notes:
            try:
                os.setxattr(place, f"user.overlay.{name}", b"y" if name in ("opaque", "whiteout") else b"/../../etc")
            except OSError:
                pass
    os.makedirs("/usr/share/moved/below", exist_ok=True)
    os.rmdir("/usr/share/moved/below")
    after = read_some(path), set(os.listdir("/usr/share")) - {"moved"}
    got = got or (None if before == after else f"{before} became {after}")
    return got or first_that_works([stat.S_IFCHR, stat.S_IFBLK], lambda kind: os.mknod(f"{folder}/white-{os.getpid()}", kind | 0o600, os.makedev(0, 0)) or "made")


@attack("root", modes=ROOT)
def read_roots_files_of_the_host(context):
    """Files below /usr that the host has for root alone, by name, by link, by name of the directory. Promise: they are not there."""
    link = f"/usr/local/lib/hard-{os.getpid()}"
    def attempt(path):
        try:
            return read_some(path)
        except PermissionError:
            os.chmod(path, 0o777)
            return read_some(path)
    got = first_that_works(context["root_files"], attempt)
    got = got or first_that_works(context["root_files"], lambda path: os.link(path, link) or read_some(link))
    return got or first_that_works(context["root_files"], lambda path: os.rename(os.path.dirname(path), path + "-moved") or "moved")


@attack("root", modes=ROOT)
def bring_back_what_is_hidden(context):
    """Removes and makes again what is above such files. Promise: what was covered stays covered."""
    def attempt(path):
        above = os.path.dirname(path)
        subprocess.run(["rm", "-rf", above], check=False)
        os.makedirs(above, exist_ok=True)
        return read_some(path)
    return first_that_works(context["root_files"], attempt)


@attack("root", modes=ROOT)
def change_what_the_host_shows(context):
    """Writes, removes, owns and links the host's files, which the host looks at afterwards. Promise: all of it happens to a copy."""
    path, folder = HOST_FILE, "/usr/share/doc"
    with open(path, "r+b") as file:
        file.write(b"NACRE")
    os.chmod(path, 0o6777)
    os.chown(path, 33, 33)
    os.utime(path, (1, 1))
    os.link(path, f"/usr/bin/env-{os.getpid()}")
    with open(f"/usr/bin/env-{os.getpid()}", "ab") as file:
        file.write(b"NACRE")
    os.unlink(path)
    os.chmod(folder, 0o777)
    with open(f"{folder}/nacre-escape", "w") as file:
        file.write("NACRE")
    return None


@attack("root", modes=ROOT)
def write_pages_of_lower_files(context):
    """Holds a file open and mapped before it is copied up, and writes to both. Promise: no page of the host's is written to."""
    path = "/usr/bin/printenv"
    early = os.open(path, os.O_RDONLY)
    late = os.open(path, os.O_RDWR)
    os.pwrite(late, b"NACRE", 0)
    return first_that_works(["fd", "proc"], lambda how: os.pwrite(early if how == "fd" else os.open(f"/proc/self/fd/{early}", os.O_WRONLY), b"NACRE", 0) and None)


@attack("root", modes=ROOT)
def go_beyond_the_disk(context):
    """Fills its root by every way: files, files without blocks, names, attributes. Promise: one limit holds for all of it, for root as well."""
    room = os.statvfs("/")
    if room.f_blocks * room.f_frsize > 110 << 20 or room.f_bavail != room.f_bfree:
        return f"{room}"
    written, piece = 0, b"x" * (1 << 20)
    files = [f"/{place}/fill-{os.getpid()}" for place in ("usr", "etc", "opt-new", "workspace", "tmp", "dev/shm")]
    os.mkdir("/opt-new")
    try:
        for path in files:
            try:
                with open(path, "wb", buffering=0) as file:
                    while True:
                        written += file.write(piece)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    return f"{path}: {error}"
            if written > 110 << 20:
                return f"{written} bytes written"
        try:
            with open(f"/usr/fallocated-{os.getpid()}", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 64 << 20)
                return "fallocate beyond the limit"
        except OSError:
            pass
    finally:
        for path in files:
            if os.path.exists(path):
                os.unlink(path)
    return None


@attack("root", modes=ROOT)
def replace_the_roots_of_the_box(context):
    """Renames and removes what the box stands on. Promise: mounts stay where they are."""
    return first_that_works(["/workspace", "/tmp", "/dev/shm", "/proc", "/usr", "/dev/null", "/sys/fs/cgroup", "/sys", "/sys/fs", "/dev"],
                            lambda path: (os.rename(path, "/away") if not path.endswith("null") else os.unlink(path)) or "done")


@attack("root", modes=ROOT)
def write_to_read_only_mounts(context):
    """Files of /etc that are the host's, limits that are told. Promise: what is no copy is read-only."""
    paths = ["/etc/ld.so.cache", "/etc/ssl/certs/new", "/etc/alternatives/new", "/etc/services", "/sys/fs/cgroup/memory.max", "/proc/meminfo"]
    return first_that_works(paths, lambda path: f"descriptor {os.open(path, os.O_WRONLY | os.O_CREAT)}")
