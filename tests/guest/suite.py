#!/usr/bin/python3
"""Runs tests of tests/func in a machine of its own whose control groups are of version 2: suite.py BUILD-DIR [PYTEST-ARGUMENT...]

The guest sees this machine's files (virtiofs), read-only below a layer in its memory, so that nothing is installed or copied. Without
arguments it runs GUEST_TESTS. It emulates the processor, so that everything takes ten times as long; NACRE_GUEST_ACCEL=kvm is for machines
whose KVM works.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import guest

VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
MODULES = ("virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci fuse virtiofs overlay").split()
# what depends on groups, and on an older kernel; tests with clocks of their own, benchmarks and the network make no sense in there
GUEST_TESTS = ("test_exec.py test_limits.py test_groups.py test_beside.py test_staying.py test_told.py test_run.py test_spawner.py "
               "test_sandboxes.py test_serve.py test_serve_small.py test_serve_certificate.py").split()
HOURS = 3

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in {modules}; do insmod /modules/$module.ko || echo "no $module"; done
mkdir -p /host /layer /root
mount -t virtiofs -o ro host /host
mount -t tmpfs -o size=75% layer /layer
mkdir /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /root
for directory in proc sys dev; do mount --move /$directory /root/$directory; done
exec switch_root /root /bin/sh /go-in-guest
"""

GO = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mkdir -p /dev/pts /dev/shm /run /tmp
mount -t devpts devpts /dev/pts
for directory in /dev/shm /run /tmp /var/tmp; do mount -t tmpfs tmpfs $directory; chmod 1777 $directory; done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
cd {root}
echo 'guest begins'
NACRE_BUILD={build} /usr/bin/python3 -m pytest -q -p no:cacheprovider {arguments}
echo "guest ends: $?"
poweroff -f
"""


def initramfs(build, arguments):
    image = guest.kernel()
    place = pathlib.Path(image).parents[1] / "modules"
    files = {"init": (INIT.format(modules=" ".join(MODULES)).encode(), 0o755), "bin/busybox": (pathlib.Path(guest.BUSYBOX).read_bytes(), 0o755)}
    for name in ("proc", "sys", "dev"):
        files[f"{name}/.keep"] = (b"", 0o644)
    for name in MODULES:
        files[f"modules/{name}.ko"] = ((place / f"{name}.ko").read_bytes(), 0o644)
    go = GO.format(root=guest.ROOT, build=build, arguments=" ".join(arguments))
    # the root is another by then: what it is to run comes as its argument
    files["init"] = (files["init"][0].replace(b"exec switch_root /root /bin/sh /go-in-guest", b"exec switch_root /root /bin/sh -c '%s'" % go.replace("'", "'\\''").encode()), 0o755)
    return image, guest.initramfs(files)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    arguments = sys.argv[2:] or [f"tests/func/{name}" for name in GUEST_TESTS]
    if not shutil.which(VIRTIOFSD):
        raise guest.Missing(f"no {VIRTIOFSD}")
    with tempfile.TemporaryDirectory(prefix="nacre-guest-") as directory:
        place = pathlib.Path(directory)
        image, archive = initramfs(build, arguments)
        (place / "guest.cpio").write_bytes(archive)
        files = subprocess.Popen([VIRTIOFSD, f"--socket-path={place}/files", "-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=always"],
                                 stdout=subprocess.DEVNULL, stderr=open(place / "files.log", "w"))
        machine = None
        try:
            until = time.monotonic() + 20
            while not (place / "files").exists():
                if files.poll() is not None or time.monotonic() > until:
                    raise guest.Missing("virtiofsd does not begin: " + (place / "files.log").read_text())
                time.sleep(0.1)
            machine = subprocess.Popen(
                [guest.QEMU, "-M", "q35", "-accel", os.environ.get("NACRE_GUEST_ACCEL", "tcg"), "-cpu", "max", "-smp", "2", "-m", "4096", "-nodefaults", "-no-user-config",
                 "-object", "memory-backend-memfd,id=memory,size=4096M,share=on", "-numa", "node,memdev=memory",
                 "-chardev", f"socket,id=files,path={place}/files", "-device", "vhost-user-fs-pci,chardev=files,tag=host",
                 "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", image, "-initrd", place / "guest.cpio",
                 "-append", "console=ttyS0 panic=-1 quiet loglevel=3"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
            code = None
            for line in machine.stdout:
                print(line, end="", flush=True)
                if line.startswith("guest ends: "):
                    code = int(line.split()[2])
            machine.wait(timeout=HOURS * 3600)
        finally:
            for process in (machine, files):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
    if code is None:
        print("the guest did not come to its end", file=sys.stderr)
    return 1 if code is None else code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except guest.Missing as reason:
        sys.exit(f"tests/guest/suite.py: {reason}")
