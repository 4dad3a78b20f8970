"""nacre serve under many clients at once: no wrong answer, nothing left over, memory flat. NACRE_SOAK_SECONDS is how long."""

import collections
import http.client
import json
import os
import random
import threading
import time

import pytest

from conftest import NACRE
from leftovers import descendants
from serving import Daemon, events_of

SECONDS = float(os.environ.get("NACRE_SOAK_SECONDS", "8"))
CLIENTS = 200
# executions that are known by their id (NC_HTTP_JOBS_MAX)
KEPT = 4096
GROWTH_KIB = 3 * 1024
GROWTH_FDS = 16
# of the spawner, for each box more that waits at that moment
BOX_FDS = 24
# of what 200 clients took at once, when nobody asks any more
GIVEN_BACK_KIB = 8 * 1024


def roles(daemon):
    """KiB and descriptors of the daemon and each process that it keeps for itself, without what runs in boxes; and how many boxes there are."""
    found, boxes = {}, 0
    for pid in [daemon.process.pid, *sorted(descendants(daemon.process.pid))]:
        try:
            name = open(f"/proc/{pid}/comm").read().strip()
            if name == "memfd:nacre-ini":
                boxes += 1
            elif name.startswith("nacre") and name not in ("nacre-init", "nacre-files") and name not in found:
                found[name] = (next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")),
                               len(os.listdir(f"/proc/{pid}/fd")))
        except (OSError, StopIteration):
            pass  # it has ended
    return found, boxes


def settled_roles(daemon):
    """When no box is being made or taken apart any more: such a one has descriptors, and perhaps no process 1."""
    until = time.monotonic() + 30
    found, boxes = roles(daemon)
    while True:
        time.sleep(0.5)
        again, boxes_then = roles(daemon)
        if (again["nacre-spawner"][1], boxes_then) == (found["nacre-spawner"][1], boxes) or time.monotonic() > until:
            return again, boxes_then
        found, boxes = again, boxes_then


