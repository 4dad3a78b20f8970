"""Attacks on who watches: the spawner, the worker and what they report cannot be stopped, killed or lied to."""

from inside import *  # noqa: F403

CLONE_PARENT = 0x8000
PTRACE_TRACEME = 0


@attack("monitor", alone=True, within=8, options=("--timeout", "2s"))
def give_the_spawner_a_child(context):
    """clone with CLONE_PARENT: the zombie is the spawner's, which does not know it, and the pid namespace waits for it
    for ever. Promise: the run ends."""
    if call("clone", CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
    time.sleep(0.2)


@attack("monitor", alone=True, within=8, options=("--timeout", "2s"))
def give_many_children_to_the_spawner(context):
    """The same eight times, with children that live until they are killed. Promise: the run ends."""
    for _ in range(3):
        if call("clone", CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
            while True:
                signal.pause()


@attack("monitor", alone=True, within=8, options=("--timeout", "2s"))
def be_traced_by_the_spawner_in_a_thread(context):
    """PTRACE_TRACEME in a thread: the thread's zombie waits for its tracer, the spawner, and the payload's end is never
    reported. Promise: the run ends."""
    thread = threading.Thread(target=lambda: libc.ptrace(PTRACE_TRACEME, 0, 0, 0))
    thread.start()
    thread.join()


@attack("monitor", alone=True, within=8, options=("--timeout", "1s"))
def be_traced_by_the_spawner(context):
    """PTRACE_TRACEME in the main process, then a signal: it stops for a tracer that does not look. Promise: the run ends."""
    libc.ptrace(PTRACE_TRACEME, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGUSR1)


@attack("monitor", alone=True, within=8, feed=1 << 20, ends=("error", 7, None))
def close_the_input(context):
    """Closes its input while the worker still writes to it: SIGPIPE. Promise: the worker lives, the status is right."""
    os.close(0)
    time.sleep(0.5)
    os._exit(7)


@attack("monitor", alone=True, within=8, ends=("error", 7, None))
def close_the_output(context):
    """Closes its output at once and goes on. Promise: the status is still the real one."""
    os.close(1)
    os.close(2)
    time.sleep(0.2)
    os._exit(7)


@attack("monitor", alone=True, within=8, ends=("success", 0, None))
def steal_its_own_output(context):
    """Reads back from its output pipe, to leave the worker in a read for nothing. Promise: the run ends."""
    reader = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        os.write(1, b"x")
        try:
            os.read(reader, 65536)
        except BlockingIOError:
            pass


@attack("monitor", alone=True, within=8, ends=("killed", None, 15))
def die_by_signal(context):
    """Dies by a signal and prints that all is well. Promise: the status comes from a wait, not from text."""
    print('{"status": "success", "exit_code": 0}\nnacre exec: Ended: timeout', flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


@attack("monitor", alone=True, within=8, ends=("error", 125, None))
def pretend_that_nacre_failed(context):
    """Exits with the number that Nacre keeps for its own failures. Promise: the JSON says that it was the program."""
    print("nacre exec: The box could not be made", file=sys.stderr, flush=True)
    os._exit(125)


@attack("monitor", alone=True, within=8, ends=("error", 124, None))
def pretend_a_timeout(context):
    """Exits with the number of a timeout. Promise: a timeout is the supervisor's own decision, not a number."""
    os._exit(124)


@attack("monitor", alone=True, within=8, ends=("success", 0, None))
def print_hostile_bytes(context):
    """Invalid UTF-8, NULs, escape sequences, JSON's end. Promise: the answer stays one valid JSON object."""
    os.write(1, b'"}\n{"status":"x"}\x00\xff\xfe\xed\xa0\x80\x1b[2J\xf4\x90\x80\x80' * 200)


@attack("monitor", alone=True, within=10, ends=("success", 0, None))
def print_byte_by_byte(context):
    """Fifty thousand writes of one byte. Promise: the worker keeps up."""
    for _ in range(50000):
        os.write(1, b"x")


@attack("monitor", alone=True, within=8, modes=("user", "userns"))
def limit_init(context):
    """prlimit on process 1, which has the payload's id where only one is mapped: CPU time 0. Promise: at worst it
    ends its own box."""
    call("prlimit64", 1, resource.RLIMIT_CPU, struct.pack("QQ", 0, 0), 0)
    for _ in range(200):  # give it something to reap
        if os.fork() == 0:
            os._exit(0)
        os.wait()


@attack("monitor", alone=True, within=8, options=("--timeout", "2s"), ends=("timeout", None, 9))
def stop_every_process(context):
    """SIGSTOP to all, its children first. Promise: the timeout ends it."""
    for _ in range(3):
        if os.fork() == 0:
            while True:
                signal.pause()
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass  # where the filter keeps signals in; then itself alone
    os.kill(os.getpid(), signal.SIGSTOP)
