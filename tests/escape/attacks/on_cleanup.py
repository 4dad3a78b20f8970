"""Attacks on the end: whatever it does, at the end of a box nothing of it runs on. The host counts what is left."""

from inside import *  # noqa: F403

TIMEOUT = ("--timeout", "1s", "--pids", "32")
TIMED_OUT = ("timeout", None, 9)


def ignore_everything():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))


def daemon(work):
    """A process that nobody waits for, in a session of its own, that survives its parents."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            libc.prctl(1, 0)  # PR_SET_PDEATHSIG: none
            ignore_everything()
            work()
        os._exit(0)
    os.wait()


@attack("cleanup", alone=True, within=8, options=("--pids", "32"), ends=("success", 0, None))
def leave_daemon_behind(context):
    """A daemon in its own session that ignores all signals; the main process ends. Promise: nothing survives the run."""
    daemon(lambda: time.sleep(60))


@attack("cleanup", alone=True, within=8, options=("--pids", "32"), ends=("success", 0, None))
def hold_the_output_open(context):
    """A daemon that keeps writing to the output after the main process has ended. Promise: the result comes at its end."""
    def write_on():
        while True:
            os.write(1, b"still here\n")
            time.sleep(0.05)

    daemon(write_on)


@attack("cleanup", alone=True, within=8, options=TIMEOUT, ends=TIMED_OUT)
def ignore_all_signals(context):
    """Ignores and blocks every signal, and spins. Promise: the timeout ends it."""
    ignore_everything()
    while True:
        pass


@attack("cleanup", alone=True, within=8, options=TIMEOUT, ends=TIMED_OUT)
def stop_itself(context):
    """SIGSTOP to itself. Promise: the timeout ends it."""
    os.kill(os.getpid(), signal.SIGSTOP)


@attack("cleanup", alone=True, within=8, options=TIMEOUT, ends=TIMED_OUT)
def fork_for_ever(context):
    """Children that start children as fast as the limit lets them, while the box is killed. Promise: all of them die."""
    ignore_everything()
    while True:
        try:
            if os.fork():
                os._exit(0) if os.getpid() != context.setdefault("first", os.getpid()) else time.sleep(0.001)
        except OSError:
            time.sleep(0.001)


@attack("cleanup", alone=True, within=8, options=TIMEOUT, ends=TIMED_OUT)
def wait_in_vfork(context):
    """A vfork whose child stops: its parent cannot be interrupted. Promise: the timeout ends it."""
    CLONE_VFORK = 0x4000
    pid = call("clone", CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ignore_everything()
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)


@attack("cleanup", alone=True, within=8, options=TIMEOUT, ends=TIMED_OUT)
def end_main_thread_only(context):
    """The main thread ends, another goes on. Promise: the timeout ends it."""
    threading.Thread(target=time.sleep, args=(60,)).start()
    call(60 if MACHINE == "x86_64" else 93, 0)


@attack("cleanup", alone=True, within=8, options=("--pids", "32"), ends=("success", 0, None))
def leave_zombies_and_files(context):
    """Zombies, shared memory, sockets, locks and deep directories at the end. Promise: all of it is gone."""
    for _ in range(10):
        if os.fork() == 0:
            os._exit(0)
    libc.shmget(4711, 4096, 0o1600)
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0nacre-left-behind")
    server.listen()
    for place in ("/tmp", "/dev/shm", "/workspace"):
        open(f"{place}/nacre-left-behind", "w").close()
    os.set_inheritable(server.fileno(), True)
