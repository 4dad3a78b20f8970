"""The books: some 800 executions and commands of all kinds and ends, by two tenants, with daemon, spawner and recorder killed in between.

Then replies, history, journal, metrics, quotas and what the spawner has read from the kernel agree, with nothing missing and nothing twice; and
what the kernel's files say of those that run is what they are billed."""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import NACRE
from leftovers import descendants
from serving import Daemon, events_of
from test_commands_account import PROBE, cpu, metrics
from test_sandboxes import Sandbox

TENANTS = ("acme", "rival")
THREADS = 5
DRAIN = "drain_seconds: 1\n"
POLICIES = {
    "ends": "respond:\n  critical: end\n",
    "baited": "decoys: true\n",
    "nets": "network:\n  allow: [nowhere.invalid]\n",
}
CROWD = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1 & done; wait; echo done"
OPENS = "python3 -c 'x = [open(\"/dev/null\") for _ in range(100)]'"
ASKS = "curl -s -o /dev/null http://other.invalid/; sleep 0.3"
LURED = "cat ~/.aws/credentials"
SLOW_TO_COMPILE = "#if __INCLUDE_LEVEL__ < 150\n#include __FILE__\n#include __FILE__\n#endif\nint NAME;\n"

EXECUTIONS = {  # code, language, more of the request, statuses that it may end with
    "good": ("echo good", "shell", {}, "success"),
    "python": ("print(sum(range(200000)))", "python", {}, "success"),
    "loud": ("head -c 300000 /dev/zero | tr '\\0' x; echo more >&2", "shell", {}, "success"),
    "bad": ("echo bad >&2; exit 3", "shell", {}, "error"),
    "raises": ("raise ValueError('no')", "python", {}, "error"),
    "killed": ("kill -9 $$", "shell", {}, "killed"),
    "late": ("sleep 60", "shell", {"timeout": 0.3}, "timeout"),
    "burner": ("while :; do :; done", "shell", {"limits": {"cpu_time_seconds": 0.2}}, "cpu_limit"),
    "glutton": ("x = bytearray(400 << 20)", "python", {"limits": {"memory_mb": 48}}, "memory_limit"),
    "printer": ("yes", "shell", {"limits": {"output_bytes": 20000}}, "output_limit"),
    "filler": ("head -c 40000000 /dev/zero > f", "shell", {"limits": {"disk_mb": 4}}, "disk_limit error"),
    "prober": (PROBE, "shell", {}, "success"),
    "refused": ("import os\nos.system('true')", "python", {"policy": "strict"}, "blocked"),
    "brings": ("cat in > out", "shell", {"files": {"in": "pearl"}, "capture": ["out"]}, "success"),
    "crowd": (CROWD, "shell", {"limits": {"max_processes": 5}}, "success error"),
    "opener": (OPENS, "shell", {"limits": {"open_files": 16}}, "error"),
    "maker": ("for i in $(seq 100); do : > f$i; done", "shell", {"limits": {"inodes": 40}}, "error"),
    "compiled": ("int NAME; int main(void) { return 0; }", "c", {}, "success"),
    "uncompiled": ("int NAME; int main(void) { return }", "c", {}, "error"),
    "steps": (None, None, {"steps": [{"name": "a", "language": "shell", "code": PROBE}, {"name": "b", "language": "c", "code": "int NAME; int main(void) { return 4; }"},
                                     {"name": "c", "language": "python", "code": "print(1)"}]}, "error"),
    "alerted": (PROBE + "\nsleep 60", "shell", {"policy": "ends"}, "blocked"),
    "lured": (LURED, "shell", {"policy": "baited"}, "success"),
    "asks": (ASKS, "shell", {"policy": "nets", "network_access": True}, "success"),
    "cached": ("print(sum(range(300000)))", "python", {"cache": True}, "success"),
    "reads": ("read line; echo $line", "shell", {"inputs": ["pearl"]}, "success"),
}
COMMANDS = {  # the same of commands
    "good": ("echo good", {}, "success"),
    "list": (["/bin/echo", "good"], {}, "success"),
    "python": ("python3 -c 'print(sum(range(200000)))'", {}, "success"),
    "loud": ("head -c 300000 /dev/zero | tr '\\0' x; echo more >&2", {}, "success"),
    "bad": ("echo bad >&2; exit 3", {}, "error"),
    "killed": ("kill -9 $$", {}, "killed"),
    "late": ("sleep 60", {"timeout": 0.3}, "timeout"),
    "glutton": ("python3 -c 'x = bytearray(400 << 20)'", {}, "memory_limit error killed"),
    "prober": (PROBE, {}, "success"),
    "missing": (["/no/such/program"], {}, "error"),
    "reads": ("cat", {"input": "pearl"}, "success"),
    "terminal": ("tty; exit 2", {"terminal": True}, "error"),
    "opener": (OPENS, {}, "success"),
    "crowd": (CROWD.replace("10 11 12", "$(seq 60)"), {}, "success error"),
}
IN_BOXES = {  # of a policy
    "ends": (PROBE + "\nsleep 60", "blocked"),
    "baited": (LURED, "success"),
    "nets": (ASKS, "success"),
}


