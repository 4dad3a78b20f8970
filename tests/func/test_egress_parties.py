"""The door with real parties: programs in a network without any way out but the door, and hosts that they know."""

import contextlib
import functools
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import zipfile

import pytest

from conftest import BUILD
from egresswire import Egress, Host, answer, inner, listen, ok, rule, secret
from test_egress import in_network, network

DOOR = "http://127.0.0.1:888"
NOT_FOR_DOOR = "localhost,127.0.0.1,::1"


def variables():
    """What nc_egress_variables() gives; test-egress-client.c holds it against this list."""
    names = ("http_proxy", "https_proxy", "all_proxy")
    return {**{name: DOOR for name in names}, **{name.upper(): DOOR for name in names},
            "no_proxy": NOT_FOR_DOOR, "NO_PROXY": NOT_FOR_DOOR, "npm_config_proxy": DOOR, "npm_config_https_proxy": DOOR,
            "npm_config_noproxy": NOT_FOR_DOOR, "PIP_PROXY": DOOR, "NODE_USE_ENV_PROXY": "1"}


class Box:
    """A network with a loopback and a door, and nothing else."""

    def __init__(self, path, egress):
        self.path, self.egress = path, egress

    def open(self, **terms):
        return self.egress.open(listener=in_network(self.path, lambda: listen(port=888)), **terms)

    def run(self, *command, env=None, timeout=120, **options):
        return subprocess.run(["nsenter", f"--net={self.path}", *map(str, command)], capture_output=True, text=True,
                              timeout=timeout, env={"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), **variables(), **(env or {})},
                              **options)


@pytest.fixture
def box(as_root):
    with tempfile.NamedTemporaryFile("w", prefix="nacre-hosts-") as hosts, network("box") as path:
        hosts.write("127.0.0.1 good.test other.test\n")
        hosts.flush()
        os.chmod(hosts.name, 0o644)
        egress = Egress(hosts=hosts.name).hello()
        yield Box(path, egress)
        assert egress.close() == (0, "")


@pytest.fixture
def web():
    host = Host(answer(ok(b"hello")))
    yield host
    host.close()


@contextlib.contextmanager
def files_over_http(directory):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    handler.log_message = lambda *args: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_there_is_no_other_way_out(box, web):
    box.open(rules=inner(f"good.test:{web.port}"))
    program = """
import errno, socket, sys
port = int(sys.argv[1])
for kind, protocol in ((socket.SOCK_STREAM, 0), (socket.SOCK_STREAM, 262), (socket.SOCK_DGRAM, 0)):
    for address in ("93.184.216.34", "169.254.169.254", "10.0.0.1"):
        s = socket.socket(socket.AF_INET, kind, protocol)
        try:
            s.connect((address, port))
            print("connected", kind, protocol, address)
        except OSError as error:
            assert error.errno == errno.ENETUNREACH, error
s = socket.socket()
try:
    s.connect(("127.0.0.1", port))
    print("connected to the host's loopback")
except ConnectionRefusedError:
    pass
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).sendto(b"x" * 8, ("93.184.216.34", 0))
    print("sent a raw packet")
except OSError as error:
    assert error.errno in (errno.ENETUNREACH, errno.EPERM), error
try:
    print("resolved", socket.getaddrinfo("example.org", 80))
except socket.gaierror:
    pass
"""
    done = box.run("/usr/bin/python3", "-c", program, web.port)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not web.seen


def test_curl(box, web):
    box.open(rules=inner(f"good.test:{web.port}"))
    assert box.run("curl", "-sS", f"http://good.test:{web.port}/").stdout == "hello"
    assert box.run("curl", "-sS", "-p", f"http://good.test:{web.port}/").stdout == "hello"  # a tunnel
    assert box.run("curl", "-sS", "-x", "socks5h://127.0.0.1:888", f"http://good.test:{web.port}/").stdout == "hello"
    told = box.run("curl", "-sS", f"http://other.test:{web.port}/").stdout
    assert '"error":"network.not-listed"' in told and '"remedy":"ask for it' in told
    done = box.run("curl", "-sS", "-p", f"http://other.test:{web.port}/")
    assert done.returncode == 56 and "403" in done.stderr
    done = box.run("curl", "-sS", "-x", "socks5h://127.0.0.1:888", f"http://other.test:{web.port}/")
    assert done.returncode == 97 and "(2)" in done.stderr
    # who ignores the variables has no network
    assert box.run("curl", "-sS", "--noproxy", "*", f"http://good.test:{web.port}/").returncode == 6
    assert box.run("curl", "-sS", "--noproxy", "*", f"http://93.184.216.34:{web.port}/").returncode == 7


def test_uploads_and_downloads_are_whole(box, tmp_path):
    class Keep(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        log_message = lambda *args: None  # noqa: E731

        def do_PUT(self):
            data = b""
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    data += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                data = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keep)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    box.open(rules=inner(f"good.test:{port}"))
    (tmp_path / "in").write_bytes(os.urandom(20 << 20))
    for options in ((), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect:"), ("-p",)):
        done = box.run("curl", "-sS", *options, "-T", tmp_path / "in", "-o", tmp_path / "out", f"http://good.test:{port}/")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "in").read_bytes() == (tmp_path / "out").read_bytes(), options
    server.shutdown()
    server.server_close()


def test_python(box, web):
    box.open(rules=inner(f"good.test:{web.port}"))
    program = """
import sys, urllib.request, urllib.error
print(urllib.request.urlopen(sys.argv[1]).read().decode())
try:
    urllib.request.urlopen(sys.argv[2])
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""
    done = box.run("/usr/bin/python3", "-c", program, f"http://good.test:{web.port}/", f"http://other.test:{web.port}/")
    assert done.stdout.startswith("hello\n403 {"), done.stderr


def test_node_fetch(box, web):
    box.open(rules=inner(f"good.test:{web.port}"))
    version = tuple(map(int, box.run("node", "--version").stdout.strip().removeprefix("v").split(".")))
    program = "fetch(process.argv[1]).then(r => r.text()).then(console.log, e => console.log(String(e.cause)))"
    done = box.run("node", "-e", program, f"http://good.test:{web.port}/")
    if version >= (24, 0, 0):
        assert done.stdout == "hello\n"
    else:  # it has no switch for that yet, and therefore no network
        assert "ENOTFOUND" in done.stdout or "EAI_AGAIN" in done.stdout, done.stdout + done.stderr
    program = f"""require("http").get({{host: "127.0.0.1", port: 888, path: process.argv[1],
        headers: {{Host: new URL(process.argv[1]).host}}}}, r => r.pipe(process.stdout))"""
    assert box.run("node", "-e", program, f"http://good.test:{web.port}/").stdout == "hello"


def test_git(box, tmp_path):
    work, bare = tmp_path / "work", tmp_path / "served/repo.git"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@good.test", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", work], check=True)
    (work / "file").write_text("content")
    subprocess.run([*git, "-C", work, "add", "."], check=True)
    subprocess.run([*git, "-C", work, "commit", "-qm", "first"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", work, bare], check=True)
    subprocess.run([*git, "-C", bare, "update-server-info"], check=True)
    with files_over_http(tmp_path / "served") as port:
        box.open(rules=inner(f"good.test:{port}"))
        done = box.run("git", "clone", "-q", f"http://good.test:{port}/repo.git", tmp_path / "clone")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "clone/file").read_text() == "content"
        done = box.run("git", "clone", "-q", f"http://other.test:{port}/repo.git", tmp_path / "not")
        assert done.returncode != 0 and "403" in done.stderr


def test_pip(box, tmp_path):
    served = tmp_path / "served"
    (served / "simple/pearl").mkdir(parents=True)
    name = "pearl-1.0-py3-none-any.whl"
    with zipfile.ZipFile(served / "simple/pearl" / name, "w") as wheel:
        wheel.writestr("pearl.py", "shine = 1\n")
        wheel.writestr("pearl-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pearl\nVersion: 1.0\n")
        wheel.writestr("pearl-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("pearl-1.0.dist-info/RECORD", "pearl.py,,\npearl-1.0.dist-info/METADATA,,\n"
                       "pearl-1.0.dist-info/WHEEL,,\npearl-1.0.dist-info/RECORD,,\n")
    (served / "simple/pearl/index.html").write_text(f'<a href="{name}">{name}</a>')
    with files_over_http(served) as port:
        box.open(rules=inner(f"good.test:{port}"))
        pip = ["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check", "--target"]
        done = box.run(*pip, tmp_path / "site", "--index-url", f"http://good.test:{port}/simple", "--trusted-host", "good.test",
                       "pearl", env={"PIP_CONFIG_FILE": "/dev/null"})
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "site/pearl.py").read_text() == "shine = 1\n"
    assert box.egress.meter()["requests"] >= 2


def test_npm(as_root, tmp_path):
    """A real package from the registry that this machine is set up for, through a strict door."""
    registry = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True).stdout.strip()
    host = registry.split("/")[2]
    if subprocess.run(["curl", "-sS", "-o", "/dev/null", "--max-time", "20", registry], capture_output=True).returncode != 0:
        pytest.skip("the registry is not there")
    kept = {name: value for name, value in os.environ.items() if name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")}
    with network("box") as path:
        egress = Egress(servers="").hello()
        box = Box(path, egress)
        box.open(rules=[rule(host, inner=True)], strict=registry.startswith("https:"))
        (tmp_path / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
        npm = ["npm", "--registry", registry, "--cache", tmp_path / "cache", "--no-audit", "--no-fund", "--fetch-retries", "1"]
        done = box.run(*npm, "install", "is-number@7.0.0", cwd=tmp_path, env={**kept, "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        assert '"7.0.0"' in (tmp_path / "node_modules/is-number/package.json").read_text()
        assert egress.meter()["top"][0]["host"] == host and egress.meter()["denied"] == 0
        assert egress.change(rules=[]) == 0
        shutil.rmtree(tmp_path / "cache")
        shutil.rmtree(tmp_path / "node_modules")
        done = box.run(*npm, "install", "is-number@7.0.0", cwd=tmp_path, env={**kept, "HOME": str(tmp_path)})
        assert done.returncode != 0 and "403" in done.stderr
        assert egress.close() == (0, "")


@pytest.fixture
def nginx(tmp_path):
    """TLS for good.test and other.test on one address, as hosts of many names have it."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=good.test", "-addext", "subjectAltName=DNS:good.test,DNS:other.test",
                    "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)
    listener = listen()
    port = listener.getsockname()[1]
    listener.close()
    (tmp_path / "conf").write_text(f"""
daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/error;
events {{}}
http {{
    access_log off; client_body_temp_path {tmp_path}/1; proxy_temp_path {tmp_path}/2; fastcgi_temp_path {tmp_path}/3;
    uwsgi_temp_path {tmp_path}/4; scgi_temp_path {tmp_path}/5;
    ssl_certificate {tmp_path}/cert; ssl_certificate_key {tmp_path}/key;
    server {{ listen 127.0.0.1:{port} ssl http2; server_name good.test; client_max_body_size 0;
              location / {{ return 200 "good\\n"; }}
              location /told {{ return 200 "$http_authorization $http_x_other\\n"; }}
              location /away {{ return 302 https://other.test:{port}/told; }}
              location /big {{ alias {tmp_path}/big; }} }}
    server {{ listen 127.0.0.1:{port} ssl http2; server_name other.test; location / {{ return 200 "other\\n"; }}
              location /told {{ return 200 "$http_authorization\\n"; }} }}
}}
""")
    process = subprocess.Popen(["/usr/sbin/nginx", "-c", tmp_path / "conf", "-e", tmp_path / "error"], stderr=subprocess.DEVNULL)
    for _ in range(100):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            break
        time.sleep(0.05)
    yield port, tmp_path / "cert"
    process.terminate()
    process.wait()


def test_nginx_with_tls_allowed_and_forbidden(box, nginx):
    port, certificate = nginx
    box.open(rules=inner(f"good.test:{port}"), strict=True)
    curl = ["curl", "-sS", "--cacert", certificate]
    assert box.run(*curl, f"https://good.test:{port}/").stdout == "good\n"
    assert box.run(*curl, "--http1.1", f"https://good.test:{port}/").stdout == "good\n"
    assert box.run(*curl, "-x", "socks5h://127.0.0.1:888", f"https://good.test:{port}/").stdout == "good\n"
    assert box.run(*curl, f"https://other.test:{port}/").returncode == 56
    program = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"
    trusted = {"SSL_CERT_FILE": str(certificate)}
    assert box.run("/usr/bin/python3", "-c", program, f"https://good.test:{port}/", env=trusted).stdout == "good\n"
    assert box.run("wget", "-qO-", f"--ca-certificate={certificate}", f"https://good.test:{port}/").stdout == "good\n"
    # the tunnel is for good.test, and inside somebody greets other.test, which is at the same address
    fronted = [*curl, "--connect-to", f"other.test:{port}:good.test:{port}", f"https://other.test:{port}/"]
    done = box.run(*fronted)
    assert done.returncode == 35 and done.stdout == ""
    assert box.egress.reasons()[-1] == "sni"
    # what is not strict cannot tell
    assert box.egress.change(rules=inner(f"good.test:{port}")) == 0
    assert box.run(*fronted).stdout == "other\n"


@contextlib.contextmanager
def secret_box(bundle, tmp_path, **terms):
    """A box with a secret for good.test in TLS, and the file that makes it trust the door."""
    with tempfile.NamedTemporaryFile("w", prefix="nacre-hosts-") as hosts, tempfile.NamedTemporaryFile() as trusted, \
            network("box") as path:
        hosts.write("127.0.0.1 good.test other.test\n")
        hosts.flush()
        trusted.write(pathlib.Path(bundle).read_bytes())
        trusted.flush()
        for file in (hosts, trusted):
            os.chmod(file.name, 0o644)
        egress = Egress(hosts=hosts.name, bundle=trusted.name).hello()
        (tmp_path / "authority").write_text(egress.authority)
        box = Box(path, egress)
        box.open(**terms)
        yield box, ["curl", "-sS", "--cacert", tmp_path / "authority", "-H", "Authorization: Bearer NACRE-SECRET-1",
                    "-H", "X-Other: NACRE-SECRET-1"]
        assert egress.close() == (0, "")


def test_secrets_in_tls(as_root, nginx, tmp_path):
    port, certificate = nginx
    bound = [secret("NACRE-SECRET-1", "s3cr3t", f"good.test:{port}", "Authorization", tls=True, mask=False)]
    rules = inner(f"good.test:{port}", f"other.test:{port}")
    with secret_box(certificate, tmp_path, rules=rules, secrets=bound) as (box, curl):
        told = f"https://good.test:{port}/told"
        assert box.run(*curl, told).stdout == "Bearer s3cr3t NACRE-SECRET-1\n"
        assert box.run(*curl, told, told, told).stdout == "Bearer s3cr3t NACRE-SECRET-1\n" * 3
        assert box.run(*curl, "-x", "socks5h://127.0.0.1:888", told).stdout == "Bearer s3cr3t NACRE-SECRET-1\n"
        # the other host gets the placeholder, in a tunnel that the door does not look into
        assert box.run(*curl, "--cacert", certificate, f"https://other.test:{port}/told").stdout == "Bearer NACRE-SECRET-1\n"
        # not even where the one sends it to the other
        done = box.run(*curl, "-L", "--location-trusted", "--cacert", certificate, "-k", f"https://good.test:{port}/away")
        assert done.stdout == "Bearer NACRE-SECRET-1\n"
        # who does not trust the door, or greets another host through it, gets nothing
        assert box.run(*curl, "--cacert", certificate, told).returncode == 60
        done = box.run(*curl, "-k", "--connect-to", f"other.test:{port}:good.test:{port}", f"https://other.test:{port}/told")
        assert "network.sni" in done.stdout
        # inside, too, Host is the host
        assert "network.malformed" in box.run(*curl, "-H", "Host: other.test", told).stdout
        assert box.run("/usr/bin/python3", "-c", "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())",
                       f"https://good.test:{port}/", env={"SSL_CERT_FILE": str(tmp_path / "authority")}).stdout == "b'good\\n'\n"
        decisions = box.egress.decisions
        box.egress.meter()
        assert {decision["protocol"] for decision in decisions} == {"connect", "socks", "inside"}
        assert "s3cr3t" not in str(decisions)


def test_bytes_in_tls_are_whole(as_root, nginx, tmp_path):
    port, certificate = nginx
    (tmp_path / "big").write_bytes(os.urandom(20 << 20))
    tmp_path.chmod(0o755)
    bound = [secret("NACRE-SECRET-1", "s3cr3t", f"good.test:{port}", "Authorization", tls=True)]
    with secret_box(certificate, tmp_path, rules=inner(f"good.test:{port}"), secrets=bound) as (box, curl):
        done = box.run(*curl, "-o", tmp_path / "out", f"https://good.test:{port}/big")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "big").read_bytes() == (tmp_path / "out").read_bytes()
        for options in ((), ("-H", "Transfer-Encoding: chunked")):
            assert box.run(*curl, *options, "--data-binary", f"@{tmp_path}/big", f"https://good.test:{port}/").stdout == "good\n"
        # slowly
        assert box.egress.change(rules=inner(f"good.test:{port}"), secrets=bound, rate=20 << 20) == 0
        assert box.run(*curl, "-o", tmp_path / "out", f"https://good.test:{port}/big").returncode == 0
        assert (tmp_path / "big").read_bytes() == (tmp_path / "out").read_bytes()


