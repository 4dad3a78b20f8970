"""Attacks on what a box may know: no secret of the caller's, nothing about the host that is not needed."""

from inside import *  # noqa: F403

MARK = b"nacre-canary-"


def find_mark(paths):
    def look(path):
        text = read_some(path, 1 << 16)
        at = text.find(MARK)
        return text[at : at + 60] if at >= 0 else None

    return first_that_works(paths, look)


@attack("information")
def read_environments(context):
    """Looks for the caller's secrets in all environments that it can open. Promise: clean environment, hidden others."""
    if any(MARK.decode() in value for value in os.environ.values()):
        return f"own environment: {os.environ}"
    return find_mark([f"/proc/{pid}/environ" for pid in [1, *processes(), *range(2, 200)]])


@attack("information", control=True)
def read_command_lines(context):
    """Looks for a secret in the command lines of others. Promise: own pid namespace."""
    return find_mark([f"/proc/{pid}/cmdline" for pid in [1, *processes(), *range(2, 200)]])


@attack("information")
def inherit_descriptors(context):
    """Lists its descriptors: the caller left some open. Promise: 0, 1 and 2 and no other."""
    listing = os.open("/proc/self/fd", os.O_RDONLY)
    known = {0, 1, 2, listing, context["verdict_fd"]}
    extra = {name: os.readlink(f"/proc/self/fd/{name}") for name in os.listdir(listing) if int(name) not in known}
    return f"inherited {extra}" if extra else None


@attack("information")
def look_at_standard_descriptors(context):
    """0, 1 and 2 must be pipes: a file can be read back, a terminal typed into, a socket carries more. Promise: pipes."""
    kinds = [stat.S_IFMT(os.fstat(number).st_mode) for number in range(3)]
    return None if set(kinds) <= {stat.S_IFIFO} else f"kinds {[oct(kind) for kind in kinds]}"


@attack("information", control=True)
def learn_host_name(context):
    """Asks for the host's name by all ways. Promise: own host name."""
    names = {socket.gethostname(), os.uname().nodename, read_some("/proc/sys/kernel/hostname").decode().strip()}
    return f"{names}" if context["host_name"] in names else None


@attack("information")
def read_masked_files(context):
    """Reads files of /proc that tell about the host. Promise: they are empty."""
    names = """kcore kmsg keys key-users timer_list timer_stats sched_debug latency_stats slabinfo vmallocinfo pagetypeinfo kallsyms kpagecount
        kpageflags kpagecgroup interrupts iomem ioports mtrr cmdline modules config.gz diskstats partitions softirqs vmstat zoneinfo buddyinfo
        swaps consoles bootconfig bus/pci/devices fs/ext4 driver/rtc irq/0 pressure/cpu scsi/scsi tty/drivers acpi/wakeup asound/cards""".split()
    return first_that_works([f"/proc/{name}" for name in names], lambda path: os.listdir(path) if os.path.isdir(path) else os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 64))


@attack("information")
def read_kernel_addresses(context):
    """Looks for kernel addresses. Promise: none leaks."""
    def look(path):
        words = read_some(path).decode(errors="replace").replace("0x", " ").split()
        return next((word for word in words if len(word) == 16 and word.startswith("ffff") and word.strip("f")), None)

    return first_that_works(["/proc/self/stack", "/proc/self/wchan", "/proc/self/stat", "/proc/self/syscall", "/proc/net/unix", "/proc/net/packet", "/proc/net/netlink"], look)


@attack("information")
def learn_paths_of_the_caller(context):
    """Looks for the caller's directories in its mounts, maps and links. Promise: no host path is told."""
    words = [word.encode() for word in context["host_paths"]]
    texts = [read_some(f"/proc/self/{name}", 1 << 16) for name in ("mountinfo", "maps", "cmdline", "environ", "cgroup")]
    links = [os.readlink(f"/proc/self/{name}").encode() for name in ("exe", "cwd", "root")]
    return next((f"{word!r}" for word in words for text in (*texts, *links) if word in text), None)


@attack("information")
def learn_cgroup_path(context):
    """Reads where it is in the control groups, and whether any is mounted. Promise: cgroup namespace, no cgroup fs."""
    places = {line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup")}
    if places - {"/"}:
        return f"{places}"
    return next((line for line in open("/proc/self/mountinfo") if " cgroup" in line), None)


@attack("information", control=True)
def read_kernel_log(context):
    """dmesg, by call and by file. Promise: the log is the host's."""
    def attempt(how):
        if how == "syslog":
            buffer = ctypes.create_string_buffer(512)
            return buffer.raw[:64] if call("syslog", 3, buffer, 512) > 0 else None
        return os.read(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK), 64)

    return first_that_works(["syslog", "kmsg"], attempt)


@attack("information")
def find_old_data_in_scratch(context):
    """Looks for what an earlier box left. Promise: everything is fresh."""
    left = [os.path.join(place, name) for place in ("/tmp", "/dev/shm", "/workspace") for name in os.listdir(place)]
    return f"{left}" if [path for path in left if "nacre-left-" in path] else None


@attack("information", alone=True, needs="decision")
def watch_files_of_host(context):
    """inotify on /usr/bin: the inodes are the host's own, so that every start of a program there, and in any other
    box, is seen. Promise: no view of others. The host starts a program meanwhile."""
    import select

    descriptor = libc.inotify_init1(0)
    libc.inotify_add_watch(descriptor, b"/usr/bin", 0x20)
    print("holding", flush=True)
    ready, _, _ = select.select([descriptor], [], [], 2)
    return f"saw {os.read(descriptor, 4096)[16:].rstrip(bytes(1))!r}" if ready else None


@attack("information", control=True)
def identify_host_by_boot_id(context):
    """Reads the boot id: two boxes learn that they share a host. Promise: topology is not told."""
    return "same boot id" if read_some("/proc/sys/kernel/random/boot_id").decode().strip() == context["boot_id"] else None
