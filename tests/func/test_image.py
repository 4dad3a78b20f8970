"""nacre image: trees from strangers, unpacked in boxes and used by boxes, as root and as an ordinary user."""

import io
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tarfile
import time

import pytest

from conftest import BUILD, environment, open_way

USER = 1000
WORKER = 0x70000000 - 1
PROGRAMS = ("nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-init", "nacre-files", "nacre-sudo", *(path.name for path in BUILD.glob("nacre-exec")))
APPLETS = ("cat", "grep", "head", "id", "ls", "readlink", "sh", "sleep", "stat", "touch", "wc")


def open_ways(directory):
    """Everybody may walk there: pytest's own directories are closed."""
    open_way(directory)
    return directory


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    directory = open_ways(tmp_path_factory.mktemp("programs"))
    for name in PROGRAMS:
        shutil.copy(BUILD / name, directory / name)
    return directory


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The smallest tree that does something: a static busybox."""
    busybox = shutil.which("busybox")
    if not busybox:
        pytest.skip("needs busybox")
    top = open_ways(tmp_path_factory.mktemp("tree"))
    for name in ("bin", "etc", "dev", "proc", "var/lib"):
        (top / name).mkdir(parents=True)
    shutil.copy(busybox, top / "bin/busybox")
    for name in APPLETS:
        (top / "bin" / name).symlink_to("busybox")
    os.link(top / "bin/busybox", top / "bin/second")
    (top / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    (top / "etc/group").write_text("root:x:0:\n")
    (top / "etc/os-release").write_text("ID=pearl\n")
    (top / "link").symlink_to("etc/os-release")
    (top / "file").write_text("at the top\n")
    return top


@pytest.fixture(params=["root", "user"])
def images(request, programs, tmp_path):
    """Runs nacre as root or as an ordinary user, with a state directory of the test's own."""
    prefix = []
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    if request.param == "user":
        if os.geteuid() == 0:
            prefix = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        if subprocess.run([*prefix, "unshare", "--user", "true"], capture_output=True).returncode != 0:
            pytest.skip("no user namespaces for ordinary users here")
    home = open_ways(tmp_path) / "home"
    home.mkdir()
    if prefix:
        os.chown(home, USER, USER)
    env = {**environment(home), "NACRE_STATE": str(home / "state")}

    def run(*args, **options):
        options.setdefault("timeout", 120)
        options.setdefault("text", True)
        options.setdefault("capture_output", True)
        options.setdefault("env", env)
        if options.get("input") is None:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*prefix, programs / "nacre", *map(str, args)], **options)

    def start(*args, **options):
        return subprocess.Popen([*prefix, programs / "nacre", *map(str, args)], env=env, stderr=subprocess.PIPE, **options)

    run.start = start
    run.user = request.param
    run.owner = WORKER if request.param == "root" else USER if prefix else os.geteuid()
    run.store = home / "state/images"
    run.names = lambda: sorted(image["name"] for image in json.loads(run("image", "list", "--json").stdout)["images"])
    run.left = lambda: sorted(os.listdir(run.store)) if run.store.exists() else []
    return run