class Books:
    """Who asked for what, and was told what."""

    def __init__(self, daemon, keys):
        self.daemon, self.keys, self.lock = daemon, keys, threading.Lock()
        self.entries, self.boxes, self.faults = {}, {}, []
        self.box_lock = threading.Lock()
        self.random = random.Random(19)

    def new(self, kind, tenant, what):
        with self.lock:
            name = f"n{len(self.entries):04}"
            self.entries[name] = entry = {"name": name, "kind": kind, "tenant": tenant, "what": what, "reply": None, "began": time.monotonic(), "era": None}
        return entry

    def ask(self, method, path, body, tenant, headers=None):
        """Until somebody takes it: what is refused since one of the processes is away did not begin."""
        until = time.monotonic() + 30
        while True:
            try:
                answer = self.daemon.ask(method, path, body, key=self.keys[tenant], headers=headers)
            except OSError:
                answer = None
            if answer and not (answer.status == 503 and answer.json().get("code") in ("no_recorder", "busy", "stopping", "unavailable")) and answer.status:
                return answer
            assert time.monotonic() < until, (path, answer and answer.body)
            time.sleep(0.05)

    def fault(self, *what):
        with self.lock:
            self.faults.append(what)

    # ---- executions

    def request(self, entry, code, language, more):
        body = {"id": entry["name"], **more} if code is None else {"id": entry["name"], "language": language, "code": code, **more}
        return json.loads(json.dumps(body).replace("NAME", entry["name"]))

    def settle(self, entry, reply, expected):
        entry["reply"], entry["ended"] = reply, time.monotonic()
        if reply["status"] not in expected.split():
            self.fault("status", entry["what"], reply["status"], reply.get("error"))

    def execution(self, tenant, what):
        code, language, more, expected = EXECUTIONS[what]
        entry = self.new("execution", tenant, what)
        how = self.random.choice(("wait", "wait", "job", "events", "twice"))
        body = self.request(entry, code, language, more)
        if how == "wait":
            answer = self.ask("POST", "/v1/execute", body, tenant)
            reply = answer.json()
        elif how == "twice":  # the same request again is answered with the same reply
            for _ in range(2):
                answer = self.ask("POST", "/v1/execute", body, tenant, headers={"Idempotency-Key": entry["name"]})
            reply = answer.json()
        elif how == "job":
            job = self.ask("POST", "/v1/jobs", body, tenant).json()["id"]
            reply = self.ask("GET", f"/v1/jobs/{job}/wait", None, tenant).json()["reply"]
        else:
            answer = self.ask("POST", "/v1/execute", {**body, "stream": True}, tenant)
            reply = events_of(answer.body)[-1][2]
        self.settle(entry, reply, expected)

    def cancelled(self, tenant, stage):
        """Cancelled as soon as it is known, while it is compiled or runs, between steps, or behind its end."""
        entry = self.new("execution", tenant, f"cancelled {stage}")
        code = SLOW_TO_COMPILE if stage == "compiling" else "while :; do :; done" if stage != "behind" else "true"
        body = self.request(entry, code, "c" if stage == "compiling" else "shell", {"limits": {"memory_mb": 512}} if stage == "compiling" else {})
        if stage == "later step":
            body = self.request(entry, None, None, {"language": "shell", "steps": [{"name": "a", "code": "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"},
                                                                                   {"name": "b", "code": code}]})
        job = self.ask("POST", "/v1/jobs", body, tenant).json()["id"]
        if stage == "behind":
            self.ask("GET", f"/v1/jobs/{job}/wait", None, tenant)
        time.sleep({"at once": 0, "starting": 0.02, "behind": 0}.get(stage, 0.7))
        self.ask("DELETE", f"/v1/jobs/{job}", None, tenant)
        reply = self.ask("GET", f"/v1/jobs/{job}/wait", None, tenant).json()["reply"]
        self.settle(entry, reply, "success" if stage == "behind" else "cancelled")

    def hang_up(self, tenant, path, body):
        data = json.dumps(body).encode()
        with self.daemon.connect() as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.daemon.port}\r\nAuthorization: Bearer {self.keys[tenant]}\r\n"
                           f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            time.sleep(0.4)

    def gone(self, tenant):
        entry = self.new("execution", tenant, "hung up")
        self.hang_up(tenant, "/v1/execute", self.request(entry, "while :; do :; done", "shell", {}))
        entry["ended"] = time.monotonic()

    # ---- commands

    def box(self, tenant, policy="standard"):
        with self.box_lock:
            if (tenant, policy) not in self.boxes:
                network = {"network_access": True} if policy == "nets" else {}
                answer = self.ask("POST", "/v1/sandboxes", {"timeout": 600, "policy": policy, "limits": {"memory_mb": 96, "disk_mb": 32, "max_processes": 40}, **network}, tenant)
                assert answer.status == 201, answer.body
                self.boxes[tenant, policy] = f"/v1/sandboxes/{answer.json()['id']}"
            return self.boxes[tenant, policy]

    def marked(self, entry, command):
        """The same, with its name in it, which is how it is found in the journal."""
        return [*command, entry["name"]] if isinstance(command, list) else f": {entry['name']}; {command}"

    def wait_for(self, path, tenant):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = self.ask("GET", path, None, tenant).json()
            if found.get("state") != "running":
                return found
            time.sleep(0.03)
        raise AssertionError(found)

    def command(self, tenant, what):
        command, more, expected = COMMANDS[what]
        entry, box = self.new("command", tenant, what), self.box(tenant)
        background = self.random.random() < 0.3
        answer = self.ask("POST", f"{box}/commands", {"command": self.marked(entry, command), "background": background, **more}, tenant)
        reply = answer.json()
        if answer.status == 202:
            reply = self.wait_for(f"{box}/commands/{reply['id']}", tenant)
        self.settle(entry, reply, expected)

    def ended_command(self, tenant, how):
        entry, box = self.new("command", tenant, f"ended {how}"), self.box(tenant)
        body = {"command": self.marked(entry, "while :; do :; done")}
        if how == "hung up":
            self.hang_up(tenant, f"{box}/commands", body)
            entry["ended"] = time.monotonic()
            return
        path = f"{box}/commands/" + self.ask("POST", f"{box}/commands", {**body, "background": True}, tenant).json()["id"]
        time.sleep(0 if how == "at once" else 0.4)
        if how == "signalled":
            self.ask("POST", f"{path}/signal", {"signal": "TERM"}, tenant)
        else:
            self.ask("DELETE", path, None, tenant)
        self.settle(entry, self.wait_for(path, tenant), "killed" if how == "signalled" else "cancelled")

    def refused_command(self, tenant):
        entry = self.new("command", tenant, "refused")
        answer = self.ask("POST", f"{self.box(tenant, 'strict')}/commands", {"command": f": {entry['name']}; curl https://example.com | sh"}, tenant)
        entry["ended"] = time.monotonic()
        if answer.status != 403:
            self.fault("status", "refused", answer.status, answer.body)

    def boxed(self, tenant, policy):
        """A command in a sandbox of that policy."""
        command, expected = IN_BOXES[policy]
        entry = self.new("command", tenant, policy)
        self.settle(entry, self.ask("POST", f"{self.box(tenant, policy)}/commands", {"command": self.marked(entry, command)}, tenant).json(), expected)

    def burnt_box(self, tenant, how):
        """A sandbox that goes with a command that burns in it."""
        entry = self.new("command", tenant, how)
        box = "/v1/sandboxes/" + self.ask("POST", "/v1/sandboxes", {"timeout": 1} if how == "aged" else {}, tenant).json()["id"]
        self.ask("POST", f"{box}/commands", {"command": self.marked(entry, "while :; do :; done"), "background": True}, tenant)
        time.sleep(0.4)
        if how == "paused":
            self.ask("POST", f"{box}/pause", None, tenant)
        if how == "aged":
            while self.ask("GET", box, None, tenant).status == 200:
                time.sleep(0.05)
        else:
            self.ask("DELETE", box, None, tenant)
        entry["ended"] = time.monotonic()

    def struck(self, tenant, box, kind, what):
        """Whatever becomes of it: somebody is being killed."""
        entry = self.new(kind, tenant, f"struck {what}")
        try:
            if kind == "execution":
                code, language, more, _ = EXECUTIONS[what]
                answer = self.daemon.ask("POST", "/v1/execute", self.request(entry, code, language, more), key=self.keys[tenant])
            else:
                command, more, _ = COMMANDS[what]
                answer = self.daemon.ask("POST", f"{box}/commands", {"command": self.marked(entry, command), **more}, key=self.keys[tenant])
            if answer.status == 200:
                entry["reply"] = answer.json()
        except (OSError, IndexError, ValueError):
            pass  # the connection broke off

    # ---- load

    def load(self, rounds, meanwhile=None):
        calls = []
        for tenant in TENANTS:
            for _ in range(rounds):
                calls += [(self.execution, tenant, what) for what in EXECUTIONS] + [(self.command, tenant, what) for what in COMMANDS]
                calls += [(self.cancelled, tenant, stage) for stage in ("at once", "starting", "compiling", "running", "later step", "behind")]
                calls += [(self.ended_command, tenant, how) for how in ("at once", "running", "signalled", "hung up")]
                calls += [(self.gone, tenant), (self.refused_command, tenant)] + [(self.boxed, tenant, policy) for policy in IN_BOXES]
                calls += [(self.burnt_box, tenant, how) for how in ("destroyed", "aged", "paused")]
        self.run(calls, meanwhile)

    def strike(self, kill):
        """Somebody is killed in the middle of it."""
        calls = [(self.struck, tenant, self.box(tenant), kind, what) for tenant in TENANTS for kind, what in
                 [("execution", what) for what in ("good", "python", "bad", "loud", "late", "burner", "compiled", "brings", "raises", "killed")] +
                 [("command", what) for what in ("good", "python", "bad", "loud", "late", "killed")]] * 2

        def half(waiting):
            while sum(one.done() for one in waiting) < len(waiting) // 2:
                time.sleep(0.005)
            kill()
        self.run(calls, half)

    def run(self, calls, meanwhile=None):
        self.random.shuffle(calls)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            waiting = [pool.submit(*call) for call in calls]
            if meanwhile:
                meanwhile(waiting)
            for one in waiting:
                one.result(120)

    def running(self, tenant, drained=False):
        """What runs while somebody is killed."""
        body = {"language": "shell", "code": "while :; do :; done", "timeout": 60}
        entry = self.new("execution", tenant, "drained" if drained else "lost")
        self.ask("POST", "/v1/jobs", {**body, "id": entry["name"]}, tenant)
        entry = self.new("command", tenant, "drained" if drained else "survives")
        path = f"{self.box(tenant)}/commands"
        self.ask("POST", path, {"command": self.marked(entry, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 2.5; exit 5"), "background": True}, tenant)
        return entry

    # ---- what the daemon has written

    def history(self):
        rows, before = [], ""
        while before is not None:
            page = self.daemon.get(f"/v1/history?limit=1000{before and f'&before={before}'}", key=self.keys["boss"]).json()
            rows += page["executions"]
            before = page["next"]
        return rows

    def quiet(self):
        """Nothing runs, and what has ended is recorded."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            now = metrics(self.daemon, self.keys["boss"])
            if now["nacre_executions_running"] == now["nacre_commands_running"] == now["nacre_queue_depth"] == 0:
                return now
            time.sleep(0.05)
        raise AssertionError(now)

    def close_era(self, era):
        """What has ended since the last time was counted by this daemon."""
        found = self.quiet()
        for entry in self.entries.values():
            if entry["era"] is None and "ended" in entry:
                entry["era"] = era
        return found


def recorders(daemon):
    names = {}
    for pid in descendants(daemon.process.pid):
        try:
            names[pid] = open(f"/proc/{pid}/comm").read().strip()
        except OSError:
            pass
    return [pid for pid, name in names.items() if name == "nacre-recorder"]


def kill_recorder(books):
    def kill(waiting):
        until = time.monotonic() + 30
        while sum(one.done() for one in waiting) < len(waiting) // 2 and time.monotonic() < until:
            time.sleep(0.02)
        victim, = recorders(books.daemon)
        os.kill(victim, signal.SIGKILL)
        while recorders(books.daemon) in ([], [victim]) or metrics(books.daemon, books.keys["boss"])['nacre_aide_up{aide="recorder"}'] != 1:
            time.sleep(0.05)
    return kill


def kill_spawner(books):
    daemon = books.daemon
    spawner, = subprocess.run(["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True).stdout.split()
    pid = daemon.pid
    os.kill(int(spawner), signal.SIGKILL)
    until = time.monotonic() + 30
    while daemon.pid == pid:
        assert time.monotonic() < until
        time.sleep(0.05)
        daemon.pid = [record["pid"] for record in daemon.log() if record["message"] == "Listening"][-1]
    books.boxes.clear()


def spend_to_the_last_second(books, found):
    """The quota is set to the next second: what is spent until then is let in, and nothing from then on. Each step is some milliseconds."""
    config, results = books.daemon.config[1], {}
    spent = {tenant: sum(bill(found, entry)["cpu"] for entry in books.entries.values() if entry["era"] == "last" and entry["tenant"] == tenant and
                         bill(found, entry) and not (entry["reply"] or {}).get("cached")) for tenant in TENANTS}
    limit = {tenant: int(spent[tenant]) + 1 for tenant in TENANTS}
    text = "".join(f"  {tenant}: {{cpu_seconds_per_hour: {limit[tenant]}}}\n" for tenant in TENANTS)
    open(f"{config}/serve.yaml", "w").write(f"{DRAIN}tenants:\n{text}")
    os.kill(books.daemon.pid, signal.SIGHUP)
    time.sleep(0.5)
    for tenant in TENANTS:
        while True:
            left = limit[tenant] - spent[tenant]
            burn = f"import time\nwhile time.process_time() < {left - 0.06}: pass" if left > 0.15 else ""
            answer = books.daemon.execute(burn or "true", "python" if burn else "shell", key=books.keys[tenant])
            results.setdefault(tenant, []).append((round(left, 6), answer.status))
            if answer.status != 200:
                break
            spent[tenant] += cpu(answer.json()["usage"])
            assert len(results[tenant]) < 200, results
    return results


def journal(daemon):
    lines = subprocess.run([str(NACRE), "audit", "log", "--json"], env=daemon.env, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def row_of(found, entry):
    """Its end in the history."""
    return found["rows"].get(entry["name"], [None])[0]


def bill(found, entry):
    """What the daemon has written down of it: the one form for both."""
    row = row_of(found, entry)
    line = (found["lines"].get(entry["name"]) or [None])[-1]
    if row and row["tier"] and "cpu_seconds" in row:  # one that is lost before it began has none
        return {"status": row["status"], "cpu": row["cpu_seconds"], "wall": row["wall_seconds"], "memory": row["memory_peak_bytes"]}
    if line and "usage" in line:
        usage = line["usage"]
        return {"status": line["status"], "cpu": cpu(usage), "wall": usage["wall_seconds"], "memory": usage["memory_peak_bytes"]}
    return None


def refusals(denials):
    """Refused calls and processes, by name and number."""
    return tuple(sorted((denial["id"], denial["count"]) for denial in denials if denial["layer"] == "seccomp" or denial["id"] == "limit.pids"))


def read(books, found):
    rows = books.history()
    found["rows"] = collections.defaultdict(list)
    for row in rows:
        found["rows"][row["request_id"]].append(row)
    found["lost"] = sum(row["status"] == "lost" for row in rows)
    found["journal"] = journal(books.daemon)
    sort_lines(found, books.entries)


def sort_lines(found, entries):
    """The journal by the names that we gave."""
    found["lines"], found["ends"], found["witness"] = collections.defaultdict(list), collections.Counter(), collections.Counter()
    found["deaths"] = collections.defaultdict(list)
    for entry in found["journal"]:
        body = entry.get("body", {})
        if entry["event"] == "sandbox.command":
            text = body["command"] if isinstance(body["command"], str) else body["command"][-1]
            found["lines"][text.partition(": ")[2].partition(";")[0] if isinstance(body["command"], str) else text].append(body)
        elif entry["kind"] == "execution" and entry["event"] in ("finish", "lost"):
            found["ends"][entry["id"], entry["event"]] += 1
        elif entry["from"] == "spawner" and entry["event"] == "died":
            found["witness"][body["wall_ns"], body["cpu_us"], body["memory_peak_bytes"], refusals(body.get("denials", []))] += 1
            if entry["id"]:
                found["deaths"][entry["id"]].append(body)
    assert set(found["lines"]) <= set(entries)


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    home = tmp_path_factory.mktemp("ledger")
    (home / "config" / "policies").mkdir(parents=True)
    (home / "config" / "serve.yaml").write_text(DRAIN)
    for name, text in POLICIES.items():
        (home / "config" / "policies" / f"{name}.yaml").write_text(f"inherits: standard\n{text}")
    home.chmod(0o755)
    with Daemon(home, config=home / "config", respawn=True) as daemon:
        keys = {name: daemon.key("--tenant", name, "--role", "execute") for name in TENANTS}
        keys["boss"] = daemon.key("--tenant", "boss", "--role", "admin")
        books, found = Books(daemon, keys), {}
        books.load(3)
        found["first"] = books.close_era("first")
        survivors = [books.running(tenant) for tenant in TENANTS for _ in range(2)]
        time.sleep(0.5)
        daemon.die()
        books.load(2, kill_recorder(books))
        for entry in survivors:
            entry["ended"] = time.monotonic()
        found["second"] = books.close_era("second")
        for tenant in TENANTS:
            books.running(tenant)
        time.sleep(0.7)
        kill_spawner(books)
        books.load(2)
        found["last"] = books.close_era("last")
        read(books, found)
        found["quota"] = spend_to_the_last_second(books, found)
        (home / "config" / "serve.yaml").write_text(DRAIN)
        os.kill(daemon.pid, signal.SIGHUP)
        time.sleep(0.3)
        books.strike(daemon.die)
        books.quiet()
        books.strike(lambda: kill_spawner(books))
        books.quiet()
        for tenant in TENANTS:
            books.running(tenant, drained=True)
        time.sleep(0.7)
    assert daemon.code == 0
    with Daemon(home, config=home / "config") as daemon:
        books.daemon = daemon
        read(books, found)
        found["now"] = metrics(daemon, keys["boss"])
        found["verify"] = daemon.get("/v1/audit/verify", key=keys["boss"]).json()
    assert len(books.entries) >= 800
    return books, found


def test_each_ended_as_it_should(books):
    assert not books[0].faults, books[0].faults[:10]


def test_nothing_is_missing_and_nothing_is_twice(books):
    """Each execution is in the history once, each command in the journal once; nothing else is."""
    books, found = books
    wrong = []
    for name, entry in books.entries.items():
        rows, lines = found["rows"].get(name, []), found["lines"].get(name, [])
        once = (1, 0) if entry["kind"] == "execution" else (0, 1)
        never = [(0, 0)] if entry["what"].startswith("struck") and not entry["reply"] else []  # of those that nobody answered
        if (len(rows), len(lines)) not in [once, *never]:
            wrong.append((name, entry["what"], entry["era"], len(rows), [line["status"] for line in lines]))
    assert not wrong, (len(wrong), wrong[:10])
    ends = collections.Counter()
    for (execution, _), n in found["ends"].items():
        ends[execution] += n
    rows = {row["id"] for rows in found["rows"].values() for row in rows}
    assert set(ends.values()) == {1} and rows == set(ends) and found["verify"]["ok"], (ends.most_common(3), rows ^ set(ends), found["verify"])


def test_who_is_lost_is_counted(books):
    """By whichever daemon came next, over all of them."""
    found = books[1]
    assert found["lost"] >= 6 and found["now"]['nacre_executions_failed_total{status="lost"}'] == found["lost"], found["lost"]


def test_replies_are_what_is_written_down(books):
    books, found = books
    wrong = []
    for name, entry in books.entries.items():
        reply, written = entry["reply"], bill(found, entry)
        if not reply or not written or not (entry["kind"] == "command" or reply["tier"]):
            continue
        told = {"status": reply["status"], "cpu": cpu(reply["usage"]), "wall": reply["usage"]["wall_seconds"], "memory": reply["usage"]["memory_peak_bytes"]}
        if {key: round(value, 6) if isinstance(value, float) else value for key, value in told.items()} != \
                {key: round(value, 6) if isinstance(value, float) else value for key, value in written.items()}:
            wrong.append((entry["what"], told, written))
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("era", ["first", "second", "last"])
def test_metrics_are_the_sum(books, era):
    books, found = books
    ended = [entry for entry in books.entries.values() if entry["era"] == era]
    everybody = [row_of(found, entry) for entry in ended if entry["kind"] == "execution"]
    cached = {row_of(found, entry)["id"] for entry in ended if entry["reply"] and entry["reply"].get("cached")}
    rows = [row for row in everybody if row["id"] not in cached]
    lines = [found["lines"][entry["name"]][-1] for entry in ended if entry["kind"] == "command"]
    used = [line["usage"] for line in lines if "usage" in line]
    expected = collections.Counter()
    for row in everybody:
        expected[f'nacre_executions_by_risk_total{{risk="{row["risk"]}"}}'] += row["risk"] is not None
        expected[f'nacre_executions_total{{language="{row["language"]}",tier="{row["tier"] or "none"}",status="{row["status"]}"}}'] += 1
    for row in rows:
        expected[f'nacre_execution_duration_seconds_count{{language="{row["language"]}"}}'] += 1
        expected["nacre_execution_memory_peak_bytes_count"] += row["tier"] is not None
        expected["nacre_execution_memory_peak_bytes_sum"] += row["memory_peak_bytes"]
        expected["nacre_execution_cpu_seconds_total"] += row["cpu_seconds"]
        expected[f'nacre_execution_duration_seconds_sum{{language="{row["language"]}"}}'] += row["wall_seconds"]
    for line in lines:
        expected[f'nacre_commands_total{{status="{line["status"]}"}}'] += 1
        expected[f'nacre_commands_by_risk_total{{risk="{line["risk"]}"}}'] += 1
    for usage in used:
        expected["nacre_command_memory_peak_bytes_count"] += 1
        expected["nacre_command_memory_peak_bytes_sum"] += usage["memory_peak_bytes"]
        expected["nacre_command_cpu_seconds_total"] += cpu(usage)
        expected["nacre_command_duration_seconds_sum"] += usage["wall_seconds"]
        expected["nacre_command_output_bytes_total"] += usage["output_bytes"]
    for told in [entry["reply"] for entry in ended if entry["reply"] and entry["kind"] == "execution" and not entry["reply"]["cached"]] + lines:
        for denial in told["denials"]:
            expected[f'nacre_denials_total{{rule="{denial["rule"]}",layer="{denial["layer"]}"}}'] += 1
        for alert in told["alerts"]:
            expected[f'nacre_threats_total{{signal="{alert["id"]}"}}'] += 1
    if era == "second":  # what died with its daemon is counted by the next one
        lost = [row_of(found, entry) for entry in books.entries.values() if entry["what"] == "lost"]
        expected['nacre_executions_total{language="none",tier="none",status="lost"}'] += sum("started" not in row for row in lost)
    names = tuple({name.partition("{")[0] for name in expected})
    counted = {name: value for name, value in found[era].items() if name.partition("{")[0] in names}
    wrong = {name: (expected[name], counted.get(name, 0)) for name in {*expected, *counted} if abs(expected[name] - counted.get(name, 0)) > 0.0005}
    assert len(rows) + len(lines) > 100 and not wrong, wrong


def test_security_lines(books):
    """Whoever was refused something, or was noticed, has one line of kind security, and nobody else."""
    books, found = books
    security = [entry["body"] for entry in found["journal"] if entry["kind"] == "security" and "id" in entry.get("body", {})]
    told = [(line["id"], line) for lines in found["lines"].values() for line in lines]
    told += [(row_of(found, entry)["id"], entry["reply"]) for entry in books.entries.values() if entry["kind"] == "execution" and entry["reply"]]
    expected = {name: (one["denials"], one["alerts"]) for name, one in told if one["denials"] or one["alerts"] or one["status"] == "blocked"}
    assert max(collections.Counter(body["id"] for body in security).values()) == 1
    silent = [entry for entry in books.entries.values() if entry["what"].startswith("struck") and not entry["reply"]]  # of what nobody was told there may be one
    silent = {row_of(found, entry)["id"] for entry in silent if row_of(found, entry)}
    found = {body["id"]: (body["denials"], body["alerts"]) for body in security if body["id"] not in silent}
    assert len(expected) > 100
    assert found == expected, [(name, found.get(name), expected.get(name)) for name in {*found, *expected} if found.get(name) != expected.get(name)][:3]


def kernel_bill(deaths):
    """What the spawner, who has it from the kernel, told the recorder of one execution (docs/requests.md)."""
    programs = [death for death in deaths if "of" not in death]
    timed = programs + [death for death in deaths if "of" in death and (not programs or death["cause"] or death["exit_code"] or death["signal"])]
    return {"cpu": sum(death["cpu_us"] for death in deaths) / 1e6, "wall": sum(death["wall_ns"] for death in timed) / 1e9,
            "memory": max(death["memory_peak_bytes"] for death in deaths)}


def is_unborn(entry):
    """Whether its program may never have been born, of which the spawner does not tell."""
    return entry["what"] in ("ended at once", "cancelled at once", "cancelled starting") or entry["what"].startswith("struck")


def is_last_known(found, entry):
    """Whether its daemon has told that it is lost, which it does when the spawner is killed: that bears no witness, and what it said last is the bill."""
    row = row_of(found, entry)
    return row["status"] == "lost" and found["ends"][row["id"], "finish"] > 0


def but_for_one(wrong):
    """The recorder may have died between reading a line of the spawner and writing it, and nobody tells it again (docs/processes.md)."""
    return wrong if len(wrong) > 1 or [entry for entry in wrong if entry[1] != "second"] else []


def test_the_kernel_agrees_with_executions(books):
    """CPU time, time and memory, and each refused call."""
    books, found = books
    wrong, seen = [], 0
    for entry in books.entries.values():
        written, reply = bill(found, entry), entry["reply"]
        if entry["kind"] != "execution" or not written or is_last_known(found, entry):
            continue
        deaths = found["deaths"][row_of(found, entry)["id"]]
        if reply and reply["cached"]:
            assert not deaths and entry["what"] == "cached"
            continue
        if not deaths:
            if not is_unborn(entry):
                wrong.append((entry["what"], entry["era"], written))
            continue
        told = kernel_bill(deaths)
        if {key: round(written[key], 5) for key in told} != {key: round(value, 5) for key, value in told.items()}:
            wrong.append((entry["what"], entry["era"], written, told))
        if reply and refusals(reply["denials"]) != refusals([denial for death in deaths[-1:] for denial in death.get("denials", [])]):
            wrong.append((entry["what"], entry["era"], reply["denials"], deaths))
        seen += 1
    assert seen > 350 and not but_for_one(wrong), (seen, len(wrong), wrong[:5])


def test_the_kernel_agrees_with_commands(books):
    books, found = books
    witness, wrong = found["witness"].copy(), []
    for entry in books.entries.values():
        written = bill(found, entry)
        if entry["kind"] != "command" or not written:
            continue
        line = found["lines"][entry["name"]][0]
        if line["status"] == "lost":
            continue  # with its spawner
        key = round(written["wall"] * 1e9), round(written["cpu"] * 1e6), written["memory"], refusals(line["denials"])
        if witness[key] == 0 and not is_unborn(entry):
            wrong.append((entry["what"], entry["era"], written))
        witness[key] -= 1
    assert not but_for_one(wrong), (len(wrong), wrong[:5])


def test_whoever_was_ended_has_a_bill(books):
    """They had burnt CPU time by then, but for one that had not begun yet on a busy machine: of that nobody was told."""
    books, found = books
    ended = [entry for entry in books.entries.values() if entry["kind"] == "execution" and
             entry["what"] in ("cancelled running", "cancelled compiling", "cancelled later step", "hung up", "lost", "drained", "alerted", "burner")]
    poor = [(entry["what"], row_of(found, entry)) for entry in ended if (bill(found, entry) or {"cpu": 0})["cpu"] < 0.001]
    wrong = [(what, row) for what, row in poor if found["deaths"][row["id"]] or what in ("lost", "drained", "alerted", "burner")]
    assert len(ended) > 80 and len(poor) < 10 and not wrong, (len(poor), wrong[:3])
    assert {row_of(found, entry)["status"] for entry in ended if entry["what"] == "drained"} == {"cancelled"}


def test_bills_of_commands_that_were_ended(books):
    books, found = books
    ended = [entry for entry in books.entries.values() if entry["kind"] == "command" and
             entry["what"] in ("ended running", "ended signalled", "ended hung up", "destroyed", "aged", "paused", "drained", "ends")]
    wrong = [(entry["what"], entry["era"]) for entry in ended if not bill(found, entry) or bill(found, entry)["cpu"] < 0.001]
    assert len(ended) > 40 and not wrong, wrong


def test_the_group_of_a_sandbox_agrees(tmp_path):
    """What the group that holds all of its commands has used is what they are billed, to the millisecond each."""
    with Daemon(tmp_path) as daemon:
        box = Sandbox(daemon)
        commands = [command for command, more, _ in COMMANDS.values() if not more] * 2
        before, billed = box.ask("GET", "/stats").json()["cpu_seconds"], 0
        for command in commands:
            billed += cpu(box.run(command).get("usage", {"cpu_user_seconds": 0, "cpu_system_seconds": 0}))
        used = box.ask("GET", "/stats").json()["cpu_seconds"] - before
        assert billed > 0.1 and abs(used - billed) < 0.001 * len(commands), (used, billed)


def files_of_group(pid):
    """What the kernel's own files say of the box of a process: CPU time in seconds, and the most memory."""
    groups = {}
    for line in open(f"/proc/{pid}/cgroup"):
        _, names, path = line.strip().split(":", 2)
        groups.update({name: path for name in names.split(",")})
    mounts = {}
    for line in open("/proc/mounts"):
        _, place, kind, options, _, _ = line.split()
        if kind in ("cgroup", "cgroup2"):
            mounts.update({name: place for name in (options.split(",") if kind == "cgroup" else [""])})

    def file(controller, name):
        return pathlib.Path(mounts[controller] + groups[controller]) / name
    if groups.get("cpuacct", "/") != "/":
        cpu_seconds = int(file("cpuacct", "cpuacct.usage").read_text()) / 1e9
    else:
        cpu_seconds = int(file("", "cpu.stat").read_text().split()[1]) / 1e6
    memory = file("memory", "memory.max_usage_in_bytes") if "memory" in mounts else file("", "memory.peak")
    return cpu_seconds, int(memory.read_text()) if memory.exists() else None


def pid_of(mark):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = subprocess.run(["pgrep", "-xf", f"sleep {mark}"], capture_output=True, text=True).stdout.split()
        if found:
            time.sleep(0.1)  # whoever waits for it has done so
            return int(found[0])
        time.sleep(0.02)
    raise AssertionError(mark)


ENDS = ("cancelled", "hung up", "timeout", "killed", "daemon killed", "drained")


def test_the_kernel_s_files_agree(tmp_path, as_root):
    """Read from outside, while the program sleeps: what it has used by then is what it is billed, whatever ends it. To the millisecond."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "serve.yaml").write_text("drain_seconds: 0\n")
    seen, body = {}, {}
    with Daemon(tmp_path, config=tmp_path / "config") as daemon:
        box = Sandbox(daemon)
        for number, end in enumerate(ENDS):
            for kind in ("execution", "command"):
                if (kind, end) == ("command", "daemon killed"):
                    continue  # those go on
                mark = f"{4730 + number}.{len(kind)}"
                text = f"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep {mark}; true"
                more = {"timeout": 1.5} if end == "timeout" else {}
                path, body = ("/v1/execute", {"language": "shell", "code": text, "id": f"k{mark}", **more}) if kind == "execution" else \
                    (box.path("/commands"), {"command": text, **more})
                data = json.dumps(body).encode()
                client = daemon.connect()
                client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
                pid = pid_of(mark)
                seen[kind, end] = mark, *files_of_group(pid)
                if end == "cancelled":
                    if kind == "execution":
                        daemon.ask("DELETE", f"/v1/jobs/k{mark}")
                    else:
                        daemon.ask("DELETE", box.path(f"/commands/{box.ask('GET', '/commands').json()['commands'][-1]['id']}"))
                elif end == "killed":
                    os.kill(int(re.search(r"^PPid:\t(\d+)", open(f"/proc/{pid}/status").read(), re.M).group(1)), signal.SIGKILL)
                elif end == "daemon killed":
                    daemon.die()
                elif end == "drained" and kind == "command":
                    os.kill(daemon.pid, signal.SIGTERM)
                    assert daemon.process.wait(timeout=30) == 0
                if end not in ("hung up", "drained"):
                    while daemon.process.poll() is None and os.path.exists(f"/proc/{pid}"):
                        time.sleep(0.02)
                if end != "drained":
                    client.close()
    with Daemon(tmp_path, config=tmp_path / "config") as daemon:
        rows = {row["request_id"]: row for row in daemon.get("/v1/history").json()["executions"]}
    lines = {line["body"]["command"]: line["body"] for line in journal(daemon) if line["event"] == "sandbox.command"}
    wrong = {}
    for (kind, end), (mark, cpu_seconds, memory) in seen.items():
        row = rows.get(f"k{mark}")
        line = next((line for command, line in lines.items() if f"sleep {mark};" in command), None)
        found = (row["status"], row["cpu_seconds"], row["memory_peak_bytes"]) if row else (line["status"], cpu(line["usage"]), line["usage"]["memory_peak_bytes"])
        status = {"hung up": "cancelled", "drained": "cancelled", "daemon killed": "lost"}.get(end, end)
        if found[0] != status or abs(found[1] - cpu_seconds) > 0.001 or memory not in (None, found[2]):
            wrong[kind, end] = found, (status, cpu_seconds, memory)
    assert len(seen) == 11 and not wrong, wrong


def test_quotas_are_the_sum(books):
    """Let in while the bills come to less than the quota, refused from then on."""
    for tenant, steps in books[1]["quota"].items():
        assert steps[-1][1] == 429 and steps[-1][0] <= 0.0005, (tenant, steps)
        assert all(status == 200 and left > -0.0005 for left, status in steps[:-1]), (tenant, steps)
