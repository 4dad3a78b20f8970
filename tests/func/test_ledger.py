"""The books: about 500 executions and commands of all kinds and ends, by two tenants, with daemon, spawner and recorder killed in between.

Then replies, history, journal, metrics, quotas and what the spawner has read from the kernel agree, with nothing missing and nothing twice."""

import collections
import concurrent.futures
import json
import os
import random
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
THREADS = 4

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
}


class Books:
    """Who asked for what, and was told what."""

    def __init__(self, daemon, keys):
        self.daemon, self.keys, self.lock = daemon, keys, threading.Lock()
        self.entries, self.boxes, self.faults, self.dark = {}, {}, [], []
        self.random = random.Random(19)

    def new(self, kind, tenant, what):
        with self.lock:
            name = f"n{len(self.entries):04}"
            self.entries[name] = entry = {"name": name, "kind": kind, "tenant": tenant, "what": what, "reply": None, "began": time.monotonic(), "era": None}
        return entry

    def ask(self, method, path, body, tenant):
        """Until somebody takes it: what is refused since one of the processes is away did not begin."""
        until = time.monotonic() + 30
        while True:
            try:
                answer = self.daemon.ask(method, path, body, key=self.keys[tenant])
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
        return {"id": entry["name"], "language": language, "code": code, **more}

    def settle(self, entry, reply, expected):
        entry["reply"], entry["ended"] = reply, time.monotonic()
        if reply["status"] not in expected.split():
            self.fault("status", entry["what"], reply["status"], reply.get("error"))

    def execution(self, tenant, what):
        code, language, more, expected = EXECUTIONS[what]
        entry = self.new("execution", tenant, what)
        how = self.random.choice(("wait", "wait", "job", "events"))
        body = self.request(entry, code, language, more)
        if how == "wait":
            answer = self.ask("POST", "/v1/execute", body, tenant)
            reply = answer.json()
        elif how == "job":
            job = self.ask("POST", "/v1/jobs", body, tenant).json()["id"]
            reply = self.ask("GET", f"/v1/jobs/{job}/wait", None, tenant).json()["reply"]
        else:
            answer = self.ask("POST", "/v1/execute", {**body, "stream": True}, tenant)
            reply = events_of(answer.body)[-1][2]
        self.settle(entry, reply, expected)

    def cancelled(self, tenant, stage):
        """Cancelled as soon as it is known, while it runs, or behind its end."""
        entry = self.new("execution", tenant, f"cancelled {stage}")
        code = "while :; do :; done" if stage != "behind" else "true"
        job = self.ask("POST", "/v1/jobs", self.request(entry, code, "shell", {}), tenant).json()["id"]
        if stage == "behind":
            self.ask("GET", f"/v1/jobs/{job}/wait", None, tenant)
        time.sleep({"at once": 0, "starting": 0.02, "running": 0.6, "behind": 0}[stage])
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

    def box(self, tenant):
        with self.lock:
            if tenant not in self.boxes:
                answer = self.ask("POST", "/v1/sandboxes", {"timeout": 600, "limits": {"memory_mb": 96, "disk_mb": 32}}, tenant)
                assert answer.status == 201, answer.body
                self.boxes[tenant] = f"/v1/sandboxes/{answer.json()['id']}"
            return self.boxes[tenant]

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
        with self.lock:
            if ("strict", tenant) not in self.boxes:
                self.boxes["strict", tenant] = "/v1/sandboxes/" + self.ask("POST", "/v1/sandboxes", {"policy": "strict", "timeout": 600}, tenant).json()["id"]
        answer = self.ask("POST", f"{self.boxes['strict', tenant]}/commands", {"command": f": {entry['name']}; curl https://example.com | sh"}, tenant)
        entry["ended"] = time.monotonic()
        if answer.status != 403:
            self.fault("status", "refused", answer.status, answer.body)

    def burnt_box(self, tenant):
        """A sandbox that goes with a command that burns in it."""
        entry = self.new("command", tenant, "destroyed")
        box = "/v1/sandboxes/" + self.ask("POST", "/v1/sandboxes", {}, tenant).json()["id"]
        self.ask("POST", f"{box}/commands", {"command": self.marked(entry, "while :; do :; done"), "background": True}, tenant)
        time.sleep(0.4)
        self.ask("DELETE", box, None, tenant)
        entry["ended"] = time.monotonic()

    # ---- load

    def load(self, rounds, meanwhile=None):
        calls = []
        for tenant in TENANTS:
            for _ in range(rounds):
                calls += [(self.execution, tenant, what) for what in EXECUTIONS] + [(self.command, tenant, what) for what in COMMANDS]
                calls += [(self.cancelled, tenant, stage) for stage in ("at once", "starting", "running", "behind")]
                calls += [(self.ended_command, tenant, how) for how in ("at once", "running", "signalled", "hung up")]
                calls += [(self.gone, tenant), (self.refused_command, tenant), (self.burnt_box, tenant)]
        self.random.shuffle(calls)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            waiting = [pool.submit(*call) for call in calls]
            if meanwhile:
                meanwhile(waiting)
            for one in waiting:
                one.result(120)

    def running(self, tenant):
        """What runs while somebody is killed."""
        body = {"language": "shell", "code": "while :; do :; done", "timeout": 60}
        entry = self.new("execution", tenant, "lost")
        self.ask("POST", "/v1/jobs", {**body, "id": entry["name"]}, tenant)
        entry = self.new("command", tenant, "survives")
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
        began = time.monotonic()
        victim, = recorders(books.daemon)
        os.kill(victim, signal.SIGKILL)
        while recorders(books.daemon) in ([], [victim]) or metrics(books.daemon, books.keys["boss"])['nacre_aide_up{aide="recorder"}'] != 1:
            time.sleep(0.05)
        books.dark.append((began - 0.5, time.monotonic() + 0.5))
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
                         bill(found, entry)) for tenant in TENANTS}
    limit = {tenant: int(spent[tenant]) + 1 for tenant in TENANTS}
    text = "".join(f"  {tenant}: {{cpu_seconds_per_hour: {limit[tenant]}}}\n" for tenant in TENANTS)
    open(f"{config}/serve.yaml", "w").write(f"tenants:\n{text}")
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
    """Its end in the history. One that was open when the recorder was killed is lost to that, and ends with the next (docs/processes.md)."""
    rows = found["rows"].get(entry["name"], [None])
    return next((row for row in rows if row and row["status"] != "lost"), rows[0])


