"""What benchmarks of `nacre serve` share: a client, times, rates, and the memory of a tree of processes."""

import collections
import concurrent.futures
import http.client
import json
import pathlib
import subprocess
import time


class Client:
    """One connection that stays."""

    def __init__(self, daemon, key=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, method, path, body=None):
        """The reply to a request that must succeed."""
        headers = {**self.headers, **({"Content-Type": "application/json"} if body is not None else {})}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        text = response.read()
        assert response.status < 300, (response.status, text)
        return json.loads(text) if text else None

    def execute(self, code, language="python"):
        reply = self.ask("POST", "/v1/execute", {"code": code, "language": language})
        assert reply["status"] == "success", reply
        return reply


def timed(call, *words):
    start = time.perf_counter()
    call(*words)
    return (time.perf_counter() - start) * 1000


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def rate(work, seconds, workers=8):
    """Calls per second by so many threads."""
    end = time.monotonic() + seconds

    def loop(make):
        call, n = make(), 0
        while time.monotonic() < end:
            call()
            n += 1
        return n

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(loop, [work] * workers)) / seconds


def memory(pid):
    """KiB of a process and all below it, by name (PSS: what they share counts once)."""
    found = collections.Counter()
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Pss:"):
            found[pathlib.Path(f"/proc/{pid}/comm").read_text().strip()] += int(line.split()[1])
    for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
        found += memory(int(child))
    return found