def fill(daemon):
    """As many executions as are kept, so that from here on each new one has an old one forgotten: refused ones, which are fast."""
    client = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    body = json.dumps({"language": "shell", "code": ":(){ :|:& };:"})
    left = KEPT
    while left:
        client.request("POST", "/v1/jobs", body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        text = answer.read()
        if answer.status == 503 and json.loads(text)["code"] == "busy":  # faster than they are recorded
            time.sleep(0.1)
            continue
        assert answer.status == 202, text
        left -= 1
    client.close()


def metric(daemon, name):
    return next(float(line.rsplit(" ", 1)[1]) for line in daemon.get("/metrics").body.decode().splitlines() if line.split(" ")[0] == name)


def wait_until_quiet(daemon):
    until = time.monotonic() + 60
    while True:
        left = [metric(daemon, name) for name in ("nacre_executions_running", "nacre_queue_depth")]
        if left == [0, 0]:
            return
        assert time.monotonic() < until, left
        time.sleep(0.2)


class Client(threading.Thread):
    """Asks for all kinds of things, and knows the right answer to each."""

    def __init__(self, daemon, number, until, wrong, counts):
        super().__init__(daemon=True)
        self.server, self.number, self.until, self.wrong, self.counts = daemon, number, until, wrong, counts
        self.chance = random.Random(number)

    def run(self):
        kinds = [self.version] * 6 + [self.execute] * 3 + [self.python, self.job, self.twice, self.stream, self.sandbox, self.hang_up, self.bad,
                                                           self.history]
        while time.monotonic() < self.until:
            kind = self.chance.choice(kinds)
            try:
                kind()
                self.counts[kind.__name__] += 1
            except Exception as error:  # whatever it is, it is a wrong answer
                self.wrong.append(f"{kind.__name__}: {type(error).__name__}: {error}"[:300])

    def right(self, answer, expected):
        if answer.status in (429, 503):  # said no, with a reason and a time
            assert answer.headers["retry-after"]
            return
        assert answer.status == 200 and answer.json()["output"] == expected, answer.body[:200]

    def version(self):
        assert self.server.get("/v1/version").json()["name"] == "nacre"

    def execute(self):
        n = self.chance.randrange(10**6)
        self.right(self.server.execute(f"echo {n}", "shell"), f"{n}\n")

    def python(self):
        n = self.chance.randrange(10**6)
        self.right(self.server.execute(f"import json; print(json.dumps([{n}]))"), f"[{n}]\n")

    def twice(self):
        headers = {"Idempotency-Key": f"{self.number}-{self.chance.random()}"}
        answers = [self.server.post("/v1/jobs", {"language": "shell", "code": "echo once"}, headers=headers) for _ in range(2)]
        if answers[0].status == 202:
            assert answers[1].status == 202 and answers[0].json()["id"] == answers[1].json()["id"], answers[1].body[:200]

    def sandbox(self):
        made = self.server.post("/v1/sandboxes", {})
        if made.status in (429, 503):
            assert made.headers["retry-after"]
            return
        assert made.status == 201, made.body[:200]
        path = f"/v1/sandboxes/{made.json()['id']}"
        put = self.server.ask("PUT", f"{path}/files?path=/tmp/a", b"%d" % self.number, headers={"Content-Type": "application/octet-stream"})
        assert put.status in (200, 201, 204, 503), put.body[:200]
        ran = self.server.post(f"{path}/commands", {"command": "cat /tmp/a"})
        assert ran.status == 503 or (ran.status == 200 and ran.json()["stdout"] == str(self.number)), ran.body[:200]
        assert self.server.ask("DELETE", path).status in (200, 204)

    def job(self):
        answer = self.server.post("/v1/jobs", {"language": "shell", "code": "echo job"})
        if answer.status == 202:
            done = self.server.get(f"/v1/jobs/{answer.json()['id']}/wait?timeout=60").json()
            assert done["reply"]["output"] == "job\n", done

    def stream(self):
        answer = self.server.post("/v1/execute", {"language": "shell", "code": "echo a; echo b", "stream": True})
        if answer.status == 200:
            events = events_of(answer.body)
            assert [event[0] for event in events] == list(range(1, len(events) + 1))
            assert events[-1][1] == "done" and events[-1][2]["output"] == "a\nb\n", events

    def hang_up(self):
        body = json.dumps({"language": "shell", "code": "sleep 20"}).encode()
        with self.server.connect() as client:
            client.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(self.chance.random() / 5)

    def bad(self):
        answer = self.server.post("/v1/execute", {"language": "shell"})
        assert answer.status == 400 or (answer.status == 503 and answer.headers["retry-after"]), answer.body[:200]

    def history(self):
        assert self.server.get("/v1/history?limit=5").status == 200


def soak(daemon, seconds, wrong, counts):
    until = time.monotonic() + seconds
    clients = [Client(daemon, number, until, wrong, counts) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(timeout=seconds + 120)
        assert not client.is_alive()


def test_many_clients(tmp_path):
    wrong, counts = [], collections.Counter()
    with Daemon(tmp_path) as daemon:
        fill(daemon)
        soak(daemon, SECONDS / 2, wrong, counts)
        wait_until_quiet(daemon)
        middle, boxes = settled_roles(daemon)
        soak(daemon, SECONDS / 2, wrong, counts)
        wait_until_quiet(daemon)
        end, boxes_then = settled_roles(daemon)
        assert not wrong, (len(wrong), wrong[:5])
        assert len(counts) == 10, counts
        assert KEPT - 2 * CLIENTS <= metric(daemon, "nacre_jobs") <= KEPT  # those that are waited for are not kept
        assert set(end) == set(middle) >= {"nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-archive"}, (middle, end)
        print({name: (middle[name], end[name]) for name in end}, (boxes, boxes_then), dict(counts))
        for name in end:
            more = BOX_FDS * max(0, boxes_then - boxes) if name == "nacre-spawner" else 0
            assert end[name][1] <= middle[name][1] + GROWTH_FDS + more, (name, middle, end, boxes, boxes_then)
            if b"__asan_init" not in NACRE.read_bytes():  # which keeps what was freed
                assert end[name][0] <= middle[name][0] + GROWTH_KIB, (name, middle, end)
        assert daemon.get("/v1/audit/verify").json()["ok"]
        if b"__asan_init" not in NACRE.read_bytes():
            until = time.monotonic() + 20
            while roles(daemon)[0]["nacre"][0] > end["nacre"][0] - GIVEN_BACK_KIB:
                assert time.monotonic() < until, (end, roles(daemon))
                time.sleep(1)
    assert daemon.code == 0


@pytest.mark.skipif(b"__asan_init" in NACRE.read_bytes() or b"__gcov_" in NACRE.read_bytes(), reason="instrumented code is larger")
def test_an_idle_daemon_is_small(tmp_path):
    """All that it keeps for itself, without interpreters: what they share counts once (PSS)."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/serve.yaml").write_text("webhooks: [http://127.0.0.1:9/]\ntracing: {endpoint: http://127.0.0.1:9/}\n")
    with Daemon(tmp_path, "--no-warm", config=tmp_path / "config", respawn=True) as daemon:
        for _ in range(5):
            assert daemon.execute("print(1)").status == 200
        assert daemon.get("/v1/history").status == 200
        time.sleep(7)
        sizes = collections.Counter()
        for pid in [daemon.process.pid, *descendants(daemon.process.pid)]:
            name = open(f"/proc/{pid}/comm").read().strip()
            sizes[name] += next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:"))
        assert set(sizes) == {"nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-archive", "nacre-analyst", "nacre-courier", "nacre-exporter",
                              "nacre-keeper"}
        assert sum(sizes.values()) < 20 * 1024, sizes


def test_a_flood_is_recorded(tmp_path):
    """As fast as they come: more than the recorder's socket holds, and each is in the history."""
    with Daemon(tmp_path) as daemon:
        fill(daemon)
        wait_until_quiet(daemon)
        found, before = set(), ""
        while before is not None:
            page = daemon.get(f"/v1/history?limit=1000{before and f'&before={before}'}").json()
            found |= {row["id"] for row in page["executions"] if row["status"] == "blocked"}
            before = page["next"]
        assert len(found) == KEPT
        assert all(job["status"] == "blocked" for job in daemon.get("/v1/jobs?limit=1000").json()["jobs"])