def bill(found, entry):
    """What the daemon has written down of it: the one form for both."""
    row = row_of(found, entry)
    line = found["lines"].get(entry["name"], [None])[-1]
    if row and row["tier"] and "cpu_seconds" in row:  # one that is lost before it began has none
        return {"status": row["status"], "cpu": row["cpu_seconds"], "wall": row["wall_seconds"], "memory": row["memory_peak_bytes"]}
    if line and "usage" in line:
        usage = line["usage"]
        return {"status": line["status"], "cpu": cpu(usage), "wall": usage["wall_seconds"], "memory": usage["memory_peak_bytes"]}
    return None


def sort_lines(found, entries):
    """The journal by the names that we gave."""
    found["lines"], found["ends"], found["witness"] = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for entry in found["journal"]:
        body = entry.get("body", {})
        if entry["event"] == "sandbox.command":
            text = body["command"] if isinstance(body["command"], str) else body["command"][-1]
            found["lines"][text.partition(": ")[2].partition(";")[0] if isinstance(body["command"], str) else text].append(body)
        elif entry["kind"] == "execution" and entry["event"] in ("finish", "lost"):
            found["ends"][entry["id"], entry["event"]] += 1
        elif entry["from"] == "spawner" and entry["event"] == "died":
            found["witness"][body["wall_ns"], body["cpu_us"], body["memory_peak_bytes"]] += 1
    assert set(found["lines"]) <= set(entries)


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    home = tmp_path_factory.mktemp("ledger")
    (home / "config").mkdir()
    (home / "config" / "serve.yaml").write_text("")
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
        rows = books.history()
        found["rows"] = collections.defaultdict(list)
        for row in rows:
            found["rows"][row["request_id"]].append(row)
        found["journal"] = journal(daemon)
        sort_lines(found, books.entries)
        found["quota"] = spend_to_the_last_second(books, found)
        found["verify"] = daemon.get("/v1/audit/verify", key=keys["boss"]).json()
    assert len(books.entries) >= 500 and daemon.code == 0
    return books, found


def test_each_ended_as_it_should(books):
    assert not books[0].faults, books[0].faults[:10]


