"""The way out of a box: what a request and its policy allow is reached through nacre-egress, and nothing else is. Hosts of these
tests listen on 127.0.0.2, which no program takes for itself; packages come from an index there."""

import hashlib
import http.server
import json
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest

from packages import tarball, wheel, remove
from test_packages import make_caller, needs_npm, needs_pip

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")


class Host(http.server.ThreadingHTTPServer):
    """Answers with what `pages` has for a path, and notes who asked."""

    def __init__(self, pages=None, address="127.0.0.2"):
        host = self
        self.pages, self.asked, self.heads = dict(pages or {}), [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                host.asked.append(self.path)
                host.heads.append(self.headers)
                found = host.pages.get(urllib.parse.unquote(self.path))
                data = found if found is not None else b"no such page"
                self.send_response(200 if found is not None else 404)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Content-Type", "text/html" if data[:1] == b"<" else "application/octet-stream")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        super().__init__((address, 0), Handler)
        self.name = f"{address}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def host():
    made = Host({"/page": b"a page\n"})
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(params=["root", "user"])
def caller(request, programs):
    made = make_caller(programs, request.param)
    made.configure(text="log:\n  level: warning\n")
    yield made
    remove(made.place)


def ask(caller, code, language="shell", *options, **request):
    path = caller.place / "request.json"
    path.write_text(json.dumps({"language": language, "code": code, **request}))
    path.chmod(0o644)
    done = caller.run("run", "--json", *options, "--request", path)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@needs_curl
def test_a_host_that_is_allowed_and_one_that_is_not(caller, host):
    other = Host({"/page": b"secret\n"})
    reply = ask(caller, f"curl -sS http://{host.name}/page; curl -sS -o body -w '%{{http_code}} ' http://{other.name}/page; cat body",
                network={"allow": [host.name]})
    assert reply["output"].startswith("a page\n403 ") and "network." in reply["output"], reply
    assert other.asked == [] and host.asked == ["/page"]
    network = reply["usage"]["network"]
    assert (network["requests"], network["denied"], network["hosts"][0]["host"]) == (1, 1, "127.0.0.2")
    assert network["bytes_down"] > len("a page\n")
    denial, = [found for found in reply["denials"] if found["layer"] == "egress"]
    assert denial["object"] == other.name and denial["allow_with"] and denial["instead"]
    other.shutdown()


@needs_curl
def test_commands_reach_what_is_allowed(caller, host):
    other = Host({"/page": b"secret\n"})
    done = caller.run("exec", "--allow", host.name, "--", "sh", "-c", f"curl -s http://{host.name}/page; curl -s http://{other.name}/page")
    assert done.stdout.startswith("a page\n") and "network." in done.stdout and other.asked == [], done
    assert f"nacre exec: Refused: {other.name}: " in done.stderr and "[network.port]" in done.stderr, done
    reply = json.loads(caller.run("exec", "--json", "--allow", host.name, "--", "curl", "-s", f"http://{other.name}/page").stdout)
    denial, = [found for found in reply["denials"] if found["layer"] == "egress"]
    assert denial["object"] == other.name and other.asked == []
    assert caller.run("exec", "--allow", host.name, "--", "curl", "-s", "--noproxy", "*", "-m", "5", f"http://{host.name}/page").stdout == ""  # no way around the door
    assert len(host.asked) == 1
    for words, text in ((("--allow", "no host"), "expected a host"), (("--tier", "process", "--allow", host.name), "container")):
        done = caller.run("exec", *words, "--", "true")
        assert done.returncode == 125 and text in done.stderr, done
    other.shutdown()


def test_python_by_its_own_means(caller, host):
    code = f"import urllib.request as u\nprint(u.urlopen('http://{host.name}/page').read())"
    assert "b'a page\\n'" in ask(caller, code, "python", network={"allow": [host.name]})["output"]
    reply = ask(caller, code, "python")
    assert reply["status"] == "error" and reply["usage"]["network"] is None and len(host.asked) == 1


def test_there_is_no_way_around_the_door(caller, host):
    """A program that ignores the proxy has no network at all; the door's port cannot be listened on; there is no DNS."""
    address, port = host.name.split(":")
    code = f"""
import socket
for target in (("{address}", {port}), ("127.0.0.1", {port}), ("192.0.2.1", 80)):
    try:
        socket.create_connection(target, 2)
        print("connected", target)
    except OSError as error:
        print(type(error).__name__)
try:
    socket.getaddrinfo("example.org", 80)
    print("resolved")
except OSError:
    print("no names")
for kind, family in ((socket.SOCK_DGRAM, socket.AF_INET), (socket.SOCK_RAW, socket.AF_INET), (socket.SOCK_RAW, socket.AF_PACKET)):
    try:
        made = socket.socket(family, kind, 17 if kind == socket.SOCK_DGRAM else 1)
        made.sendto(b"x", ("192.0.2.1", 53))
        print("sent")
    except OSError as error:
        print("refused")
try:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)  # MPTCP
    made.settimeout(2)
    made.connect(("{address}", {port}))
    print("connected by MPTCP")
except OSError as error:
    print("refused")
"""
    reply = ask(caller, code, "python", network={"allow": [host.name]})
    assert reply["output"].count("refused") == 4, reply["output"]
    assert "connected" not in reply["output"] and "resolved" not in reply["output"] and "sent" not in reply["output"], reply["output"]
    assert host.asked == []


def test_what_the_policy_names_is_the_most(caller, host):
    policies = caller.config / "policies"
    policies.mkdir()
    (policies / "narrow.yaml").write_text("inherits: standard\nnetwork:\n  allow: ['*.example.org', 127.0.0.2:9]\n")
    for wanted, good in ((host.name, False), ("www.example.org", True), ("example.org", False), ("www.example.org:8080", False),
                         ("*.example.org", True), ("127.0.0.2:9", True), ("127.0.0.2", False)):
        reply = ask(caller, "true", policy="narrow", network={"allow": [wanted]})
        assert reply["status"] == ("success" if good else "blocked"), (wanted, reply["error"])
        assert good or "network.allow" in reply["error"]
    assert ask(caller, "true", policy="narrow", network_access=True)["status"] == "success"
    reply = ask(caller, "true", policy="strict", network={"allow": [host.name]})
    assert reply["status"] == "blocked" and reply["denials"][0]["id"] == "request.network"
    reply = ask(caller, "true", network_access=True)
    assert reply["status"] == "blocked" and "names no host" in reply["error"]


def test_a_process_box_becomes_a_container(caller, host):
    reply = ask(caller, "true", tier="process", network={"allow": [host.name]})
    assert (reply["tier"], reply["tier_reason"]) == ("container", "its network needs more than the tier that was named")


@needs_curl
def test_a_budget(caller, host):
    host.pages["/large"] = bytes(3 << 20)
    reply = ask(caller, f"for i in 1 2 3; do curl -s -o /dev/null -w '%{{http_code}} %{{size_download}}\\n' http://{host.name}/large; done",
                network={"allow": [host.name], "max_mb": 4})
    assert reply["usage"]["network"]["bytes_down"] <= (4 << 20) + 65536, reply["usage"]
    assert any(found["id"] == "network.budget" for found in reply["denials"]), reply["denials"]


@needs_curl
def test_the_command_line(caller, host):
    done = caller.run("run", "--allow", host.name, "--lang", "shell", "-c", f"curl -s http://{host.name}/page")
    assert (done.stdout, done.returncode) == ("a page\n", 0), done
    for options, words in ((("--net", "all"), "--net"), (("--net", "none", "--allow", host.name), "--allow"), (("--allow", "http://x/"), "--allow"),
                           (("--allow", "0x7f.1"), "--allow")):
        done = caller.run("run", *options, "--lang", "shell", "-c", "true")
        assert done.returncode == 125 and words in done.stderr, done


def test_a_reply_of_the_network_is_not_kept(caller, host):
    for _ in range(2):
        assert ask(caller, "true", cache=True, network={"allow": [host.name]})["cached"] is False


@needs_curl
def test_secrets_stay_outside(caller, host):
    """The box has a name for it; the value stands in the named header of requests to its host, and nowhere else."""
    other = Host({"/page": b"x"})
    code = (f"echo $TOKEN; curl -s -H \"Authorization: Bearer $TOKEN\" http://{host.name}/page; "
            f"curl -s -H \"X-Other: $TOKEN\" http://{host.name}/page; curl -s -H \"Authorization: $TOKEN\" http://{other.name}/page; env | grep -c pearl")
    reply = ask(caller, code, network={"allow": [host.name, other.name]}, secrets={"TOKEN": {"value": "pearl-1234", "host": host.name, "plain": True}})
    stands = reply["output"].split("\n")[0]
    assert "pearl" not in json.dumps(reply) and len(stands) > 20, reply["output"]
    first, second = host.heads
    assert first["Authorization"] == "Bearer pearl-1234" and second["X-Other"] == stands and other.heads[0]["Authorization"] == stands
    kept = subprocess.run(["grep", "-ra", "pearl-1234", str(caller.state)], capture_output=True)
    assert kept.returncode == 1, kept.stdout[:300]
    other.shutdown()
    for secrets, words in (({"T": {"value": "xxxx", "host": "example.org"}}, "secrets.T"), ({"T": {"value": "x"}}, "/secrets/T"),
                           ({"1": {"value": "x", "host": "example.org"}}, "/secrets"), ({"T": {"value": "a\nb", "host": "example.org"}}, "/secrets/T/value"),
                           ({"T": {"value": "x", "host": "*.example.org"}}, "/secrets/T/host")):
        path = caller.place / "request.json"
        path.write_text(json.dumps({"language": "shell", "code": "true", "network": {"allow": [host.name]}, "secrets": secrets}))
        done = caller.run("run", "--request", path)
        assert done.returncode in (125, 126) and words in done.stderr, done


@needs_curl
def test_a_secret_in_tls_is_for_hosts_that_are_trusted(caller, host):
    """The door takes part in TLS: the box trusts it, and it does not trust a host whose certificate nobody knows."""
    listener = socket.create_server(("127.0.0.2", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", caller.place / "key.pem", "-out", caller.place / "cert.pem",
                    "-days", "2", "-subj", "/CN=127.0.0.2"], check=True, capture_output=True)
    context.load_cert_chain(caller.place / "cert.pem", caller.place / "key.pem")

    def serve():
        while True:
            try:
                context.wrap_socket(listener.accept()[0], server_side=True).close()
            except ssl.SSLError:
                continue
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    name = f"127.0.0.2:{listener.getsockname()[1]}"
    code = f"grep -c BEGIN $SSL_CERT_FILE; curl -s -H \"Authorization: $T\" https://{name}/; echo $T"
    reply = ask(caller, code, network={"allow": [name]}, secrets={"T": {"value": "pearl", "host": name}})
    listener.close()
    trusted = pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN")
    assert reply["output"].split("\n")[0] == str(trusted + 1) and "pearl" not in json.dumps(reply), reply["output"]
    assert [found["id"] for found in reply["denials"]] == ["network.untrusted"], reply["denials"]


def only_environment(caller):
    key, = [found["key"] for found in json.loads(caller.run("env", "list", "--json").stdout)["environments"]]
    return json.loads(caller.run("env", "show", key).stdout)


def index_of(host, files, where="/simple/"):
    """Serves wheels as PEP 503 has it."""
    names = {}
    for path in files:
        data = path.read_bytes()
        name = path.name.split("-")[0].replace("_", "-")
        host.pages[f"/files/{path.name}"] = data
        names.setdefault(name, []).append(f'<a href="/files/{path.name}#sha256={hashlib.sha256(data).hexdigest()}">{path.name}</a>')
    for name, links in names.items():
        host.pages[f"{where}{name}/"] = ("<html>" + "".join(links) + "</html>").encode()
    return f"http://{host.name}{where}"


@needs_pip
def test_python_packages_from_an_index(caller, host, tmp_path):
    url = index_of(host, [wheel(tmp_path, "pearl", "1.2", ["oyster>=1"]), wheel(tmp_path, "oyster", "1.5")])
    caller.configure(text=f"packages:\n  python:\n    index: [{url}]\n")
    reply = ask(caller, "import pearl, oyster\nprint(pearl.VERSION, oyster.VERSION)", "python", packages=["pearl"])
    assert reply["output"] == "1.2 1.5\n", reply["error"]
    built = only_environment(caller)
    wanted = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob("*.whl")}
    assert {found["file"]: found["sha256"] for found in built["packages"]} == wanted and built["source"] == url
    # the program itself reaches nothing: the index was the builder's
    assert reply["usage"]["network"] is None
    reply = ask(caller, "import coral", "python", packages=["coral"])
    assert reply["status"] == "error" and "has no 'coral'" in reply["error"], reply["error"]
    assert "(packages.python.index)" in reply["error"] and "wheels" not in reply["error"]


