"""nacre serve: answers per second to a trivial request with a key, beside nginx with a static file. Usage: bench/serve.py BUILD [--idle]

The same generator (wrk, one thread) asks both in turn, several times; each runs with one worker, without a log per request. Needs
Debian's nginx-light and wrk. Memory is that of all processes of an idle daemon after some work (PSS, so that what they share counts
once): with nothing kept ready, also with those who tell webhooks and collectors, and with interpreters and boxes that wait.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from measuring import memory

BUILD = pathlib.Path(sys.argv[1]).resolve()
os.environ["NACRE_BUILD"] = str(BUILD)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/func"))

from serving import Daemon  # noqa: E402

ROUNDS, SECONDS = 5, 4
NGINX = """
daemon off; worker_processes 1; pid {home}/pid; error_log {home}/error.log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 10000000; types {{ application/json json; }}
  client_body_temp_path {home}/1; proxy_temp_path {home}/2; fastcgi_temp_path {home}/3; uwsgi_temp_path {home}/4; scgi_temp_path {home}/5;
  server {{ listen 127.0.0.1:{port}; root {home}/html; }} }}
"""


def load(url, connections, *headers):
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}", *(part for header in headers for part in ("-H", header)), url],
                         capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in out and "Socket errors" not in out, out
    return float(re.search(r"Requests/sec: +([\d.]+)", out).group(1))


def measure_idle(title, home, serve):
    (home / "config/serve.yaml").write_text(serve)
    with Daemon(home, config=home / "config", respawn=True) as daemon:
        for _ in range(5):
            daemon.execute("print(1)")
        daemon.get("/v1/history")
        time.sleep(8)
        found = memory(daemon.process.pid)
    print(f"| {title} | {sum(found.values())} | {', '.join(f'{name} {size}' for name, size in found.most_common())} |", flush=True)


def compare(daemon, home):
    key = daemon.key("--role", "read")
    port = daemon.port + 1 if daemon.port < 65535 else daemon.port - 1
    (home / "html").mkdir()
    (home / "html/version.json").write_bytes(daemon.get("/v1/version", key=key).body)
    (home / "nginx.conf").write_text(NGINX.format(home=home, port=port))
    nginx = subprocess.Popen(["nginx", "-c", f"{home}/nginx.conf"], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    print("| connections | nacre /s | nginx /s | ratio |\n|---|---|---|---|")
    try:
        for connections in (8, 64):
            ours, theirs = [], []
            for _ in range(ROUNDS):
                theirs.append(load(f"http://127.0.0.1:{port}/version.json", connections))
                ours.append(load(f"http://127.0.0.1:{daemon.port}/v1/version", connections, f"Authorization: Bearer {key}"))
            a, b = statistics.median(ours), statistics.median(theirs)
            print(f"| {connections} | {a:.0f} | {b:.0f} | {a / b:.2f} |", flush=True)
    finally:
        nginx.terminate()
        nginx.wait()


with tempfile.TemporaryDirectory() as home:
    home = pathlib.Path(home)
    home.chmod(0o755)
    (home / "config").mkdir()
    print("| idle | KiB | of which |\n|---|---|---|")
    measure_idle("nothing kept ready", home, "warm: nothing\n")
    measure_idle("the same, with webhooks and traces", home,
                 "warm: nothing\nwebhooks: [http://127.0.0.1:9/]\ntracing: {endpoint: http://127.0.0.1:9/}\n")
    measure_idle("as it is built in", home, "")
    print()
    (home / "config/nacre.yaml").write_text("log:\n  level: warning\n")
    with Daemon(home, config=home / "config", quiet=True) as daemon:
        if "--idle" not in sys.argv:
            compare(daemon, home)
