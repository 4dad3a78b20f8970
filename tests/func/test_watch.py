"""What happens to files of a sandbox, as events."""

import json
import os
import signal
import threading
import time

from conftest import open_way
from serving import Daemon
from test_sandboxes import USER, Sandbox, daemon, pgrep, sandbox  # noqa: F401: fixtures


class Watch:
    """Reads events as they come: (name, path below /workspace, type or where from)."""

    def __init__(self, box, query="path=/workspace", key=None):
        self.client = box.daemon.connect(20)
        key = key or box.key
        self.client.sendall(f"GET {box.path('/watch?' + query)} HTTP/1.0\r\nHost: 127.0.0.1:{box.daemon.port}\r\n".encode()
                            + (f"Authorization: Bearer {key}\r\n".encode() if key else b"") + b"\r\n")
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            piece = self.client.recv(65536)
            assert piece, self.data
            self.data += piece
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        self.numbers = []

    def event(self):
        while b"\n\n" not in self.data:
            piece = self.client.recv(65536)
            if not piece:
                return None
            self.data += piece
        text, _, self.data = self.data.partition(b"\n\n")
        fields = dict(line.split(": ", 1) for line in text.decode().split("\n"))
        if "id" in fields:
            self.numbers.append(int(fields["id"]))
        return fields["event"], json.loads(fields["data"])

    def until(self, name, path):
        """All events up to that one, in short."""
        seen = []
        while not seen or seen[-1][:2] != (name, path):
            event = self.event()
            assert event, seen
            kind, data = event
            more = [data["from"].removeprefix("/workspace/")] if kind == "moved" else []
            seen.append((kind, data.get("path", "").removeprefix("/workspace/"), *more))
        return seen


def test_what_happens_is_told(sandbox):
    sandbox.run("mkdir old; touch old/f")
    watch = Watch(sandbox)
    assert watch.event() == ("ready", {"path": "/workspace", "type": "directory"})
    sandbox.run("echo a >f; mv f g; rm g; mkdir d; echo x >d/inside; mv old/f in; mv in old/out; ln -s x l; touch mark")
    seen = watch.until("created", "mark")
    assert seen == [("created", "f"), ("modified", "f"), ("moved", "g", "f"), ("removed", "g"), ("created", "d"), ("created", "in"), ("removed", "in"),
                    ("created", "l"), ("created", "mark")]
    assert watch.numbers == list(range(1, len(watch.numbers) + 1))
    sandbox.run("for i in $(seq 100); do echo $i >>mark; done; touch 'odd\n$(printf '\\377')name'; rm -r d")
    assert watch.until("removed", "d")[0] == ("modified", "mark")


def test_below_too(sandbox):
    sandbox.run("mkdir -p a/b/c out; ln -s / all")
    watch = Watch(sandbox, "path=/workspace/&recursive=true")
    watch.event()
    sandbox.run("echo x >a/b/c/f; mkdir -p n/e/w; echo y >n/e/w/g; sleep 0.2; echo z >n/e/w/h; mv a/b moved; echo v >moved/c/k; mv moved /tmp/; echo q >/tmp/moved/c/z; touch mark")
    seen = watch.until("created", "mark")
    for expected in (("created", "a/b/c/f"), ("modified", "a/b/c/f"), ("created", "n"), ("created", "n/e/w/g"), ("created", "n/e/w/h"),
                     ("moved", "moved", "a/b"), ("created", "moved/c/k"), ("removed", "moved")):
        assert expected in seen, (expected, seen)
    assert not any("z" in event[1] for event in seen)