@needs_pip
def test_the_build_reaches_the_index_and_nothing_else(caller, host, tmp_path):
    """An index that sends for its files to a host that nobody named."""
    other = Host()
    path = wheel(tmp_path, "pearl")
    other.pages[f"/files/{path.name}"] = path.read_bytes()
    host.pages["/simple/pearl/"] = f'<html><a href="http://{other.name}/files/{path.name}">{path.name}</a></html>'.encode()
    text = f"packages:\n  python:\n    index: [http://{host.name}/simple/]\n"
    caller.configure(text=text)
    done = caller.run("env", "build", "pearl")
    assert done.returncode != 0 and other.asked == [], done
    caller.configure(text=text + f"    hosts: [{other.name}]\n")
    done = caller.run("env", "build", "pearl")
    assert done.returncode == 0 and len(other.asked) == 1, done.stderr
    other.shutdown()


@needs_npm
def test_javascript_packages_from_a_registry(caller, host, tmp_path):
    pearl, oyster = tarball(tmp_path, "pearl", dependencies={"oyster": "^1.0.0"}), tarball(tmp_path, "oyster", "1.10.0")
    for path, name, version, needs in ((pearl, "pearl", "1.0.0", {"oyster": "^1.0.0"}), (oyster, "oyster", "1.10.0", {})):
        data = path.read_bytes()
        import base64
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        host.pages[f"/{name}/-/{path.name}"] = data
        host.pages[f"/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: {
            "name": name, "version": version, "dependencies": needs,
            "dist": {"tarball": f"http://{host.name}/{name}/-/{path.name}", "integrity": integrity}}}}).encode()
    caller.configure(text=f"packages:\n  javascript:\n    registry: [http://{host.name}/]\n")
    reply = ask(caller, "console.log(require('pearl'), require('oyster'))", "javascript", packages=["pearl"])
    assert reply["output"] == "pearl 1.0.0 oyster 1.10.0\n", (reply["error"], reply["stderr"])
    built = only_environment(caller)
    assert {found["file"]: found["sha256"] for found in built["packages"]} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (pearl, oyster)}
    reply = ask(caller, "1", "javascript", packages=["coral"])
    assert reply["status"] == "error" and "has no 'coral'" in reply["error"], reply["error"]
    assert "(packages.javascript.registry)" in reply["error"] and "tarballs" not in reply["error"]


@pytest.mark.parametrize("text", ["packages:\n  python:\n    index: [ftp://x/]\n", "packages:\n  python:\n    index: [http://user@x/]\n",
                                  "packages:\n  python:\n    index: ['http://x/?y']\n", "packages:\n  python:\n    hosts: [http://x]\n",
                                  "packages:\n  javascript:\n    registry: [x]\n"])
def test_what_is_no_index(nacre, tmp_path, text):
    pathlib.Path(tmp_path, "nacre.yaml").write_text(text)
    done = nacre("--config", tmp_path, "config", "check")
    assert done.returncode != 0 and "nacre.yaml:3" in done.stderr + done.stdout, done
