"""Attacks on resources: limits bite whatever is used up, and pools that the whole host shares stay usable."""

from inside import *  # noqa: F403

MB = 1 << 20


def hold_until_told():
    """Keeps what was taken until the host has looked: it closes our input."""
    print("holding", flush=True)
    sys.stdin.read()


@attack("resource", alone=True, options=("--pids", "16"))
def start_too_many_processes(context):
    """Forks far beyond --pids. Promise: the limit of processes."""
    alive = 1
    try:
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            alive += 1
    except OSError:
        pass
    return f"{alive} processes" if alive > 16 else None


@attack("resource", alone=True, options=("--pids", "16"))
def start_too_many_threads(context):
    """Threads count too. Promise: the limit of processes and threads."""
    stop = threading.Event()
    started = 1
    try:
        for _ in range(100):
            threading.Thread(target=stop.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    stop.set()
    return f"{started} threads" if started > 16 else None


def touch(size):
    """Takes memory and writes each page of it, or is refused or killed."""
    data = bytearray(size)
    data[:: resource.getpagesize()] = b"x" * len(data[:: resource.getpagesize()])
    return data


@attack("resource", alone=True, options=("--memory", "64MB"))
def take_memory_in_one_process(context):
    """Takes 256 MB of 64. Promise: the limit of memory."""
    try:
        return f"holds {len(touch(256 * MB)) // MB} MB of 64"
    except MemoryError:
        return None


@attack("resource", alone=True, needs="cgroup", options=("--memory", "64MB", "--pids", "16"))
def take_memory_in_children(context):
    """Eight children with 40 MB each, all alive at once. Promise: the limit is the box's, not each process's."""
    reader, writer = os.pipe()
    for _ in range(8):
        if os.fork() == 0:
            data = touch(40 * MB)
            os.write(writer, b"x")
            signal.pause()
            del data
    os.close(writer)
    count = 0
    while count < 8 and os.read(reader, 1):
        count += 1
    return f"{count} children hold {40 * count} MB of 64" if count * 40 > 64 else None


@attack("resource", alone=True, needs="cgroup", options=("--memory", "64MB"))
def take_memory_in_memfd(context):
    """256 MB in a memfd, which no rlimit counts. Promise: the limit of memory."""
    descriptor = os.memfd_create("hidden")
    for _ in range(256):
        os.write(descriptor, bytes(MB))
    return f"{os.fstat(descriptor).st_size // MB} MB in a memfd, of 64"


@attack("resource", alone=True, needs="cgroup", options=("--memory", "64MB"))
def take_memory_in_shared_segments(context):
    """SysV segments of 16 MB, touched and left. Promise: the limit of memory."""
    libc.shmat.restype = ctypes.c_void_p
    total = 0
    for _ in range(16):
        segment = libc.shmget(0, ctypes.c_size_t(16 * MB), 0o600)
        place = libc.shmat(segment, None, 0)
        if place in (None, ctypes.c_void_p(-1).value):
            break
        ctypes.memset(place, 1, 16 * MB)
        libc.shmdt(ctypes.c_void_p(place))
        total += 16
    return f"{total} MB in segments, of 64" if total > 64 else None


@attack("resource", alone=True, needs="cgroup", options=("--memory", "32MB"))
def take_memory_in_pipes(context):
    """Pipes of 1 MB, filled. Promise: the limit of memory counts what the kernel holds for the box."""
    total = 0
    for _ in range(100):
        _, writer = os.pipe()
        try:
            fcntl.fcntl(writer, 1031, MB)
        except OSError:
            break
        os.set_blocking(writer, False)
        total += os.write(writer, bytes(MB))
    return f"{total // MB} MB in pipes, of 32" if total > 32 * MB else None


@attack("resource", alone=True, options=("--disk", "8MB"))
def fill_the_disk(context):
    """Writes and preallocates in all three writable places. Promise: one limit for all of them."""
    total = 0
    for directory in ("/workspace", "/tmp", "/dev/shm"):
        descriptor = os.open(f"{directory}/big", os.O_CREAT | os.O_WRONLY)
        try:
            os.posix_fallocate(descriptor, 0, 4 * MB)
            os.lseek(descriptor, 0, os.SEEK_END)
            while True:
                os.write(descriptor, bytes(MB))
        except OSError:
            total += os.fstat(descriptor).st_blocks * 512
    return f"{total // MB} MB of 8" if total > 8 * MB else None


@attack("resource", alone=True, options=("--disk", "1MB"))
def use_up_inodes(context):
    """Empty files, directories and links without end. Promise: inodes are limited with the disk."""
    made = 0
    try:
        for number in range(5000):
            os.symlink("x", f"/tmp/{number}")
            made += 1
    except OSError:
        pass
    return f"{made} files on 1 MB" if made > 1000 else None


@attack("resource", alone=True, options=("--disk", "1MB"))
def hide_data_in_attributes(context):
    """Extended attributes are kernel memory outside of the blocks. Promise: the disk limit covers them."""
    open("/tmp/file", "w").close()
    total = 0
    try:
        for number in range(1000):
            os.setxattr("/tmp/file", f"user.x{number}", bytes(60000))
            total += 60000
    except OSError:
        pass
    return f"{total // 1000} kB in attributes, on 1 MB of disk" if total > 2 * MB else None


@attack("resource")
def open_too_many_files(context):
    """Opens files without end. Promise: RLIMIT_NOFILE, soft and hard."""
    opened = 0
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        while opened < 5000:
            os.dup(0)
            opened += 1
    except OSError:
        pass
    return f"{opened} descriptors" if opened > 4096 else None


@attack("resource")
def raise_limits(context):
    """Raises each hard limit. Promise: limits only go down."""
    def attempt(which):
        _, hard = resource.getrlimit(which)
        if hard == resource.RLIM_INFINITY:
            return None
        try:
            resource.setrlimit(which, (hard, hard + 1))
        except ValueError:
            return None
        return f"{hard} to {resource.getrlimit(which)[1]}"

    names = [resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS, resource.RLIMIT_MEMLOCK, resource.RLIMIT_CORE, resource.RLIMIT_STACK, resource.RLIMIT_RTPRIO]
    return first_that_works(names, attempt)


@attack("resource")
def lock_memory(context):
    """mlock beyond 64 KiB. Promise: RLIMIT_MEMLOCK."""
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, ctypes.c_size_t(16 * MB), 3, 0x22, -1, ctypes.c_long(0))
    return "locked 16 MB" if libc.mlock(ctypes.c_void_p(place), ctypes.c_size_t(16 * MB)) == 0 else None


