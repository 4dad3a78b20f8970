"""A machine of its own for what this one cannot show: Debian's cloud kernel in QEMU, without KVM.

boot() makes an initramfs of busybox, nacre and the libraries that it needs, runs a shell script as
the guest's first program and returns what it printed. It takes some seconds.
"""

import os
import pathlib
import re
import shutil
import stat
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"

# pivot_root refuses to leave the initramfs itself, so the guest moves into a tmpfs first
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir /root
mount -t tmpfs -o mode=755 root /root
cp -a /bin /etc /lib /lib64 /usr /go /root/
mkdir -m 1777 /root/tmp
mkdir /root/proc /root/sys /root/dev
exec switch_root /root /bin/sh /go
"""

GO = """
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
export GCOV_ERROR_FILE=/dev/null # a coverage build cannot write its counters here
echo 'guest begins'
{script}
echo 'guest ends'
poweroff -f
"""


class Missing(Exception):
    """What it takes to run a guest is not here; the text says what."""


def entry(number, name, mode, data=b""):
    """One file of a cpio archive in the "newc" format that kernels unpack."""
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def initramfs(files):
    """An archive of files (path -> content, mode) with the directories above them."""
    made, parts = set(), []
    for path, (data, mode) in files.items():
        for parent in reversed(pathlib.PurePath(path).parents):
            if str(parent) not in made | {"."}:
                made.add(str(parent))
                parts.append(entry(len(parts) + 1, str(parent), stat.S_IFDIR | 0o755))
        parts.append(entry(len(parts) + 1, path, stat.S_IFREG | mode, data))
    parts.append(entry(0, "TRAILER!!!", 0))
    return b"".join(parts)


def libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout  # nothing for static ones
    return re.findall(r"(/\S+) \(0x", listed)


def kernel():
    if os.uname().machine != "x86_64" or not shutil.which(QEMU):
        raise Missing(f"no {QEMU}")
    if not os.path.exists(BUSYBOX):
        raise Missing("no static busybox")
    done = subprocess.run([ROOT / "tools/guest-kernel", ROOT / "build-guest"], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        raise Missing(f"no guest kernel: {done.stderr.strip()}")
    return done.stdout.strip()


def boot(directory, program, script, timeout=300, programs=()):
    """Boots a guest that runs script, with programs in /bin; returns its output between the two marks."""
    image = kernel()
    files = {
        "init": (INIT.encode(), 0o755),
        "go": (GO.format(script=script).encode(), 0o644),
        "bin/busybox": (pathlib.Path(BUSYBOX).read_bytes(), 0o755),
        "bin/nacre": (pathlib.Path(program).read_bytes(), 0o755),
        "etc/passwd": (b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n", 0o644),
        "usr/empty": (b"", 0o644),
    }
    for path in programs:
        files[f"bin/{pathlib.Path(path).name}"] = (pathlib.Path(path).read_bytes(), 0o755)
    for library in {library for path in (program, *programs) for library in libraries(path)}:
        files[library.lstrip("/")] = (pathlib.Path(library).read_bytes(), 0o755)
    archive = pathlib.Path(directory) / "guest.cpio"
    archive.write_bytes(initramfs(files))
    done = subprocess.run(
        [QEMU, "-M", "q35", "-accel", "tcg", "-cpu", "qemu64", "-m", "512", "-nodefaults", "-no-user-config",
         "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", image, "-initrd", archive,
         "-append", "console=ttyS0 panic=-1 quiet loglevel=0"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    text = done.stdout.decode(errors="replace").replace("\r\n", "\n")
    found = re.search(r"^guest begins\n(.*)^guest ends\n", text, re.S | re.M)
    assert found, f"the guest did not come to its end:\n{text[-4000:]}{done.stderr.decode(errors='replace')}"
    return found[1]