def test_its_end(daemon, sandbox):  # noqa: F811
    sandbox.run("mkdir -p d/e")
    watch = Watch(sandbox, "path=/workspace/d")
    watch.event()
    sandbox.run("rm -r d")
    watch.until("removed", "/workspace/d".removeprefix("/workspace/"))
    assert watch.event() == ("end", {"reason": None}) and watch.event() is None
    # a client that goes takes what looks for it along; so does a sandbox
    before = len(pgrep("nacre-files watch 0 /workspace", sandbox.daemon.process.pid))
    watches = [Watch(sandbox) for _ in range(4)]
    assert [found.status for found in watches] == [200] * 4 and Watch(sandbox).status == 409
    assert len(pgrep("nacre-files watch 0 /workspace", sandbox.daemon.process.pid)) == before + 4
    assert sandbox.run("echo room")["stdout"] == "room\n" and sandbox.write("/workspace/x", b"x").status == 204
    for found in watches[:3]:
        found.client.close()
    until = time.monotonic() + 5
    while len(pgrep("nacre-files watch 0 /workspace", sandbox.daemon.process.pid)) > before + 1 and time.monotonic() < until:
        time.sleep(0.1)
    assert len(pgrep("nacre-files watch 0 /workspace", sandbox.daemon.process.pid)) == before + 1
    sandbox.ask("DELETE")
    events = []
    while event := watches[3].event():
        events.append(event[0])
    assert events[-1] == "end"


def test_what_cannot_be_watched(sandbox):
    sandbox.run("echo x >f; mkdir -p many; cd many; for i in $(seq 90); do mkdir $i; (cd $i; mkdir $(seq 100)); done")
    for query, status in (("path=/nowhere", 404), ("path=relative", 400), ("path=/workspace/f", 409), ("", 400)):
        assert sandbox.ask("GET", f"/watch?{query}").status == status, query
    answer = sandbox.ask("GET", "/watch?path=/workspace&recursive=true")
    assert answer.status == 507 and "directories" in answer.json()["detail"], answer.body


def test_floods_and_slow_readers(daemon, sandbox):  # noqa: F811
    """More than anybody keeps: who reads has all of it or hears that some are missing, who does not hears that too, or is cut off; nobody's memory grows."""
    flood = "python3 -c 'for i in range(60000):\n open(\"f%d\" % (i % 50), \"w\").close()\n open(\"g\", \"a\").write(\"x\")'; rm f*; sleep 1; touch last"
    watch, idle = Watch(sandbox), Watch(sandbox)
    flooding = threading.Thread(target=lambda: sandbox.run(flood, timeout=60))
    flooding.start()
    seen = watch.until("created", "last")
    assert len(seen) > 60000 or {name for name, *_ in seen} & {"overflow", "gap"}
    flooding.join()
    names = []
    while (event := idle.event()) and event[1].get("path") != "/workspace/last":
        names.append(event[0])
    assert 1000 < len(names) and (not event or "gap" in names or "overflow" in names)
    again = Watch(sandbox)
    assert again.event()[0] == "ready"
    rss = int(next(line for line in open(f"/proc/{daemon.pid}/status") if line.startswith("VmRSS")).split()[1])
    assert rss < 100000


def test_tenants_and_a_daemon_that_stops(tmp_path):
    with Daemon(tmp_path) as own:
        one, two, reader = own.key("--tenant", "one"), own.key("--tenant", "two"), own.key("--tenant", "one", "--role", "read")
        box = Sandbox(own, key=one)
        path = box.path("/watch?path=/workspace")
        assert own.get(path, key=two).status == 404 and own.get(path).status == 401
        watch = Watch(box, key=reader)
        assert watch.status == 200
        threading.Timer(0.3, os.kill, (own.pid, signal.SIGTERM)).start()
        began = time.monotonic()
        while watch.event():
            pass
        assert own.process.wait(20) == 0 and time.monotonic() - began < 10


def test_an_ordinary_users_daemon(programs, tmp_path_factory):
    home = tmp_path_factory.mktemp("user")
    os.chown(home, 1000, 1000)
    open_way(home)
    with Daemon(home, prefix=USER, program=programs / "nacre") as own:
        box = Sandbox(own)
        assert box.ask("GET", "/watch?path=/workspace").status == 501
        assert box.run("echo alive")["stdout"] == "alive\n"