@attack("resource", needs="seccomp")
def lower_core_limit(context):
    """Lowers RLIMIT_CORE from 1 to 0: with 1 the kernel starts no piped core handler, with 0 it does, as host root.
    Promise: a crash in a box starts nothing on the host."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except ValueError:  # what Python makes of EPERM
        return None
    return "lowered the limit of core files to 0"


@attack("resource")
def queue_signals_without_end(context):
    """Queues real-time signals to itself; they count for the host user too. Promise: RLIMIT_SIGPENDING is small."""
    number = signal.SIGRTMIN + 3
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    info = struct.pack("iiii", number, 0, -1, 0) + struct.pack("ii", os.getpid(), os.getuid()) + bytes(104)
    queued = 0
    try:
        while queued < 20000:
            call("rt_sigqueueinfo", os.getpid(), int(number), info)
            queued += 1
    except OSError:
        pass
    return f"queued {queued} signals" if queued > 8192 else None


@attack("resource")
def take_terminals(context):
    """Opens pseudo terminals, of which the host has one pool. Promise: none, or few."""
    taken = 0
    try:
        while taken < 100:
            os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
            taken += 1
    except OSError:
        pass
    return f"{taken} terminals" if taken > 64 else None


@attack("resource")
def protect_from_oom_killer(context):
    """Lowers its own oom_score_adj. Promise: when memory ends, the box goes first."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-500")
    return "oom_score_adj is -500"


@attack("resource", alone=True, options=("--memory", "512MB", "--pids", "16"))
def take_inotify_instances(context):
    """All inotify instances: the kernel counts them for the user who made the box too, root. Promise: host stays usable.
    The host looks while they are held."""
    while libc.inotify_init1(0) >= 0:
        pass
    hold_until_told()
    return None


@attack("resource", alone=True, needs="seccomp", options=("--memory", "1GB", "--pids", "16"))
def take_asynchronous_io(context):
    """io_setup until the machine-wide fs.aio-max-nr is used up. Promise: host stays usable. The host looks."""
    if MACHINE == "x86_64":
        try:
            while True:
                call("io_setup", 4000, ctypes.byref(ctypes.c_ulong(0)))
        except OSError:
            pass
        try:
            while True:
                call("io_setup", 1, ctypes.byref(ctypes.c_ulong(0)))
        except OSError:
            pass
    hold_until_told()
    return None


@attack("resource", alone=True, options=("--output", "100KB"), within=8, ends=("output_limit", None, 9))
def print_without_end(context):
    """Prints for ever, without a newline, to both streams. Promise: the limit of output ends it."""
    while True:
        os.write(1, b"x" * 65536)
        os.write(2, b"y" * 65536)


@attack("resource", alone=True, needs="cgroup", options=("--pids", "16"))
def burn_time_unbilled(context):
    """Lets a daemon burn the processor, so that nobody waits for it. Promise: the bill has all of it. The host looks."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            start = time.process_time()
            while time.process_time() - start < 0.6:
                pass
            os.write(writer, b"x")
        os._exit(0)
    os.wait()
    os.read(reader, 1)
    return None