def test_a_host_that_nobody_vouches_for_gets_no_secret(as_root, nginx, tmp_path):
    port, _ = nginx
    (tmp_path / "nobody").write_text("")
    bound = [secret("NACRE-SECRET-1", "s3cr3t", f"good.test:{port}", "Authorization", tls=True)]
    with secret_box(tmp_path / "nobody", tmp_path, rules=inner(f"good.test:{port}"), secrets=bound) as (box, curl):
        assert box.run(*curl, "-k", f"https://good.test:{port}/told").returncode == 35
        assert box.egress.reasons() == ["allowed", "untrusted"]


def test_as_an_ordinary_user(web):
    """Without root the same program serves with the rights of its caller."""
    if not pathlib.Path("/usr/bin/setpriv").exists() or os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program = pathlib.Path(directory) / "nacre-egress"
        shutil.copy(BUILD / "nacre-egress", program)
        hosts = pathlib.Path(directory) / "hosts"
        hosts.write_text("127.0.0.1 good.test\n")
        egress = Egress(hosts=str(hosts), program=program, user=65534).hello()
        port = egress.open(rules=inner(f"good.test:{web.port}"))
        done = subprocess.run(["curl", "-sS", "-x", f"http://127.0.0.1:{port}", f"http://good.test:{web.port}/"],
                              capture_output=True, text=True)
        assert done.stdout == "hello"
        assert egress.close() == (0, "")