def test_nothing_is_missing_and_nothing_is_twice(books):
    """Each execution is in the history once, each command in the journal once; nothing else is."""
    books, found = books
    wrong = []
    for name, entry in books.entries.items():
        rows, lines = found["rows"].get(name, []), found["lines"].get(name, [])
        if len(rows) == 2 and in_the_dark(books, entry):
            rows = [row for row in rows if row["status"] != "lost"]
        if (len(rows), len(lines)) != ((1, 0) if entry["kind"] == "execution" else (0, 1)):
            wrong.append((name, entry["what"], entry["era"], len(rows), [line["status"] for line in lines]))
    assert not wrong, (len(wrong), wrong[:10])
    twice = {key: n for key, n in found["ends"].items() if n > 1}
    assert not twice and found["verify"]["ok"], (twice, found["verify"])


def in_the_dark(books, entry):
    """Whether it ran while the recorder was away, which the spawner does not wait for."""
    return any(entry["began"] < end and entry.get("ended", end) > begin for begin, end in books.dark)


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
    rows = [row_of(found, entry) for entry in ended if entry["kind"] == "execution"]
    lines = [found["lines"][entry["name"]][-1] for entry in ended if entry["kind"] == "command"]
    used = [line["usage"] for line in lines if "usage" in line]
    expected = collections.Counter()
    for row in rows:
        expected[f'nacre_executions_total{{language="{row["language"]}",tier="{row["tier"] or "none"}",status="{row["status"]}"}}'] += 1
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
    for told in [entry["reply"] for entry in ended if entry["reply"] and entry["kind"] == "execution"] + lines:
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
    security = collections.Counter(entry["body"]["id"] for entry in found["journal"] if entry["kind"] == "security" and "id" in entry.get("body", {}))
    expected = {line["id"] for lines in found["lines"].values() for line in lines if line["denials"] or line["alerts"] or line["status"] == "blocked"}
    for entry in books.entries.values():
        reply = entry["reply"]
        if entry["kind"] == "execution" and reply and (reply["denials"] or reply["alerts"] or reply["status"] == "blocked"):
            expected.add(row_of(found, entry)["id"])
    assert len(expected) > 30 and security == collections.Counter(expected), (set(security) ^ expected, security.most_common(2))


def unseen(books, found, wanted):
    """Those whose bill the spawner, who has it from the kernel, did not tell the recorder."""
    witness, wrong = found["witness"].copy(), []
    for entry in books.entries.values():
        written = bill(found, entry)
        if not written or not wanted(entry) or in_the_dark(books, entry) or entry["what"] == "brings":
            continue
        if entry["what"] == "lost" and "started" in row_of(found, entry):
            continue  # the spawner itself has died: the daemon says what it was told last
        key = round(written["wall"] * 1e9), round(written["cpu"] * 1e6), written["memory"]
        if witness[key] == 0 and entry["what"] in ("ended at once", "cancelled at once", "cancelled starting"):
            continue  # its program was never born, which is what the spawner tells of
        if witness[key] == 0:
            wrong.append((entry["what"], entry["era"], written))
        witness[key] -= 1
    return wrong


def is_cancelled(entry):
    return entry["kind"] == "execution" and entry["what"] in ("cancelled at once", "cancelled starting", "cancelled running", "hung up", "lost")


def is_last_known(found, entry):
    """Whether its daemon has told that it is lost, which it does when the spawner is killed: that bears no witness, and what it said last is the bill."""
    row = row_of(found, entry)
    return row["status"] == "lost" and found["ends"][row["id"], "finish"] > 0


def test_the_kernel_agrees(books):
    wrong = unseen(*books, lambda entry: not is_cancelled(entry))
    assert not wrong, (len(wrong), wrong[:5])


def test_the_bills_of_cancelled_executions(books):
    """Whoever had run for a while has burnt CPU time by then."""
    both, found = books
    wrong = [entry["what"] for entry in both.entries.values() if entry["what"] == "cancelled running" and
             (bill(found, entry) or {"cpu": 0})["cpu"] < 0.001]
    missing = unseen(both, found, lambda entry: is_cancelled(entry) and not is_last_known(found, entry))
    assert not wrong and not missing, (wrong, missing)


def test_bills_of_commands_that_were_ended(books):
    books, found = books
    ended = [entry for entry in books.entries.values() if entry["what"] in ("ended running", "ended signalled", "ended hung up", "destroyed")]
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


def test_quotas_are_the_sum(books):
    """Let in while the bills come to less than the quota, refused from then on."""
    for tenant, steps in books[1]["quota"].items():
        assert steps[-1][1] == 429 and steps[-1][0] <= 0.0005, (tenant, steps)
        assert all(status == 200 and left > -0.0005 for left, status in steps[:-1]), (tenant, steps)
