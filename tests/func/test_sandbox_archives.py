"""Archives into sandboxes and out of them: packed and unpacked inside, whoever wrote them."""

import io
import os
import subprocess
import tarfile
import threading
import time

import pytest

from conftest import open_way
from serving import Daemon
from test_sandboxes import USER, Sandbox, daemon, pgrep, sandbox  # noqa: F401: fixtures

RAW = {"Content-Type": "application/x-tar"}


def tar_of(*members, form=tarfile.PAX_FORMAT):
    """An archive of (name, data or None, what else) members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, data, *more in members:
            info = tarfile.TarInfo(name)
            info.size = len(data or b"")
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data) if data else None)
    return out.getvalue()


def put(box, path, data):
    return box.ask("PUT", f"/archive?path={path}", data, headers=RAW)


def get(box, path):
    answer = box.ask("GET", f"/archive?path={path}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-tar"), answer.body
    return tarfile.open(fileobj=io.BytesIO(answer.body))


def rss(daemon):
    return int(next(line for line in open(f"/proc/{daemon.pid}/status") if line.startswith("VmRSS")).split()[1])


def test_a_tree_comes_back(sandbox):
    sandbox.run("mkdir -p d/e; echo one >d/f; ln d/f d/g; ln -s ../d/f d/e/s; mkfifo d/p; chmod 751 d/f; "
                "head -c 3000000 /dev/urandom >d/e/big; sha256sum d/e/big >sum; n=$(printf '%0200d' 7); mkdir d/$n; echo x >d/$n/$n")
    answer = sandbox.ask("GET", "/archive?path=/workspace/d")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        found = {member.name: member for member in tar}
    assert list(found) == sorted(found)
    assert found["f"].mode == 0o751 and found["g"].islnk() and found["g"].linkname == "f" and found["p"].isfifo()
    assert found["e/s"].issym() and found["e/s"].linkname == "../d/f" and found["e/big"].size == 3000000
    assert f"{7:0200d}/{7:0200d}" in found
    assert put(sandbox, "/workspace/new/place", answer.body).status == 204
    same = sandbox.run("diff --no-dereference -r d/e new/place/e && sed 's:d/e:new/place/e:' sum | sha256sum -c && cat new/place/g && "
                       "stat -c %h%a new/place/f && test -p new/place/p && test $(stat -c %Y d/f) = $(stat -c %Y new/place/f) && echo same")
    assert same["stdout"].split("\n")[1:4] == ["one", "2751", "same"], same
    # equal trees are equal archives; one file is an archive of one
    assert sandbox.ask("GET", "/archive?path=/workspace/d").body == answer.body
    assert [member.name for member in get(sandbox, "/workspace/d/f")] == ["f"]
    # what others write
    for form in ("gnu", "ustar", "pax", "v7"):
        made = subprocess.run(["tar", "-c", f"--format={form}", "-C", "/usr/share/doc/tar", "."], stdout=subprocess.PIPE, check=True).stdout
        assert put(sandbox, f"/workspace/{form}", made).status == 204
        assert sandbox.run(f"ls {form}")["stdout"].split() == sorted(os.listdir("/usr/share/doc/tar")), form


def test_what_cannot_be_packed(sandbox):
    sandbox.run("truncate -s 20G sparse; mkdir no; echo x >no/f; chmod 0 no/f; echo y >after")
    for path, status, code in (("/workspace/nowhere", 404, "no_file"), ("relative", 400, "bad_path"), ("/workspace", 403, "forbidden")):
        answer = sandbox.ask("GET", f"/archive?path={path}")
        assert (answer.status, answer.json()["code"]) == (status, code), answer.body
    assert "no/f" in answer.json()["detail"]
    sandbox.run("chmod 600 no/f")
    answer = sandbox.ask("GET", "/archive?path=/workspace")
    assert answer.status == 413 and "sparse" in answer.json()["detail"]
    sandbox.run("rm sparse; d=x; for i in $(seq 300); do d=x/$d; done; mkdir -p $d")
    answer = sandbox.ask("GET", "/archive?path=/workspace")
    assert answer.status == 400 and "nested too deeply" in answer.json()["detail"]
    sandbox.run("rm -r x; python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"s\")'; ln -s / all; ln -s loop loop")
    assert {member.name for member in get(sandbox, "/workspace")} == {"no", "no/f", "after", "all", "loop"}


DEVICE = {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}


def symlink(target):
    return {"type": tarfile.SYMTYPE, "linkname": target}


def hard_link(target):
    return {"type": tarfile.LNKTYPE, "linkname": target}


@pytest.mark.parametrize("members, status, text", [
    ([("../out", b"x")], 403, "leads out"), ([("a/../../out", b"x")], 403, "leads out"), ([("/workspace/out", b"x")], 403, "leads out"),
    ([("l", None, symlink("..")), ("l/out", b"x")], 409, "l/out"), ([("l", None, symlink("/workspace")), ("l/out", b"x")], 409, "l/out"),
    ([("l", None, symlink("../out")), ("l", b"x")], 204, ""), ([("h", None, hard_link("../kept"))], 403, "leads out"),
    ([("l", None, symlink("..")), ("h", None, hard_link("l/kept"))], 409, "h"), ([("h", None, hard_link("/etc/passwd"))], 403, "leads out"),
    ([("h", None, hard_link("nowhere"))], 404, "h"), ([("null", None, DEVICE)], 403, "device"), ([("d/x", b"x"), ("d", b"x")], 409, "'d'"),
    ([("n" * 300, b"x")], 400, "too long"), ([("/".join(["d" * 200] * 30), b"x")], 400, "too long"), ([("a", None, {"type": b"S"})], 400, "sparse"),
    ([("a", None, {"type": b"Z"})], 400, "kind"), ([("a", b"x", {"pax_headers": {"GNU.sparse.realsize": "99999999999"}})], 400, "sparse"),
    ([("a", b"x", {"pax_headers": {"path": "../out"}})], 403, "leads out"), ([("a", b"x", {"pax_headers": {"size": "-5"}})], 400, "number"),
])
def test_hostile_archives_stay_below_their_directory(sandbox, members, status, text):
    sandbox.run("echo kept >kept; mkdir in")
    before = sandbox.run("ls /workspace; ls -la /workspace/kept")["stdout"]
    answer = put(sandbox, "/workspace/in", tar_of(*members))
    assert answer.status == status, answer.body
    if text:
        assert text in answer.json()["detail"], answer.body
    assert sandbox.run("ls /workspace; ls -la /workspace/kept")["stdout"] == before


def test_damaged_archives(sandbox):
    whole = tar_of(("a", b"x" * 5000), ("b", b"y"))
    for data, text in ((b"", "cut off"), (whole[:700], "cut off"), (whole[:512 + 5120], "cut off"), (b"\x1f\x8b" + whole, "no tar"),
                       (whole[:100] + b"z" + whole[101:], "no tar"), (b"\0" * 512 + whole, "follows its end")):
        answer = put(sandbox, "/workspace/in", data)
        assert (answer.status, answer.json()["code"]) == (400, "bad_archive") and text in answer.json()["detail"], (text, answer.body)
    assert put(sandbox, "/workspace/in", whole).status == 204 and sandbox.run("cat in/b")["stdout"] == "y"
    assert put(sandbox, "/usr/in", whole).status == 403 and put(sandbox, "/workspace/in/b", whole).status == 409


def test_a_sandbox_that_is_too_small(daemon):  # noqa: F811
    small = Sandbox(daemon, limits={"disk_mb": 2})
    large = put(small, "/workspace", tar_of(("large", bytes(5 << 20))))
    many = put(small, "/workspace", tar_of(*((f"d/{i}", None) for i in range(3000))))
    for answer in (large, many):
        assert answer.status == 507 and answer.json()["code"] == "no_space", answer.body
    assert small.run("rm -r d large; ls")["stdout"] == ""
    small.ask("DELETE")


def stream(daemon, box, size, wait=0.0):  # noqa: F811
    """Sends an archive of one file of so many bytes as it is made; the reply."""
    head = tarfile.TarInfo("large")
    head.size = size
    client = daemon.connect(60)
    client.sendall(f"PUT {box.path('/archive?path=/workspace/in')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nConnection: close\r\n"
                   f"Transfer-Encoding: chunked\r\n\r\n200\r\n".encode() + head.tobuf() + b"\r\n")
    block, sent = bytes(1 << 20), 0
    while sent < size:
        client.sendall(b"100000\r\n" + block + b"\r\n")
        sent += len(block)
        time.sleep(wait)
    client.sendall(b"400\r\n" + bytes(1024) + b"\r\n0\r\n\r\n")
    answer = client.recv(65536)
    client.close()
    return answer


def test_archives_pass_through_and_are_not_kept(daemon):  # noqa: F811
    box = Sandbox(daemon, limits={"disk_mb": 400})
    before = rss(daemon)
    assert stream(daemon, box, 300 << 20).startswith(b"HTTP/1.1 204")
    assert box.run("stat -c %s in/large")["stdout"] == f"{300 << 20}\n"
    # a client that reads nothing for a while: the box waits, not the daemon's memory
    client = daemon.connect()
    client.sendall(f"GET {box.path('/archive?path=/workspace')} HTTP/1.0\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode())
    time.sleep(2)
    assert rss(daemon) - before < 20000
    size, piece = 0, client.recv(1 << 20)
    while piece:
        size, piece = size + len(piece), client.recv(1 << 20)
    assert size > 300 << 20 and rss(daemon) - before < 20000
    # too much for the sandbox: the reason comes, whatever is still sent
    answer = stream(daemon, box, 600 << 20)
    assert answer.startswith(b"HTTP/1.1 507"), answer
    box.ask("DELETE")


def test_clients_that_hang_up(daemon, sandbox):  # noqa: F811
    """In the middle of both: what they began ends, and the sandbox has room for others."""
    sandbox.run("head -c 200000000 /dev/zero >large")
    for _ in range(10):
        client = daemon.connect()
        client.sendall(f"GET {sandbox.path('/archive?path=/workspace')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode())
        client.recv(1000)
        client.close()
        client = daemon.connect()
        client.sendall(f"PUT {sandbox.path('/archive?path=/workspace/in')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nContent-Length: 100000000\r\n\r\n".encode()
                       + tar_of(("a", bytes(1 << 20)))[:300000])
        client.close()
    time.sleep(3)
    assert not pgrep("nacre-files (un)?pack .*", daemon.process.pid)
    assert put(sandbox, "/workspace/in", tar_of(("a", b"x"))).status == 204
    assert sandbox.run("cat in/a")["stdout"] == "x"


def test_a_reader_sees_that_an_archive_breaks_off(daemon, sandbox):  # noqa: F811
    sandbox.run("head -c 200000000 /dev/zero >large")
    client = daemon.connect()
    client.sendall(f"GET {sandbox.path('/archive?path=/workspace')} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode())
    got = client.recv(65536)
    assert got.startswith(b"HTTP/1.1 200")
    sandbox.ask("DELETE")
    try:
        while piece := client.recv(1 << 20):
            got += piece
    except ConnectionResetError:
        pass
    assert len(got) < 200000000 and not got.endswith(b"0\r\n\r\n")


def test_a_sandbox_that_sends_is_not_idle(daemon):  # noqa: F811
    box, watched = Sandbox(daemon, idle_timeout=1), Sandbox(daemon, idle_timeout=1)
    box.run("head -c 100000000 /dev/zero >f")
    clients = []
    for made, rest in ((box, "/archive?path=/workspace"), (watched, "/watch?path=/workspace")):
        clients.append(daemon.connect())
        clients[-1].sendall(f"GET {made.path(rest)} HTTP/1.0\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode())
    time.sleep(3)
    assert (box.ask("GET").status, watched.ask("GET").status) == (200, 404)  # who only looks does not use it
    for client in clients:
        client.close()


@pytest.mark.parametrize("options", [(), ("-H", "Expect:"), ("--http1.0",)])
def test_with_curl(daemon, sandbox, tmp_path, options):  # noqa: F811
    """As the documentation says it: chunked, and with a word to go on before the body."""
    (tmp_path / "f").write_bytes(os.urandom(5000000))
    url = f"http://127.0.0.1:{daemon.port}{sandbox.path('/archive')}?path=/workspace"
    subprocess.run(["tar", "-c", "-f", tmp_path / "a.tar", "-C", tmp_path, "f"], check=True)
    source = str(tmp_path / "a.tar") if options == ("--http1.0",) else "-"
    with open(tmp_path / "a.tar") as archive:
        done = subprocess.run(["curl", "-sS", "-f", *options, "-T", source, url], stdin=archive, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    back = subprocess.run(["curl", "-sS", "-f", url], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(back)) as tar:
        assert tar.extractfile("f").read() == (tmp_path / "f").read_bytes()
    refused = subprocess.run(["curl", "-sS", "-w", "%{http_code}", "-o", "/dev/null", "-T", str(tmp_path / "f"), url], capture_output=True)
    assert refused.stdout == b"400", refused


def test_many_at_once(sandbox):
    sandbox.run("head -c 3000000 /dev/urandom >f; sha256sum f >sum")
    statuses = []

    def once(i):
        answer = sandbox.ask("GET", "/archive?path=/workspace/f")
        if answer.status == 200:
            answer = put(sandbox, f"/workspace/{i}", answer.body)
        statuses.append(answer.status)
    threads = [threading.Thread(target=once, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {204, 503} and 204 in statuses
    sums = sandbox.run("for i in [0-9]*; do (cd $i; sha256sum -c ../sum); done")
    assert sums["stdout"] == "f: OK\n" * statuses.count(204), sums


def test_tenants_and_roles(tmp_path):
    with Daemon(tmp_path) as own:
        one, two = own.key("--tenant", "one"), own.key("--tenant", "two")
        reader = own.key("--tenant", "one", "--role", "read")
        box = Sandbox(own, key=one)
        box.run("echo pearl >f")
        path = box.path("/archive?path=/workspace")
        assert b"pearl" in own.get(path, key=one).body and b"pearl" in own.get(path, key=reader).body
        assert own.get(path, key=two).status == own.ask("PUT", path, tar_of(("a", b"x")), headers=RAW, key=two).status == 404
        assert own.ask("PUT", path, tar_of(("a", b"x")), headers=RAW, key=reader).status == 403
        assert own.ask("PUT", path, tar_of(("a", b"x")), headers=RAW).status == 401
        assert own.ask("PUT", path, tar_of(("a", b"x")), headers={**RAW, "Origin": "http://evil.example"}, key=one).status == 403
        assert box.run("ls")["stdout"] == "f\n"


def test_an_ordinary_users_daemon(programs, tmp_path_factory):
    home = tmp_path_factory.mktemp("user")
    os.chown(home, 1000, 1000)
    open_way(home)
    with Daemon(home, prefix=USER, program=programs / "nacre") as own:
        box = Sandbox(own)
        assert put(box, "/workspace/in", tar_of(("a/b", b"x" * 3000000), ("../out", b"x"))).status == 403
        assert put(box, "/workspace/in", tar_of(("a/b", b"x" * 3000000))).status == 204
        assert get(box, "/workspace").getmember("in/a/b").size == 3000000
        # one at a time there: and a client that hangs up leaves the sandbox alive
        for _ in range(3):
            client = own.connect()
            client.sendall(f"PUT {box.path('/archive?path=/workspace/in')} HTTP/1.1\r\nHost: 127.0.0.1:{own.port}\r\nContent-Length: 100000\r\n\r\n".encode() + bytes(10))
            time.sleep(0.3)
            assert box.ask("POST", "/commands", {"command": "true"}).status == 409
            client.close()
            time.sleep(0.5)
        assert box.run("ls in")["stdout"] == "a\n"
