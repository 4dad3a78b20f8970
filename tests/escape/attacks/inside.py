"""What attacks are written with. The tests import it for the table, and send it into the box in front of the attacks.

An attack is a function that gets the context. It returns what it got ("read the canary: ..."), which is an
escape, or nothing. An OSError means that the kernel refused, which is the box holding; every other exception is
an attack that is broken, and fails the test: a broken attack proves nothing.
"""

import ctypes
import errno
import fcntl
import os
import platform
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback

ATTACKS = {}
SECONDS_PER_ATTACK = 15
MACHINE = platform.machine()

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# name: (x86_64, aarch64); from 424 on all architectures share their numbers
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280), "capset": (126, 91),
    "chroot": (161, 51), "clock_settime": (227, 112), "clone": (56, 220), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "init_module": (175, 105), "io_setup": (206, 0),
    "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "memfd_create": (319, 279), "mount": (165, 40), "move_pages": (279, 239),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "perf_event_open": (298, 241),
    "personality": (135, 92), "pivot_root": (155, 41), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "prlimit64": (302, 261), "quotactl": (179, 60), "reboot": (169, 142),
    "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "setns": (308, 268), "settimeofday": (170, 170),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97),
    "userfaultfd": (323, 282), "vhangup": (153, 58), "vmsplice": (278, 75), "sched_setattr": (314, 274),
    "process_madvise": (440, 440), "io_uring_setup": (425, 425), "pidfd_send_signal": (424, 424),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432),
    "fspick": (433, 433), "pidfd_open": (434, 434), "clone3": (435, 435), "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442), "quotactl_fd": (443, 443), "memfd_secret": (447, 447), "statmount": (457, 457),
    "listmount": (458, 458),
}


class Attack:
    def __init__(self, function, kind, options):
        self.name = function.__name__
        self.kind = kind
        self.what = function.__doc__
        self.function = function
        self.needs = options.pop("needs", None)  # "seccomp", "cgroup" or "decision": expected to get through until then
        self.control = options.pop("control", False)  # must succeed outside of a box
        self.alone = options.pop("alone", False)  # gets a box of its own
        self.modes = options.pop("modes", ("root", "user", "userns"))
        self.options = options.pop("options", ())  # of nacre exec
        self.within = options.pop("within", 20)  # seconds after which nacre must have ended by itself
        self.ends = options.pop("ends", None)  # (status, exit_code, signal) that nacre must report
        self.feed = options.pop("feed", 0)  # bytes of input behind the program
        assert not options, options


def attack(kind, **options):
    def register(function):
        assert function.__name__ not in ATTACKS and function.__doc__
        ATTACKS[function.__name__] = Attack(function, kind, dict(options))
        return function

    return register


def call(name, *arguments):
    """A system call by name; fails like the functions of os."""
    number = NUMBERS[name][MACHINE == "aarch64"] if isinstance(name, str) else name
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def first_that_works(candidates, attempt):
    """The first candidate for which attempt() gives something, as text; None if all are refused."""
    for candidate in candidates:
        try:
            got = attempt(candidate)
        except OSError:
            continue
        if got:
            return f"{candidate}: {got!r}"
    return None


def read_some(path, size=4096):
    with open(path, "rb", buffering=0) as file:
        return file.read(size)


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def in_child(function):
    """Runs function in a child, and gives back its exit status; 99 if it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(function() or 0)
        finally:
            os._exit(99)
    return os.waitpid(pid, 0)[1]


def verdict(function, context):
    try:
        got = function(context)
        return f"ESCAPED: {got}" if got else "held: got nothing"
    except OSError as error:
        return f"held: {error}"
    except Exception:
        return f"broken: {traceback.format_exc()!r}"


def run_one(name, context):
    """In a child of its own, so that an attack that kills or changes itself harms no other."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        context["verdict_fd"] = writer
        signal.alarm(SECONDS_PER_ATTACK)
        if "control" in context:
            libc.unshare(0x20000)  # outside of a box mounts work, and must not disturb the next one
        os.write(writer, verdict(ATTACKS[name].function, context).encode(errors="replace")[:4000])
        os._exit(0)
    os.close(writer)
    text = b""
    while part := os.read(reader, 4096):
        text += part
    os.close(reader)
    status = os.waitpid(pid, 0)[1]
    return text.decode() or f"held: ended by {status}"


def main(context):
    for name in context["run"]:
        text = run_one(name, context) if context["forked"] else verdict(ATTACKS[name].function, context)
        print(f"verdict {name} {text!r}", flush=True)
