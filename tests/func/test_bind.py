"""--bind: files and directories of the host in a box; read-only unless said otherwise, owners kept apart."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import BUILD, NACRE, environment, open_way
from leftovers import our_groups
from serving import Daemon
from test_sandboxes import Sandbox

USER, OTHER = 1000, 4711
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
PREFIX = {"root": [], "user": AS_USER, "userns": [*AS_USER, "unshare", "-Ur"]}


@pytest.fixture(params=PREFIX)
def box(request, programs):
    """Runs nacre exec; box.dir is a directory of the caller's with a file in it."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="bind-", dir="/tmp"))
    owner = 0 if request.param == "root" else USER
    (directory / "sub").mkdir()
    (directory / "file").write_text("data")
    (directory / "sub" / "deep").write_text("deep")
    for path in (directory, directory / "sub", directory / "file", directory / "sub" / "deep"):
        os.chown(path, owner, owner)
        path.chmod(0o755 if path.is_dir() else 0o644)

    def run(*args, **options):
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        return subprocess.run([*PREFIX[request.param], programs / "nacre", "exec", *map(str, args)], env=env, cwd=options.pop("cwd", "/"), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30, **options)

    run.mode, run.dir, run.owner = request.param, directory, owner
    run.sh = lambda bind, script, *more: run("--bind", bind, *more, "--", "sh", "-c", script)
    yield run
    shutil.rmtree(directory)


def own_everything(box, uid):
    for path in (box.dir, *box.dir.rglob("*")):
        os.chown(path, uid, uid)


def test_the_target_is_the_sources_own_path(box):
    done = box.sh(box.dir, f"cat {box.dir}/file {box.dir}/sub/deep")
    assert done.stdout == "datadeep", done.stderr