def archive(path, *members):
    """A tar archive; a member is (name, content) or a TarInfo."""
    with tarfile.open(path, "w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size, info.mode = len(member[1]), 0o644
                tar.addfile(info, io.BytesIO(member[1]))
    path.chmod(0o644)
    return path


def entry(name, kind, target="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def packed(tree, path, compress=""):
    command = f"tar -C {tree} -c . | {compress or 'cat'} >{path}"
    subprocess.run(["sh", "-c", command], check=True)
    return path


def good(done):
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("compress", ["", "gzip", "bzip2", "xz", "zstd"])
def test_archive_becomes_an_image(images, tree, tmp_path, compress):
    done = good(images("image", "import", "pearl", packed(tree, tmp_path / "archive", compress)))
    assert (done.stdout, done.stderr) == ("", "")
    assert images.names() == ["host", "pearl"] and images.left() == ["pearl"]
    done = good(images("exec", "--image", "pearl", "--", "cat", "/etc/os-release"))
    assert done.stdout == "ID=pearl\n"


def test_archive_from_standard_input_in_pieces(images, tree, tmp_path):
    """No byte is lost between looking for what it is and unpacking it."""
    data = packed(tree, tmp_path / "archive", "gzip").read_bytes()
    process = images.start("image", "import", "pearl", "-", stdin=subprocess.PIPE)
    for i in range(0, 8):
        process.stdin.write(data[i:i + 1])
        process.stdin.flush()
        time.sleep(0.01)
    process.stdin.write(data[8:])
    assert process.communicate()[1] == b"" and process.returncode == 0
    good(images("exec", "--image", "pearl", "--", "ls", "/bin/busybox"))


def test_box_has_the_tree_and_nothing_of_the_host(images, tree):
    good(images("image", "import", "pearl", tree))
    script = """
id -un; id -gn; cat /link /file; ls /usr /home /lib 2>/dev/null; ls /var; readlink /link; ls /proc/self/fd >/dev/null && echo proc
for i in / /bin /etc /file /proc /dev; do touch $i/new 2>/dev/null && echo "$i can be written"; done
touch /file 2>/dev/null && echo "file can be written"
touch /tmp/x /workspace/x && grep -c sandbox /etc/passwd; echo x >/dev/null && ls /dev/shm
"""
    done = good(images("exec", "--image", "pearl", "--", "sh", "-c", script))
    assert done.stdout == "sandbox\nsandbox\nID=pearl\nat the top\nlib\netc/os-release\nproc\n1\n", done.stdout + done.stderr
    # what names the user covers the image's file and does not change it
    assert "sandbox" not in (images.store / "pearl/etc/passwd").read_text()


def test_store_is_closed_and_the_workers(images, tree, tmp_path):
    members = (entry("bin", tarfile.DIRTYPE, mode=0o777), entry("closed", tarfile.DIRTYPE, mode=0), ("closed/file", b"x"),
               entry("bin/su", tarfile.REGTYPE, mode=0o6755), entry("secret", tarfile.REGTYPE, mode=0),
               entry("program", tarfile.REGTYPE, mode=0o700), entry(".", tarfile.DIRTYPE, mode=0o700))
    good(images("image", "import", "pearl", archive(tmp_path / "archive", *members)))
    assert stat.S_IMODE(images.store.stat().st_mode) == 0o700
    modes = {str(path.relative_to(images.store)): path.lstat() for path in images.store.rglob("*")}
    assert {(status.st_uid, status.st_gid) for status in modes.values()} == {(images.owner, images.owner)}
    assert {name: oct(stat.S_IMODE(status.st_mode)) for name, status in modes.items()} == {
        "pearl": "0o755", "pearl/bin": "0o755", "pearl/closed": "0o755", "pearl/closed/file": "0o644",
        "pearl/bin/su": "0o755", "pearl/secret": "0o644", "pearl/program": "0o755"}


def test_archive_that_closes_itself(images, tmp_path):
    """tar cannot finish what it has locked itself out of; what it made must go all the same."""
    members = (entry("usr", tarfile.DIRTYPE, mode=0), ("usr/file", b"x"), entry(".", tarfile.DIRTYPE, mode=0))
    done = images("image", "import", "pearl", archive(tmp_path / "archive", *members))
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1
    assert images.left() == []


def test_list_names_size_and_time(images, tree):
    assert images("image", "list").stdout.splitlines() == [f"{'host':32} {'-':>9}  this machine's own programs"]
    assert not images.store.exists(), "a look makes nothing"
    good(images("image", "import", "pearl", tree))
    good(images("image", "import", "agate", tree))
    listed = json.loads(images("image", "list", "--json").stdout)["images"]
    assert [image["name"] for image in listed] == ["host", "agate", "pearl"]
    assert listed[0] == {"name": "host", "bytes": None, "imported": None}
    size = (tree / "bin/busybox").stat().st_size
    assert size <= listed[1]["bytes"] < 1.2 * size + 65536, "two names of a file count once"
    imported = time.mktime(time.strptime(listed[1]["imported"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert abs(time.time() - imported) < 60
    assert images("image", "list").stdout.splitlines()[1].startswith("agate ")


def test_remove(images, tree):
    good(images("image", "import", "pearl", tree))
    assert good(images("image", "remove", "pearl")).stdout == ""
    assert images.left() == [] and images.names() == ["host"]
    done = images("image", "remove", "pearl")
    assert (done.returncode, done.stderr) == (125, "nacre image remove: There is no image 'pearl'\n")
    done = images("exec", "--image", "pearl", "--", "true")
    assert done.returncode == 125 and "There is no image 'pearl': nacre image import pearl" in done.stderr


def test_replace(images, tree, tmp_path):
    good(images("image", "import", "pearl", tree))
    other = archive(tmp_path / "archive", ("usr/file", b"new"))
    done = images("image", "import", "pearl", other)
    assert (done.returncode, done.stderr) == (
        125, "nacre image import: There is an image 'pearl' already: use another name, or --replace\n")
    good(images("image", "import", "--replace", "pearl", other))
    assert os.listdir(images.store / "pearl") == ["usr"] and images.left() == ["pearl"]
    good(images("image", "import", "--replace", "fresh", other))


NAME = "not a name: up to 64 letters, digits, '.', '_' and '-', beginning with a letter, a digit or '_'"


@pytest.mark.parametrize("args, message", [
    (["import", "pearl"], "Name the image and its source: nacre image import NAME DIRECTORY|TAR"),
    (["import", "..", "/tmp"], f"Image '..': {NAME}"),
    (["import", "", "/tmp"], f"Image '': {NAME}"),
    (["import", "a/b", "/tmp"], f"Image 'a/b': {NAME}"),
    (["import", "x" * 65, "/tmp"], f"Image '{'x' * 65}': {NAME}"),
    (["import", "host", "/tmp"], "Image 'host' is this machine's own tree: choose another name"),
    (["import", "pearl", "/nosuch"], "Open '/nosuch': No such file or directory"),
    (["import", "pearl", "/dev/zero"], "'/dev/zero' is neither a directory nor an archive"),
    (["import", "pearl", "/"], "The source contains the images themselves: import a part of it, or use the image 'host'"),
    (["import", "pearl", "/etc/passwd"], "It cannot be unpacked: 'tar: This does not look like a tar archive'"),
    (["import", "--size", "many", "pearl", "/tmp"], "Option '--size': found 'many', expected a size such as 2GB, up to 1024 TB"),
    (["import", "--timeout", "0", "pearl", "/tmp"], "Option '--timeout': found '0', expected a time such as 30s, up to 7 days"),
    (["remove"], "Name the image: nacre image remove NAME"),
    (["remove", "host"], "Image 'host' is this machine's own tree: choose another name"),
    (["remove", "../.."], f"Image '../..': {NAME}"),
])
def test_wrong_calls(images, args, message):
    done = images("image", *args)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.splitlines()[0] == f"nacre image {args[0]}: {message}"
    assert images.left() == []


@pytest.mark.parametrize("cut", ["gzip", "xz", "zstd", "bzip2", ""])
def test_broken_archives_leave_nothing(images, tree, tmp_path, cut):
    whole = packed(tree, tmp_path / "whole", cut).read_bytes()
    (tmp_path / "archive").write_bytes(whole[:len(whole) // 2])
    done = images("image", "import", "pearl", tmp_path / "archive")
    assert done.returncode == 125 and done.stderr.startswith("nacre image import: It cannot be unpacked: '")
    assert len(done.stderr.splitlines()) == 1 and images.left() == []


def test_gzip_with_a_wrong_sum_is_an_error(images, tree, tmp_path):
    data = bytearray(packed(tree, tmp_path / "archive", "gzip").read_bytes())
    data[-6] ^= 1
    (tmp_path / "archive").write_bytes(data)
    done = images("image", "import", "pearl", tmp_path / "archive")
    assert done.returncode == 125 and "crc error" in done.stderr and images.left() == []


def test_nothing_in_it_is_an_error(images, tmp_path):
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "empty", archive(tmp_path / "archive")):
        done = images("image", "import", "pearl", source)
        assert (done.returncode, done.stderr) == (125, "nacre image import: There is nothing in it\n")
    assert images.left() == []


def test_limits_of_size_and_time(images, tree, tmp_path):
    bomb = tmp_path / "bomb"
    subprocess.run(["sh", "-c", f"cd {tmp_path} && truncate -s 200M zeros && tar -c zeros | gzip >{bomb}; rm zeros"], check=True)
    done = images("image", "import", "--size", "100MB", "pearl", bomb)
    assert (done.returncode, done.stderr) == (125, "nacre image import: It unpacks to more than 100MB: see --size\n")
    done = images("image", "import", "--size", "1MB", "pearl", tree)
    assert (done.returncode, done.stderr) == (125, "nacre image import: It unpacks to more than 1MB: see --size\n")
    process = images.start("image", "import", "--timeout", "300ms", "pearl", "-", stdin=subprocess.PIPE)
    assert process.wait(30) == 125
    assert process.stderr.read() == b"nacre image import: Not done after 300ms: see --timeout\n"
    process.stdin.close()
    assert images.left() == []


@pytest.fixture
def canary(tmp_path):
    """A directory that anybody may write to, which nothing must appear in."""
    directory = tmp_path / "canary"
    directory.mkdir()
    directory.chmod(0o777)
    (directory / "file").write_text("alive")
    (directory / "file").chmod(0o666)
    yield directory
    assert os.listdir(directory) == ["file"] and (directory / "file").read_text() == "alive"
    assert (directory / "file").stat().st_nlink == 1 and stat.S_IMODE((directory / "file").stat().st_mode) == 0o666
    assert stat.S_IMODE(directory.stat().st_mode) == 0o777


def test_members_that_lead_outside(images, canary, tmp_path):
    up = "../" * 20
    outside = str(canary)
    attacks = {
        "parent": [(f"{up}{outside[1:]}/new", b"x")],
        "absolute": [(f"{outside}/new", b"x"), (f"{outside}/file", b"x")],
        "through a link": [entry("way", tarfile.SYMTYPE, outside), ("way/new", b"x"), ("way/file", b"x")],
        "through a relative link": [entry("way", tarfile.SYMTYPE, up + outside[1:]), ("way/new", b"x")],
        "through two links": [entry("a", tarfile.SYMTYPE, "b/.."), entry("b", tarfile.SYMTYPE, "/"), (f"a{outside}/new", b"x")],
        "hard link": [entry("usr/link", tarfile.LNKTYPE, f"{outside}/file"), ("usr/link", b"x")],
        "hard link above": [entry("usr/link", tarfile.LNKTYPE, f"{up}{outside[1:]}/file"), ("usr/link", b"x")],
        "hard link to a link": [entry("s", tarfile.SYMTYPE, f"{outside}/file"), entry("h", tarfile.LNKTYPE, "s"), ("h", b"x")],
        "mode of a target": [entry("way", tarfile.SYMTYPE, outside), entry("way", tarfile.DIRTYPE, mode=0o700)],
        "our own": [(f"{up}image/../new", b"x"), ("../root/new", b"x"), ("..", b"x"), ("../../pearl2/x", b"x")],
    }
    for number, (name, members) in enumerate(attacks.items()):
        done = images("image", "import", f"pearl{number}", archive(tmp_path / "archive", ("usr/x", b""), *members))
        assert done.returncode in (0, 125), name
        assert "could not be made" not in done.stderr
    for name in images.left():
        assert not name.startswith("."), "a staging directory is left"
    for number in range(len(attacks)):
        top = images.store / f"pearl{number}"
        for path in top.rglob("*") if top.exists() else ():
            assert path.is_symlink() or path.lstat().st_nlink == 1 or path.is_dir(), path


def test_flood_of_complaints_is_still_an_error(images, tmp_path):
    members = [("usr/x", b""), ("../first", b"")] + [(f"{'long' * 50}/../{i}", b"") for i in range(20000)]
    done = images("image", "import", "pearl", archive(tmp_path / "archive", *members))
    assert done.returncode == 125 and len(done.stderr) < 400 and "../first: Member name contains" in done.stderr
    assert images.left() == []


def test_links_to_everywhere_are_kept_as_links(images, tree, canary, tmp_path):
    """They mean something in the box, and nothing on the host."""
    members = [("usr/x", b""), entry("a", tarfile.SYMTYPE, str(canary / "file")), entry("b", tarfile.SYMTYPE, "/etc/shadow"),
               entry("c", tarfile.SYMTYPE, str(canary)), entry("d", tarfile.SYMTYPE, "/nosuch")]
    good(images("image", "import", "pearl", archive(tmp_path / "archive", *members)))
    assert os.readlink(images.store / "pearl/b") == "/etc/shadow"
    good(images("image", "remove", "pearl"))


def test_devices_are_left_out_and_counted(images, tmp_path):
    members = [("usr/x", b"x"), entry("dev/sda", tarfile.BLKTYPE), entry("disk", tarfile.BLKTYPE, mode=0o666),
               entry("usr/mem", tarfile.CHRTYPE), entry("usr/fifo", tarfile.FIFOTYPE), ("proc/version", b"x"), ("sys/x", b"x"),
               ("usr/dev/kept", b"x"), ("usr/last", b"x")]
    done = good(images("image", "import", "pearl", archive(tmp_path / "archive", *members)))
    assert done.stderr == "nacre image import: Left out, since boxes have their own: 2 devices\n"
    found = {str(path.relative_to(images.store / "pearl")) for path in images.store.glob("pearl/**/*")}
    assert found == {"usr", "usr/x", "usr/fifo", "usr/dev", "usr/dev/kept", "usr/last"}


def test_unreadable_parts_of_a_directory_are_left_out_and_counted(images, tree, tmp_path):
    source = tmp_path / "source"
    (source / "usr/open").mkdir(parents=True)
    (source / "usr/closed").mkdir()
    for name in ("usr/open/file", "usr/closed/file", "secret", "usr/new\nline"):
        (source / name).write_text("x")
    if images.user == "user" and os.geteuid() == 0:
        os.chown(source / "usr/open/file", USER, USER)
    (source / "usr/open/file").chmod(0o604)
    (source / "secret").chmod(0o600)
    (source / "usr/closed").chmod(0o700)
    os.link(source / "usr/open/file", source / "usr/again")
    done = good(images("image", "import", "pearl", source))
    assert done.stderr == "nacre image import: Left out what no box could read or use: 2 files and directories\n"
    found = {str(path.relative_to(images.store / "pearl")) for path in images.store.glob("pearl/**/*")}
    assert found == {"usr", "usr/open", "usr/open/file", "usr/again", "usr/new\nline"}
    assert (images.store / "pearl/usr/again").stat().st_nlink == 2
    assert stat.S_IMODE((images.store / "pearl/usr/again").stat().st_mode) == 0o644


def test_ones_own_private_files_are_imported(images, tmp_path):
    """Where the caller's boxes share his id, what he can read they can too; root's do not."""
    source = tmp_path / "source"
    (source / "usr").mkdir(parents=True)
    (source / "usr/file").write_text("x")
    for path in (source / "usr/file", source / "usr", source):
        os.chown(path, images.owner, images.owner)
        path.chmod(0o700)
    done = images("image", "import", "pearl", source)
    if images.user == "root":
        assert (done.returncode, done.stderr) == (125, "nacre image import: There is nothing in it\n")
        return
    assert good(done).stderr == ""
    assert (images.store / "pearl/usr/file").read_text() == "x"


def test_advice_for_what_is_no_tree(images, tmp_path):
    done = good(images("image", "import", "pearl", archive(tmp_path / "archive", ("manifest.json", b"[]"))))
    assert "neither usr nor bin" in done.stderr and "docker export" in done.stderr


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pieces_of(store):
    return [path for path in store.glob(".stage-*/root/*")] if store.exists() else []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_import_leaves_nothing(images, tree, tmp_path, ending):
    """As a terminal does it: the whole process group gets the signal."""
    data = packed(tree, tmp_path / "archive").read_bytes()
    process = images.start("image", "import", "pearl", "-", stdin=subprocess.PIPE, start_new_session=True)
    process.stdin.write(data[:len(data) // 2])
    process.stdin.flush()
    wait_for(lambda: pieces_of(images.store))
    os.killpg(process.pid, ending)
    assert process.wait(30) == 125
    assert process.stderr.read() == b"nacre image import: Interrupted\n"
    process.stdin.close()
    assert images.left() == []


def test_what_a_killed_import_left_is_swept_and_what_is_in_use_is_not(images, tree, tmp_path):
    data = packed(tree, tmp_path / "archive").read_bytes()
    running = []
    for _ in range(2):
        process = images.start("image", "import", f"slow{len(running)}", "-", stdin=subprocess.PIPE)
        process.stdin.write(data[:len(data) // 2])
        process.stdin.flush()
        running.append(process)
        wait_for(lambda: len(pieces_of(images.store)) >= len(running))
    running[0].kill()
    running[0].communicate()
    wait_for(lambda: len(images.left()) == 2)
    wait_for(lambda: images("image", "remove", "nosuch") and len(images.left()) == 1)  # its worker and box are dying
    assert running[1].communicate(data[len(data) // 2:])[1] == b"" and running[1].returncode == 0
    assert images.left() == ["slow1"]


def test_closed_directories_are_swept_too(images, tree):
    good(images("image", "import", "pearl", tree))
    closed = images.store / ".stage-old/root/closed"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    for path in (closed / "file", closed, closed.parent, closed.parent.parent):
        os.chown(path, images.owner, images.owner)
    for path in (closed, closed.parent):
        path.chmod(0)
    good(images("image", "import", "other", tree))
    assert images.left() == ["other", "pearl"]


def test_two_imports_of_one_name(images, tree):
    started = [images.start("image", "import", "pearl", tree) for _ in range(6)]
    errors = [process.communicate()[1].decode() for process in started]
    assert sorted(process.returncode for process in started) == [0] + [125] * 5
    assert all("There is an image 'pearl' already" in error for error in errors if error)
    assert images.left() == ["pearl"]


def hostile(tmp_path, tree, **links):
    source = tmp_path / "hostile"
    shutil.copytree(tree, source, symlinks=True)
    for name, target in links.items():
        if (source / name).is_dir():
            shutil.rmtree(source / name)
        (source / name).symlink_to(target)
    return source


def test_hostile_names_at_the_top_redirect_nothing(images, tree, canary, tmp_path):
    source = hostile(tmp_path, tree, proc=str(canary), dev="/", workspace="/etc", tmp=str(canary), mnt="/bin", sys="/proc",
                     run=str(canary))
    os.mkfifo(source / "fifo")
    strange = "n\n" + "x" * 253
    (source / strange).write_text("strange\n")
    (source / "mnt.file").write_text("image's own")
    (source / "nacre").mkdir()
    good(images("image", "import", "pearl", packed(source, tmp_path / "archive")))
    script = """
for i in /proc /dev /workspace /tmp /mnt; do [ -L $i ] && echo "$i is a link"; [ -d $i ] || echo "$i is nothing"; done
[ -e /fifo ] && echo fifo
touch /tmp/x /workspace/x || echo closed
[ -c /dev/null ] && [ -r /proc/self/status ] && cat /n*x /mnt.file && readlink /run && id -un
"""
    done = good(images("exec", "--image", "pearl", "--", "sh", "-c", script))
    assert done.stdout == f"strange\nimage's own{canary}\nsandbox\n", done.stdout + done.stderr


@pytest.mark.parametrize("links", [
    {"etc": "/proc/self"}, {"etc": "/dev"}, {"etc": "/workspace"}, {"bin": "/proc/1/root"}, {"etc": "../../../../etc"},
    {"etc": "mnt"}], ids=str)
def test_directories_that_are_links(images, tree, canary, tmp_path, links):
    source = hostile(tmp_path, tree, **links)
    shutil.copytree(tree / "bin", source / "usr/bin", symlinks=True)
    good(images("image", "import", "pearl", packed(source, tmp_path / "archive")))
    done = good(images("exec", "--image", "pearl", "--", "sh", "-c", "id -u; touch /workspace/x /tmp/x; ls /etc/shadow /home; true"))
    assert done.stdout == "1000\n"


@pytest.mark.parametrize("name", ["passwd", "group"])
@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_user_files_that_are_none(images, tree, canary, tmp_path, name, kind):
    source = hostile(tmp_path, tree)
    (source / "etc" / name).unlink()
    if kind == "link":
        (source / "etc" / name).symlink_to(canary / "file")
    elif kind == "directory":
        (source / "etc" / name).mkdir()
    else:
        os.mkfifo(source / "etc" / name)
    good(images("image", "import", "pearl", packed(source, tmp_path / "archive")))
    assert good(images("exec", "--image", "pearl", "--", "id", "-u")).stdout == "1000\n"


def test_thousands_of_names_at_the_top(images, tree, tmp_path):
    """More than the small root of a box has room for: an error that says so, and no box."""
    source = hostile(tmp_path, tree)
    for i in range(2000):
        (source / f"f{i}").write_text("")
    good(images("image", "import", "pearl", packed(source, tmp_path / "archive")))
    done = images("exec", "--image", "pearl", "--", "id", "-u")
    assert done.returncode == 125 and "No space left on device" in done.stderr


def test_tree_that_is_deep_and_wide(images, tmp_path):
    """Deeper than any path is long: it is measured, and removed."""
    members = [("usr/x", b"")] + [entry("/".join(["d" * 100] * depth), tarfile.DIRTYPE) for depth in range(1, 300, 20)]
    members += [(f"usr/{i}", b"") for i in range(3000)]
    done = images("image", "import", "pearl", archive(tmp_path / "archive", *members))
    if done.returncode == 0:
        assert images.names() == ["host", "pearl"]
        good(images("image", "remove", "pearl"))
    assert images.left() == []


def test_files_larger_than_the_memory_of_the_box(images, tmp_path):
    source = tmp_path / "source"
    (source / "usr").mkdir(parents=True)
    with open(source / "usr/large", "wb") as file:
        for i in range(600):
            file.write(bytes([i % 251]) * (1 << 20))
    assert good(images("image", "import", "pearl", source)).stderr == ""
    assert (images.store / "pearl/usr/large").stat().st_size == 600 << 20


def test_store_of_somebody_else_is_refused(images, tree, as_root):
    images.store.mkdir(parents=True)
    os.chown(images.store.parent, images.owner, images.owner)
    os.chown(images.store, 4242, 4242)
    images.store.chmod(0o755)
    done = images("image", "import", "pearl", tree)
    assert done.returncode == 125 and f"must belong to user {images.owner}" in done.stderr
    assert images.left() == []


def test_the_state_directory_stays_the_callers(images, tree, as_root):
    """Beside the images there is the history, which a worker that was taken over must not rename or remove."""
    assert good(images("image", "import", "pearl", tree))
    owner = 0 if images.owner == WORKER else images.owner
    state = images.store.parent.stat()
    assert state.st_uid == owner and not state.st_mode & 0o022
    assert images.store.stat().st_uid == images.owner


def test_link_in_place_of_the_store_is_not_followed(images, tree, canary, as_root):
    images.store.parent.mkdir()
    os.chown(images.store.parent, images.owner, images.owner)
    images.store.symlink_to(canary)
    for args in (["image", "import", "pearl", tree], ["image", "remove", "pearl"], ["image", "list"],
                 ["exec", "--image", "pearl", "--", "true"]):
        done = images(*args)
        assert done.returncode == 125 and ("Too many levels" in done.stderr or "Not a directory" in done.stderr), args


def test_default_places(programs, tree, tmp_path, as_root):
    home = open_ways(tmp_path) / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    nacre = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", programs / "nacre"]
    env = environment(home)
    for extra, place in (({}, ".local/share/nacre"), ({"XDG_DATA_HOME": f"{home}/data"}, "data/nacre"),
                         ({"NACRE_STATE": f"{home}/far/away//"}, "far/away")):
        done = subprocess.run([*nacre, "image", "import", "pearl", tree], env={**env, **extra}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert os.listdir(home / place / "images") == ["pearl"]
    done = subprocess.run([*nacre, "image", "list"], env={"PATH": env["PATH"]}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (125, "nacre image list: HOME is not set, so there is no place for what Nacre keeps\n")
