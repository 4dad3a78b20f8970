"""Root of a box, its other users, and a root that can be written to: what works in there, what it is held by, where it is refused. The
attacks are in tests/escape (rootbox)."""

import hashlib
import json
import os
import pathlib
import re
import stat
import subprocess
import time

import pytest

from conftest import NACRE, environment
from test_image import images, tree  # noqa: F401: fixtures
from test_staying import play, tier  # noqa: F401: fixtures
from wire import ENDED, FAILED, HOME, STAY

pytestmark = pytest.mark.usefixtures("as_root", "user_namespaces")

RANGES = range(0x70000000, 0x80000000)


def sh(nacre, script, *words, **options):
    return nacre("exec", *words, "--", "sh", "-c", script, **options)


def out(nacre, script, *words):
    done = sh(nacre, script, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_root_of_the_box_is_root_of_its_files(nacre):
    text = out(nacre, "id -u; id -G; touch a; chown 33:44 a; chmod 4755 a; stat -c '%u:%g %a' a; mkdir -m 700 d; chown 1000 d; touch d/in; echo $HOME $USER", "--user", "root")
    assert text == "0\n0\n33:44 4755\n/workspace root\n"


def test_root_becomes_other_users_and_ends_what_they_run(nacre):
    text = out(nacre, """setpriv --reuid 33 --regid 33 --groups 33,44 sh -c 'id; grep CapEff /proc/self/status; touch /tmp/theirs'
stat -c %u /tmp/theirs; setpriv --reuid 33 --clear-groups sleep 100 & sleep 0.2; kill $!; wait $!; echo $?""", "--user", "0")
    assert text.splitlines() == ["uid=33 gid=33 groups=33,44", "CapEff:\t0000000000000000", "33", "143"]


@pytest.mark.parametrize("user,ids", [("nobody", "65534 65534"), ("sandbox", "1000 1000"), ("1000", "1000 1000"), ("33", "33 33"), ("65534", "65534 65534"), ("root", "0 0")])
def test_users_by_name_and_number(nacre, user, ids):
    assert out(nacre, "echo $(id -u) $(id -g)", "--user", user).split("\n")[0] == ids


@pytest.mark.parametrize("user", ["nobodi", "65535", "65536", "4294967295", "4294967296", "-1", "0x0", "root:root", "1000 ", "nobody:x"])
def test_users_that_are_not_there(nacre, user):
    done = sh(nacre, "id", "--user", user)
    assert done.returncode == 125 and done.stdout == "" and "/etc/passwd" in done.stderr, done


@pytest.mark.parametrize("user", ["", "x" * 33])
def test_users_that_cannot_be(nacre, user):
    done = sh(nacre, "id", "--user", user)
    assert done.returncode == 125 and "Option '--user'" in done.stderr, done


def test_only_root_has_capabilities(nacre):
    for user, wanted in (("root", "00000000000000fb"), ("33", "0" * 16), ("sandbox", "0" * 16)):
        assert out(nacre, "grep -E '^Cap(Eff|Bnd)' /proc/self/status | cut -f2", "--user", user).split() == [wanted] * 2
    assert "NoNewPrivs:\t1" in out(nacre, "cat /proc/self/status", "--user", "root")


def test_seen_from_the_host_root_is_somebody_who_owns_nothing(nacre, tmp_path):
    """Its ids and those of process 1 are of the box's range, and differ; its user namespace is below that of process 1."""
    box = subprocess.Popen([NACRE, "exec", "--user", "root", "--", "sleep", "98761"], env=environment(tmp_path))
    try:
        found = {}
        while "sleep" not in found:
            assert box.poll() is None
            for path in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    words = path.joinpath("cmdline").read_bytes().split(b"\0")
                    if words[:2] == [b"sleep", b"98761"]:
                        found["sleep"] = path
                except OSError:
                    continue
            time.sleep(0.01)
        status = found["sleep"].joinpath("status").read_text()
        uid = int(re.search(r"^Uid:\t(\d+)", status, re.M).group(1))
        assert uid in RANGES and int(re.search(r"^Gid:\t(\d+)", status, re.M).group(1)) == uid
        parent = re.search(r"^PPid:\t(\d+)", status, re.M).group(1)
        firsts = [path for path in pathlib.Path("/proc").glob("[0-9]*") if re.search(rf"^PPid:\t{parent}$", (text := read(path / "status")), re.M) and read(path / "cmdline").startswith("nacre-init")]
        (first,) = firsts
        assert int(re.search(r"^Uid:\t(\d+)", read(first / "status"), re.M).group(1)) == uid + 65535
        assert os.readlink(first / "ns/user") != os.readlink(found["sleep"] / "ns/user")
        assert read(found["sleep"] / "uid_map").split() == ["0", str(uid), "65535"]
    finally:
        box.kill()
        box.wait()


def read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def test_without_a_writable_root_nothing_else_is_written(nacre):
    text = out(nacre, "for d in / /usr /usr/bin /etc /dev /sys /root /var /mnt /opt; do touch $d/x 2>/dev/null && echo wrote $d; done; mkdir /x 2>/dev/null && echo made; true", "--user", "root")
    assert text == ""


# what a box must leave as it is: content, owner, mode and times of files of the host's, and what its directories hold
def state_of_usr():
    places = ["/usr", "/usr/bin", "/usr/bin/env", "/usr/lib/os-release", "/usr/local", "/usr/local/bin", "/usr/share", "/usr/share/doc", "/etc", "/etc/services"]
    seen = {}
    for place in places:
        status = os.lstat(place)
        seen[place] = [status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_mtime_ns, status.st_ctime_ns,
                       sorted(os.listdir(place)) if stat.S_ISDIR(status.st_mode) else hashlib.sha256(pathlib.Path(place).read_bytes()).hexdigest()]
    return seen


CHANGE_ALL = """set -e
cp /usr/bin/env /tmp/env
echo changed >/usr/lib/os-release; chmod 777 /usr/share/doc; chown 33 /usr/bin; rm /usr/bin/env; mv /tmp/env /usr/local/bin/env2
ln /usr/bin/printenv /usr/bin/printenv2; echo more >>/usr/bin/printenv2; touch -d 2000-01-01 /usr/share
mkdir /app /etc/mine; echo hi >/app/file; echo x >/etc/mine/x; echo root2:x:77:77::/:/bin/sh >>/etc/passwd; rm -r /usr/share/man; mkdir /usr/share/man
cat /usr/lib/os-release /app/file; ls /usr/share/man; id -u root2; ls /usr/bin/env || echo gone; echo $HOME; echo x >$HOME/x
"""


def test_a_writable_root_is_a_copy(nacre):
    before = state_of_usr()
    assert out(nacre, CHANGE_ALL, "--user", "root", "--writable-root").split() == ["changed", "hi", "77", "gone", "/root"]
    assert state_of_usr() == before
    assert out(nacre, "ls -d /app /etc/mine /usr/bin/env 2>/dev/null || true", "--user", "root", "--writable-root") == "/usr/bin/env\n"


def test_a_writable_root_is_no_mans_but_roots(nacre):
    """The sandbox's user is nobody special in it: the modes and owners hold, as everywhere."""
    assert out(nacre, "id -u; for d in / /usr /etc /app; do touch $d/x 2>/dev/null && echo wrote $d; done; touch /tmp/x x && echo wrote", "--writable-root") == "1000\nwrote\n"


@pytest.mark.parametrize("place", ["/usr/fill", "/etc/fill", "/fill", "/workspace/fill", "/usr/bin/python3"])
def test_its_disk_limit_holds_for_all_of_it(nacre, place):
    done = sh(nacre, f"head -c 60M /dev/zero >>{place}", "--user", "root", "--writable-root", "--disk", "20MB")
    assert done.returncode != 0 and "No space left" in done.stderr, done
    done = sh(nacre, "i=0; while [ $i -lt 300 ] && touch /usr/share/n$i; do i=$((i+1)); done; echo $i", "--user", "root", "--writable-root", "--inodes", "200")
    assert "No space left" in done.stderr and int(done.stdout) < 200, done


def test_copying_up_more_than_the_limit_is_a_full_disk(nacre):
    """A file of the host's that is larger than the disk: not its first byte can be changed."""
    large = max((path for path in pathlib.Path("/usr/bin").iterdir() if path.is_file() and not path.is_symlink()), key=lambda path: path.stat().st_size)
    if large.stat().st_size < 4 << 20:
        pytest.skip("no large program here")
    done = sh(nacre, f"echo x >>{large}", "--user", "root", "--writable-root", "--disk", "2MB")
    assert done.returncode != 0 and "No space left" in done.stderr, done


def test_what_the_host_has_closed_is_not_there(nacre, tmp_path):
    """A key below /usr of mode 0600: root of the box is shown as the owner of what it may change, and must not read it."""
    key = pathlib.Path(f"/usr/local/share/nacre-test-{os.getpid()}")
    key.mkdir(mode=0o755)
    try:
        (key / "key").write_text("secret")
        (key / "key").chmod(0o600)
        (key / "group").write_text("secret")
        (key / "group").chmod(0o640)
        (key / "open").write_text("open")
        (key / "dir").mkdir(mode=0o750)
        (key / "dir" / "in").write_text("secret")
        text = out(nacre, f"ls -A {key}; cat {key}/*; cat {key}/dir/in {key}/key 2>/dev/null; rm -r {key}; mkdir {key}; ls -A {key}; echo mine >{key}/key; cat {key}/key", "--user", "root", "--writable-root")
        assert text == "open\nopenmine\n"
        assert (key / "key").read_text() == "secret"
    finally:
        subprocess.run(["rm", "-r", key], check=True)


def test_the_strength_says_that_there_is_a_root(nacre):
    grades = {}
    for words in ((), ("--user", "root"), ("--writable-root",)):
        answer = json.loads(nacre("exec", "--json", *words, "--", "true").stdout)
        grades[words] = answer["strength"]["identity"]
    assert list(grades.values()) == ["full", "reduced", "full"]
    done = nacre("exec", "--floor", "identity=full", "--user", "root", "--", "true")
    assert done.returncode == 125 and "identity=full" in done.stderr


@pytest.mark.parametrize("words", [("--user", "root"), ("--user", "33"), ("--writable-root",)])
def test_who_has_one_id_is_refused_with_the_reason(nacre_by, words):
    done = nacre_by("user")("exec", *words, "--", "id")
    assert done.returncode == 125 and done.stdout == "" and "one user id" in done.stderr and "start nacre as root" in done.stderr, done
    assert nacre_by("user")("exec", "--user", "sandbox", "--", "id", "-u").stdout == "1000\n"


@pytest.mark.parametrize("words", [("--user", "root"), ("--writable-root",)])
def test_a_process_box_has_neither(nacre, words):
    done = nacre("exec", "--tier", "process", *words, "--", "id")
    assert done.returncode == 125 and "--tier container" in done.stderr, done


@pytest.fixture
def image(images, tree):  # noqa: F811
    if images.user != "root":
        pytest.skip("needs ranges of ids")
    (tree / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nbuild:x:123:45::/:/bin/sh\nsly:x:65535:0::/:/bin/sh\nbad\n::::\nnine:x:9\n")
    done = images("image", "import", "tree", tree)
    assert done.returncode == 0, done.stderr
    return images


@pytest.mark.parametrize("name", ["a:b", "a,redirect_dir=on", "a\\b", "up,lowerdir=", "x" * 255])
def test_strange_names_at_the_top_of_an_image(image, tree, name):  # noqa: F811
    """Names of directories are words of overlayfs's options: one that would be another word is read-only, and nothing else changes."""
    made = tree / name
    made.mkdir()
    (made / "file").write_text("inside\n")
    assert image("image", "import", "strange", tree).returncode == 0
    made.joinpath("file").unlink()
    made.rmdir()
    done = image("exec", "--image", "strange", "--user", "root", "--writable-root", "--", "sh", "-c", 'cat "$1/file"; touch "$1/new" || echo held; touch /bin/new && echo made', "sh", f"/{name}")
    assert done.stdout == "inside\nheld\nmade\n", done


def test_an_image_is_roots_to_change_and_stays(image):
    store = pathlib.Path(image.store) / "tree"
    before = {path: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in store.rglob("*")}
    run = ["exec", "--image", "tree", "--user", "root", "--writable-root", "--", "sh", "-c"]
    done = image(*run, "id -u; touch /bin/new /var/lib/new /etc/new /new; echo x >>/etc/os-release; stat -c %u:%g /etc /bin/busybox; cat /etc/os-release")
    assert done.stdout == "0\n0:0\n0:0\nID=pearl\nx\n", done
    assert {path: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in store.rglob("*")} == before


def test_users_of_an_image_are_its_own(image):
    def ids(user, *more):
        done = image("exec", "--image", "tree", *more, "--user", user, "--", "sh", "-c", "echo $(id -u) $(id -g)")
        return done.stdout.strip() or done.stderr
    assert ids("build") == "123 45" == ids("build", "--writable-root")
    assert ids("sandbox") == "1000 1000"
    for more in ((), ("--writable-root",)):
        done = image("exec", "--image", "tree", *more, "--user", "root", "--", "sh", "-c", "command -v sudo; sudo id -u")
        assert done.stdout == "/dev/nacre/bin/sudo\n0\n", done
    for user in ("sly", "bad", "nine"):
        assert "/etc/passwd" in ids(user), user


@pytest.mark.parametrize("tier", ["container"], indirect=True)
@pytest.mark.parametrize("play", ["root"], indirect=True)
@pytest.mark.parametrize("way", ["direct", "relay"], indirect=True)
def test_commands_of_one_box_have_the_users_that_they_want(play):  # noqa: F811
    """One after the other and in one home; what root has done is there for the next."""
    results = play("""
def who(user): return sh(b"id -u; cat /etc/mark 2>/dev/null; stat -c %u /etc/mark 2>/dev/null", user=user)[2]
made = first(b"id -u", flags=STAY | USERS | WRITABLE)[2]
root = sh(b"id -u; echo marked >/etc/mark; chmod 644 /etc/mark; echo build:x:77:88::/:/bin/sh >>/etc/passwd", user=b"root")[2]
return [made, root, who(b""), who(b"build"), who(b"root"), who(b"nobody")]
""")
    assert results == [b"1000\n", b"0\n", b"1000\nmarked\n0\n", b"77\nmarked\n0\n", b"0\nmarked\n0\n", b"65534\nmarked\n0\n"]


@pytest.mark.parametrize("tier", ["container"], indirect=True)
@pytest.mark.parametrize("play", ["root"], indirect=True)
@pytest.mark.parametrize("way", ["direct"], indirect=True)
def test_root_cannot_mislead_the_next_command(play):  # noqa: F811
    """What our own steps look at before they are locked in: /sys, where limits are told, /dev/ptmx, /etc/passwd."""
    script = rb"""
exec 2>/dev/null
mv /sys /sys2 && echo moved; mv /dev /dev2 && echo moved; mv /proc /proc2 && echo moved; mkdir /trap; echo kept >/trap/memory.max; echo kept >/trap/cpus
rm -rf /sys/fs; ln -s /trap /sys/fs/cgroup && echo linked; mv /etc /etc2; ln -s /etc2 /etc; cat /trap/memory.max /trap/cpus
"""
    results = play(f"""
first(b"true", flags=STAY | USERS | WRITABLE)
one = sh({script!r}, user=b"root")[2]
two = sh(b"cat /trap/memory.max /trap/cpus; id -u", user=b"root")[2]
return one, two, sh(b"id -u")[2], sh(b"rm /etc; mkfifo /etc2/fifo; mv /etc2 /etc; mv /etc/fifo /etc/passwd", user=b"root")[0], sh(b"id -u", user=b"0")[2], sh(b"id", user=b"nobody")
""")
    one, two, usual, fifo, root, by_fifo = results
    assert one == b"kept\nkept\n" and two == b"kept\nkept\n0\n"
    assert (usual, fifo, root) == (b"1000\n", ENDED, b"0\n")
    assert by_fifo[0] == FAILED and "/etc/passwd" in by_fifo[1], by_fifo


@pytest.mark.parametrize("tier", ["container"], indirect=True)
@pytest.mark.parametrize("play", ["root"], indirect=True)
@pytest.mark.parametrize("way", ["direct"], indirect=True)
def test_users_are_not_looked_for_behind_links(play):  # noqa: F811
    kind, text, _ = play("""
first(b"true", flags=STAY | USERS | WRITABLE)
sh(b"mv /etc/passwd /etc/other; ln -s other /etc/passwd", user=b"root")
return sh(b"id -u", user=b"nobody")
""")
    assert kind == FAILED and "/etc/passwd" in text, text