def test_the_own_path_of_what_is_below_var_tmp(box):
    """In a box /var/tmp is a link to /tmp, on the host it is a directory where people work."""
    with tempfile.TemporaryDirectory(prefix="bind-", dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        pathlib.Path(directory, "file").write_text("data")
        done = box.sh(directory, f"cat {directory}/file")
    assert done.stdout == "data", done.stderr


def test_a_target_of_its_own(box):
    done = box.sh(f"{box.dir}:/data/here", f"cat /data/here/file; ls {box.dir} 2>&1 >/dev/null | wc -l")
    assert done.stdout == "data1\n", done.stderr


def test_a_relative_source(box):
    done = box("--bind", "sub:/data", "--", "cat", "/data/deep", cwd=box.dir)
    assert done.stdout == "deep", done.stderr
    done = box("--bind", "sub", "--", "cat", f"{box.dir}/sub/deep", cwd=box.dir)
    assert done.stdout == "deep", done.stderr


def test_a_link_is_followed_to_what_it_is(box):
    link = box.dir / "link"
    link.symlink_to("sub")
    done = box.sh(link, f"cat {box.dir}/sub/deep")
    assert done.stdout == "deep", done.stderr


@pytest.mark.parametrize("suffix", ["", ":ro"])
def test_read_only_is_read_only(box, suffix):
    script = """cd /data
( : >new ) 2>/dev/null && echo created; ( echo x >file ) 2>/dev/null && echo written; rm -f file 2>/dev/null && echo removed
mv file other 2>/dev/null && echo moved; chmod 777 file 2>/dev/null && echo changed; mkdir d 2>/dev/null && echo made; touch file 2>/dev/null && echo touched
ln file link 2>/dev/null && echo linked; ( : >sub/new ) 2>/dev/null && echo created; cat file"""
    done = box.sh(f"{box.dir}:/data{suffix}", script)
    assert done.stdout == "data", done.stdout
    assert (box.dir / "file").read_text() == "data" and sorted(os.listdir(box.dir)) == ["file", "sub"]


@pytest.mark.parametrize("owner", ["caller", "other"])
def test_writable_keeps_the_owner(box, owner):
    """Outside, what is made inside belongs to the owner of the source; inside, the source belongs to the sandbox's user."""
    if owner == "other":
        if box.mode != "root":
            pytest.skip("a user writes what is his")
        own_everything(box, OTHER)
    uid = OTHER if owner == "other" else box.owner
    done = box.sh(f"{box.dir}:/data:rw", "cd /data; stat -c %u:%g . file sub/deep; echo new >new; mkdir d; echo x >>file; mv sub/deep d/; ln -s x s; chmod 600 new; stat -c %u:%g new d s")
    assert (done.returncode, done.stdout) == (0, "1000:1000\n" * 6), done
    assert "The disk limit does not cover" in done.stderr
    assert {name: (os.lstat(box.dir / name).st_uid, os.lstat(box.dir / name).st_gid) for name in ("new", "d", "s", "file", "d/deep")} == {
        name: (uid, uid) for name in ("new", "d", "s", "file", "d/deep")}
    assert (box.dir / "new").read_text() == "new\n" and (box.dir / "file").read_text() == "datax\n"


@pytest.mark.parametrize("box", ["root"], indirect=True)
def test_files_of_third_parties_stay_theirs(box):
    """In a bound directory there is a file of somebody else, closed to others: mapping its owner must not open it."""
    own_everything(box, USER)
    secret = box.dir / "secret"
    secret.write_text("secret")
    os.chown(secret, OTHER, OTHER)
    secret.chmod(0o600)
    done = box.sh(f"{box.dir}:/data:rw", "cat /data/secret; ( echo x >/data/secret ); chown 1000 /data/secret; chmod 777 /data/secret; stat -c %u /data/secret")
    assert "secret" not in done.stdout and done.stdout.strip() == "65534", done.stdout
    assert secret.read_text() == "secret" and (secret.stat().st_uid, secret.stat().st_mode & 0o777) == (OTHER, 0o600)


@pytest.mark.parametrize("box", ["root"], indirect=True)
@pytest.mark.parametrize("suffix", ["", ":rw"])
def test_set_user_id_and_devices_are_nothing_in_a_bind(box, suffix):
    shutil.copy("/usr/bin/id", box.dir / "id")
    (box.dir / "id").chmod(0o6755)
    os.mknod(box.dir / "null", 0o020666, os.makedev(1, 3))
    done = box.sh(f"{box.dir}:/data{suffix}", "/data/id -u; ( : </data/null ) 2>/dev/null && echo opened")
    assert done.stdout == "1000\n", done.stdout


@pytest.mark.parametrize("box", ["root"], indirect=True)
def test_no_set_user_id_file_is_made_for_the_host(box):
    """rw, owned by root outside: a file with the set-user-ID bit that a box makes would be root's program on the host."""
    done = box.sh(f"{box.dir}:/data:rw", "cp /usr/bin/id /data/id; chmod 6755 /data/id; install -m 4755 /usr/bin/id /data/id2; "
                  "python3 -c 'import os; os.close(os.open(\"/data/id3\", os.O_CREAT | os.O_WRONLY, 0o6755))'; exit 0")
    made = {path.name: oct(path.stat().st_mode) for path in box.dir.glob("id*") if path.stat().st_mode & 0o6000}
    assert made == {}, f"ESCAPED: set-user-ID files of the owner of the source, root: {made} {done.stderr}"


def test_a_file(box):
    done = box.sh(f"{box.dir}/file:/data/one", "cat /data/one; ( echo x >/data/one ) 2>/dev/null && echo written; ls /data")
    assert done.stdout == "dataone\n", done
    done = box.sh(f"{box.dir}/file:/etc/mine:rw", "echo more >>/etc/mine; cat /etc/mine")
    assert done.stdout == "datamore\n" and (box.dir / "file").read_text() == "datamore\n", done


def test_a_file_at_its_own_path(box):
    done = box.sh(box.dir / "file", f"cat {box.dir}/file; ls {box.dir}")
    assert done.stdout == "datafile\n", done


@pytest.mark.parametrize("target", ["/workspace/in", "/tmp/in", "/usr/share/nacre-bind", "/mnt", "/home/x/y", "/opt", "/var/lib/x", "/etc/mine"])
def test_targets(box, target):
    done = box.sh(f"{box.dir}:{target}", f"cat {target}/file")
    if target.startswith("/usr/") and done.returncode == 125:
        assert "/usr/share" in done.stderr  # the host's own tree is no place to make directories in; but it must say so
    else:
        assert done.stdout == "data", done.stderr


def test_names_that_are_hard_to_write(box):
    for name in ("with space", "new\nline", "-rf", "a:b", "rw", "x:rw", "ünï"):
        path = box.dir / name
        path.mkdir()
        (path / "f").write_text(name)
        os.chown(path, box.owner, box.owner)
        done = box.sh(f"{path}:/data:ro", "cat /data/f")
        assert done.stdout == name, (name, done.stderr)


@pytest.mark.parametrize("target", ["/", "//", "/proc", "/proc/x", "/dev", "/dev/x", "/sys", "/sys/fs/cgroup", "/a/../b", "/..", "/a/..", "/a/./b", "/a//b", "/" + "x" * 255])
def test_bad_targets(box, target):
    done = box.sh(f"{box.dir}:{target}", "echo ran")
    assert (done.returncode, done.stdout) == (125, "") and "--bind" in done.stderr, done


@pytest.mark.parametrize("source", ["/nonexistent", "", ":/data", "/nonexistent:/data", "relative/none:/data:rw", "/tmp/none:rw"])
def test_missing_sources(box, source):
    done = box.sh(source, "echo ran")
    assert (done.returncode, done.stdout) == (125, "") and "Option '--bind'" in done.stderr and "No such file" in done.stderr, done


@pytest.mark.parametrize("source", ["/proc", "/proc/self", "/sys", "/dev"])
def test_sources_whose_own_path_is_no_target(box, source):
    done = box.sh(source, "echo ran")
    assert (done.returncode, done.stdout) == (125, "") and "--bind" in done.stderr, done


@pytest.mark.parametrize("box", ["user"], indirect=True)
def test_a_user_binds_only_what_he_may_read(box):
    """Nacre gives a user nothing that he has not."""
    closed = box.dir / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").write_text("secret")
    done = box.sh(f"{closed}:/data", "cat /data/file; ls /data")
    assert "secret" not in done.stdout and "file\n" not in done.stdout, done
    done = box.sh("/etc/shadow:/data/shadow", "cat /data/shadow")
    assert "root:" not in done.stdout
    done = box.sh("/root:/data:rw", "ls -A /data; touch /data/x")
    assert done.stdout == "", done


def test_sixteen_are_the_most(box):
    sources = []
    for number in range(17):
        path = box.dir / f"d{number}"
        path.mkdir()
        (path / "f").write_text(f"{number} ")
        sources += ["--bind", f"{path}:/data/{number}"]
    done = box(*sources[:32], "--", "sh", "-c", "cat /data/0/f /data/7/f /data/15/f; ls /data | wc -l")
    assert done.stdout == "0 7 15 16\n", done.stderr
    done = box(*sources, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (125, "") and "Option '--bind': more than 16" in done.stderr


def test_binds_over_each_other(box):
    done = box("--bind", f"{box.dir}:/data", "--bind", f"{box.dir}/sub:/data/sub:rw", "--", "sh", "-c", "echo x >/data/sub/new; ( echo x >/data/new ) 2>/dev/null; cat /data/file")
    assert done.stdout == "data" and (box.dir / "sub/new").exists() and not (box.dir / "new").exists(), done


def test_nothing_is_left_mounted(box):
    before = pathlib.Path("/proc/self/mountinfo").read_text().count(str(box.dir))
    box.sh(f"{box.dir}:/data:rw", "true")
    assert pathlib.Path("/proc/self/mountinfo").read_text().count(str(box.dir)) == before
    assert not pathlib.Path("/data").exists()


@pytest.mark.parametrize("box", ["root"], indirect=True)
def test_mounts_below_the_source_are_read_only_too(box):
    """A read-only bind holds for everything below, also for what is mounted there."""
    script = f"mount -t tmpfs tmpfs {box.dir}/sub && echo in >{box.dir}/sub/x && chmod 777 {box.dir}/sub && exec \"$@\""
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(BUILD / "nacre"), "exec", "--bind", f"{box.dir}:/data",
             "--", "sh", "-c", "cat /data/sub/x; ( echo y >/data/sub/y ) 2>/dev/null && echo written"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert done.stdout == "in\n", done


@pytest.mark.alone
def test_kill_9_while_ids_are_mapped_leaves_no_process(as_root, programs, tmp_path):
    """The process that holds the namespace of a mapping goes with its spawner, at whatever moment that is killed."""
    generator = random.Random(25119)
    before = our_groups()  # where a killed run of somebody in another group left one, no sweep of ours may go
    for _ in range(60):
        process = subprocess.Popen([str(programs / "nacre"), "exec", "--bind", f"{tmp_path}:/mnt:rw", "--", "true"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0.002, 0.012))
        process.kill()
        process.wait(timeout=10)
    deadline = time.monotonic() + 20
    while True:
        subprocess.run([str(programs / "nacre"), "exec", "--", "true"], check=True, timeout=30)  # which sweeps what the killed ones left
        left = [link.parent.name for link in pathlib.Path("/proc").glob("[0-9]*/exe") if resolves_below(link, programs)]
        left += sorted(our_groups() - before)
        if not left:
            return
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def resolves_below(link, directory):
    try:
        return os.readlink(link).startswith(str(directory))
    except OSError:
        return False


@pytest.fixture
def shared(tmp_path):
    """Two directories of an operator's, and a configuration that names them."""
    for name in ("data", "out", "config"):
        (tmp_path / name).mkdir()
    (tmp_path / "data/file").write_text("of the operator\n")
    (tmp_path / "out").chmod(0o777)
    (tmp_path / "config/serve.yaml").write_text(
        f"binds:\n  data:\n    path: {tmp_path}/data\n  out:\n    path: {tmp_path}/out\n    target: /srv/out\n    mode: rw\n")
    open_way(tmp_path)
    return tmp_path


def test_requests_name_what_the_operator_allows(as_root, shared):
    with Daemon(shared, config=shared / "config") as daemon:
        script = "cat /mnt/data/file; echo no >/mnt/data/new; echo yes >/srv/out/new; ls -d /srv/out"
        reply = daemon.execute(script, "shell", binds=["data", "out"]).json()
        assert reply["output"] == "of the operator\n/srv/out\n" and "Read-only" in reply["stderr"], reply
        assert (shared / "out/new").read_text() == "yes\n" and not (shared / "data/new").exists()
        reply = daemon.execute("ls /mnt /srv/out", "shell").json()  # only who asks is shown it
        assert "data" not in reply["output"] and reply["status"] == "error", reply
        for name, text in (("other", "there is no 'other' here"),):
            reply = daemon.execute("true", "shell", binds=[name]).json()
            assert reply["status"] == "blocked" and text in reply["error"], reply
        for name in (f"{shared}/data", "../data", "/etc", ""):  # never a path
            assert daemon.execute("true", "shell", binds=[name]).status == 400
        assert not daemon.execute("cat /mnt/data/file", "shell", binds=["data"], cache=True).json()["cached"]
        (shared / "data/file").write_text("changed\n")
        assert daemon.execute("cat /mnt/data/file", "shell", binds=["data"], cache=True).json()["output"] == "changed\n"
        done = subprocess.run([NACRE, "--server", f"http://127.0.0.1:{daemon.port}", "run", "--bind", "data", "--lang", "shell", "-c", "cat /mnt/data/file"],
                              capture_output=True, text=True, env=daemon.env, stdin=subprocess.DEVNULL)
        assert done.stdout == "changed\n", done


def test_sandboxes_name_them_too(as_root, shared):
    with Daemon(shared, config=shared / "config") as daemon:
        box = Sandbox(daemon, binds=["data", "out"])
        done = box.run("cat /mnt/data/file; echo no >/mnt/data/new; echo kept >/srv/out/kept; cat /srv/out/kept")
        assert done["stdout"] == "of the operator\nkept\n" and "Read-only" in done["stderr"], done
        assert (shared / "out/kept").read_text() == "kept\n" and not (shared / "data/new").exists()
        assert Sandbox(daemon).run("ls /mnt")["stdout"] == ""
        refused = daemon.post("/v1/sandboxes", {"binds": ["other"]})
        assert refused.status == 403 and "there is no 'other' here" in refused.json()["detail"], refused.body
        assert daemon.post("/v1/sandboxes", {"binds": ["/etc"]}).status == 400


def test_names_mean_the_same_after_a_daemon_died(as_root, shared):
    """The spawner has what it was started with; another order in the file does not change what a name shows."""
    with Daemon(shared, config=shared / "config") as daemon:
        (shared / "config/serve.yaml").write_text(
            f"binds:\n  first:\n    path: {shared}/config\n  data:\n    path: {shared}/config\n  out:\n    path: {shared}/data\n")
        os.kill(daemon.pid, signal.SIGKILL)
        until = time.monotonic() + 30
        while True:
            try:
                reply = daemon.execute("cat /mnt/data/file", "shell", binds=["data"]).json()
                break
            except (OSError, ValueError):
                assert time.monotonic() < until
                time.sleep(0.1)
        assert reply["output"] == "of the operator\n", reply
        assert daemon.execute("true", "shell", binds=["first"]).json()["status"] == "blocked"
        daemon.pid = int(subprocess.run(["pgrep", "-P", str(daemon.process.pid), "-x", "nacre"], capture_output=True, text=True).stdout.split()[0])


@pytest.mark.parametrize("text, message", [("data: {mode: ro}", "'path' is missing"), ("data: {path: /no/such}", "No such file"), ("data: {path: relative}", "absolute"),
                                           ("data: {path: /srv, target: /proc/x}", "expected an absolute path without dots"), ("data: {path: /srv, mode: rx}", "mode")])
def test_wrong_binds_are_said(as_root, tmp_path, text, message):
    (tmp_path / "serve.yaml").write_text(f"binds:\n  {text}\n")
    done = subprocess.run([NACRE, "--config", tmp_path, "serve", "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30,
                          env={**environment(tmp_path), "NACRE_STATE": str(tmp_path / "state")})
    assert done.returncode == 125 and message in done.stderr, done


def test_programs_are_shown_what_the_caller_names(nacre, tmp_path):
    (tmp_path / "f").write_text("mine\n")
    open_way(tmp_path)
    env = {"NACRE_STATE": str(tmp_path / "state")}
    done = nacre("run", "--bind", f"{tmp_path}/f:/data/f", "--lang", "python", "-c", "print(open('/data/f').read())\ntry: open('/data/f', 'w')\nexcept OSError as e: print(e.strerror)", env=env)
    assert done.stdout == "mine\n\nRead-only file system\n" or "Permission denied" in done.stdout, done
    assert "there is no 'x' here" in nacre("run", "--request", "-", input='{"code": "1", "language": "python", "binds": ["x"]}', env=env).stderr
