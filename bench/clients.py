#!/usr/bin/env python3
"""What the clients cost: a warm hello by raw HTTP and by each client, in turn in one run, and how long the import takes.

    bench/clients.py [BUILD [ROUNDS]]

Bars: Python at most 0.4 ms above raw HTTP, TypeScript 0.6 ms (p50); importing the Python client below 30 ms; both packages below
60 KiB."""

import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
CALLS = 40
os.environ["NACRE_BUILD"] = str(BUILD)
sys.path[:0] = [str(ROOT / "tests/func"), str(ROOT / "clients/python/src")]

from serving import Daemon  # noqa: E402

HELLO = {"code": "print('hi')", "language": "python"}
# measures both in one process, so that the interpreter of JavaScript does not count; a line of medians for each line that it is told
NODE = """
import http from 'node:http';
import readline from 'node:readline';
import { Client } from '%s/clients/typescript/nacre.js';
const [port, calls] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, noDelay: true });
const body = Buffer.from(JSON.stringify(%s));
const raw = () => new Promise((resolve, reject) => {
  const request = http.request({ agent, port, method: 'POST', path: '/v1/execute', headers: { 'Content-Type': 'application/json', 'Content-Length': body.length } }, async (reply) => {
    const pieces = [];
    for await (const piece of reply) pieces.push(piece);
    resolve(JSON.parse(Buffer.concat(pieces).toString()));
  });
  request.on('error', reject);
  request.end(body);
});
const client = new Client({ url: `http://127.0.0.1:${port}` });
const ours = () => client.run("print('hi')", { language: 'python' });
const times = async (call) => {
  const found = [];
  for (let i = 0; i < calls; i++) {
    const began = process.hrtime.bigint();
    if ((await call()).output !== 'hi\\n') throw new Error('it failed');
    found.push(Number(process.hrtime.bigint() - began) / 1e6);
  }
  return found.sort((a, b) => a - b)[calls >> 1];
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const order = line === 'raw' ? ['raw', 'ours'] : ['ours', 'raw'];
  const found = {};
  for (const which of order) found[which] = await times(which === 'raw' ? raw : ours);
  console.log(`${found.raw} ${found.ours}`);
}
process.exit(0);
""" % (ROOT, json.dumps(HELLO))


def median_of(call):
    found = []
    for _ in range(CALLS):
        began = time.perf_counter()
        assert call() == "hi\n"
        found.append((time.perf_counter() - began) * 1000)
    return statistics.median(found)


def python_calls(port):
    import nacre
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps(HELLO)

    def raw():
        connection.request("POST", "/v1/execute", body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())["output"]

    client = nacre.Client(f"http://127.0.0.1:{port}")
    return raw, lambda: client.run(HELLO["code"], "python").output


def import_ms():
    """Over an interpreter that imports nothing, the median of some."""
    found = {}
    for name, line in (("bare", "pass"), ("nacre", "import nacre")) * 15:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", line], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src")})
        found.setdefault(name, []).append((time.perf_counter() - began) * 1000)
    return statistics.median(found["nacre"]) - statistics.median(found["bare"])


def main():
    rows = {"Python": [], "TypeScript": []}
    with tempfile.TemporaryDirectory() as home, Daemon(home, respawn=True) as daemon:
        raw, ours = python_calls(daemon.port)
        script = pathlib.Path(home) / "measure.mjs"
        script.write_text(NODE)
        node = subprocess.Popen(["node", script, str(daemon.port), str(CALLS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(ROUNDS + 2):
            pair = {}
            for which in ("raw", "ours") if n % 2 else ("ours", "raw"):
                pair[which] = median_of(raw if which == "raw" else ours)
            node.stdin.write("raw\n" if n % 2 else "ours\n")
            node.stdin.flush()
            there = [float(word) for word in node.stdout.readline().split()]
            if n >= 2:  # the first ones warm up
                rows["Python"].append((pair["raw"], pair["ours"]))
                rows["TypeScript"].append(tuple(there))
        node.stdin.close()
        node.wait(30)
    print("| client | raw HTTP, ms | client, ms | above it, ms (median, quartiles) | bar |\n|---|---|---|---|---|")
    for name, bar in (("Python", 0.4), ("TypeScript", 0.6)):
        above = [b - a for a, b in rows[name]]
        low, middle, high = statistics.quantiles(above, n=4)
        print(f"| {name} | {statistics.median(a for a, _ in rows[name]):.2f} | {statistics.median(b for _, b in rows[name]):.2f} | {middle:.2f} ({low:.2f} to {high:.2f}) | {bar} |")
    sizes = {"Python": [*(ROOT / "clients/python/src/nacre").glob("*.py")],
             "TypeScript": [ROOT / "clients/typescript" / name for name in json.loads((ROOT / "clients/typescript/package.json").read_text())["files"]]}
    for name, files in sizes.items():
        print(f"{name}: {sum(path.stat().st_size for path in files) / 1024:.1f} KiB (bar 60)")
    print(f"import nacre: {import_ms():.1f} ms (bar 30)")


main()
