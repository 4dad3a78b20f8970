"""nacre run: every language does what users of it expect, with right replies."""

import base64
import json
import os
import subprocess

import pytest

from conftest import open_way

LANGUAGES = ["python", "javascript", "shell", "go", "rust", "c", "cpp"]

HELLO = {
    "python": 'print("hello")',
    "javascript": 'console.log("hello")',
    "shell": "echo hello",
    "go": 'package main\nimport "fmt"\nfunc main() { fmt.Println("hello") }',
    "rust": 'fn main() { println!("hello"); }',
    "c": '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }',
}
STDIN = {
    "python": "import sys\nprint(input().upper(), len(sys.stdin.read()))",
    "javascript": "const s = require('fs').readFileSync(0, 'utf8'); const [a, ...b] = s.split('\\n');\n"
                  "console.log(a.toUpperCase(), b.join('\\n').length)",
    "shell": 'read -r a; b=$(wc -c); echo "${a^^} $b"',
    "go": 'package main\nimport ("bufio"; "fmt"; "io"; "os"; "strings")\nfunc main() { r := bufio.NewReader(os.Stdin); a, _ := r.ReadString(10)\n'
          'b, _ := io.ReadAll(r); fmt.Println(strings.ToUpper(strings.TrimSpace(a)), len(b)) }',
    "rust": "use std::io::Read;\nfn main() { let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap();\n"
            "let i = s.find('\\n').unwrap(); println!(\"{} {}\", s[..i].to_uppercase(), s.len() - i - 1); }",
    "c": "#include <ctype.h>\n#include <stdio.h>\nint main(void) { int c, n = 0; while ((c = getchar()) != '\\n') putchar(toupper(c));\n"
         'while (getchar() >= 0) n++; printf(" %d\\n", n); return 0; }',
}
ARGS = {
    "python": "import sys\nprint('|'.join(sys.argv[1:]))",
    "javascript": "console.log(process.argv.slice(2).join('|'))",
    "shell": 'IFS="|"; echo "$*"',
    "go": 'package main\nimport ("fmt"; "os"; "strings")\nfunc main() { fmt.Println(strings.Join(os.Args[1:], "|")) }',
    "rust": 'fn main() { println!("{}", std::env::args().skip(1).collect::<Vec<_>>().join("|")); }',
    "c": '#include <stdio.h>\nint main(int n, char **a) { for (int i = 1; i < n; i++) printf("%s%s", i > 1 ? "|" : "", a[i]); puts(""); return 0; }',
}
FILES = {
    "python": "open('out.bin', 'wb').write(open('in/data.bin', 'rb').read()[::-1])",
    "javascript": "const f = require('fs'); f.writeFileSync('out.bin', f.readFileSync('in/data.bin').reverse())",
    "shell": "set -e; od -An -v -tx1 in/data.bin | tr -s ' ' '\\n' | grep . | tac | while read -r b; do printf \"\\x$b\"; done >out.bin",
    "go": 'package main\nimport "os"\nfunc main() { b, _ := os.ReadFile("in/data.bin"); for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 { b[i], b[j] = b[j], b[i] }\n'
          'os.WriteFile("out.bin", b, 0644) }',
    "rust": 'fn main() { let mut b = std::fs::read("in/data.bin").unwrap(); b.reverse(); std::fs::write("out.bin", b).unwrap(); }',
    "c": '#include <stdio.h>\nint main(void) { unsigned char b[64]; FILE *f = fopen("in/data.bin", "rb"); size_t n = fread(b, 1, 64, f); f = fopen("out.bin", "wb");\n'
         "while (n) fputc(b[--n], f); fclose(f); return 0; }",
}
FAILING = {  # the program, and the line, kind and message of the reply
    "python": ("def f():\n    return {}['x']\n\nf()", 2, "KeyError", "'x'"),
    "javascript": ("\nfunction f() { throw new TypeError('bad') }\nf()", 2, "TypeError", "bad"),
    "shell": ("echo a\nno_such_command", 2, "error", "no_such_command: command not found"),
    "go": ('package main\n\nfunc main() {\n\tvar m map[string]int\n\tm["a"] = 1\n}', 5, "panic", "assignment to entry in nil map"),
    "rust": ("fn main() {\n    let v: Vec<i32> = vec![];\n    println!(\"{}\", v[1]);\n}", 3, "panic", "index out of bounds"),
}
BROKEN = {  # does not parse or compile: the line
    "python": ("x = 1\ny = (2\n", 2), "javascript": ("let x = 1;\nlet y = ;\n", 2), "shell": ("echo a\nif true; then\n", 3),
    "go": ("package main\nfunc main() {\n\tx := 1\n}", 3), "rust": ("fn main() {\n    let x: i32 = \"a\";\n}", 2),
    "c": ("int main(void) {\n\treturn x;\n}", 2),
}
EXIT = {
    "python": "import sys\nsys.exit(7)", "javascript": "process.exit(7)", "shell": "exit 7",
    "go": 'package main\nimport "os"\nfunc main() { os.Exit(7) }', "rust": "fn main() { std::process::exit(7); }", "c": "int main(void) { return 7; }",
}
SIGNAL = {
    "python": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "javascript": "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 5000)",
    "shell": "kill -TERM $$", "go": 'package main\nimport "syscall"\nfunc main() { syscall.Kill(syscall.Getpid(), syscall.SIGTERM); select {} }',
    "rust": "extern \"C\" { fn raise(n: i32) -> i32; }\nfn main() { unsafe { raise(15); } }", "c": "#include <signal.h>\nint main(void) { return raise(SIGTERM); }",
}
BYTES = {
    "python": "import sys\nsys.stdout.buffer.write(b'a\\xff\\x00b\\n')", "javascript": "process.stdout.write(Buffer.from([97, 255, 0, 98, 10]))",
    "shell": "printf 'a\\377\\000b\\n'", "go": 'package main\nimport "os"\nfunc main() { os.Stdout.Write([]byte{97, 255, 0, 98, 10}) }',
    "rust": "use std::io::Write;\nfn main() { std::io::stdout().write_all(&[97, 255, 0, 98, 10]).unwrap(); }",
    "c": '#include <stdio.h>\nint main(void) { fwrite("a\\377\\000b\\n", 1, 5, stdout); return 0; }',
}
MUCH = {
    "python": "print('0123456789abcde\\n' * 655360, end='')", "javascript": "process.stdout.write('0123456789abcde\\n'.repeat(655360))",
    "shell": "yes 0123456789abcde | head -n 655360",
    "go": 'package main\nimport ("os"; "strings")\nfunc main() { os.Stdout.WriteString(strings.Repeat("0123456789abcde\\n", 655360)) }',
    "rust": 'fn main() { print!("{}", "0123456789abcde\\n".repeat(655360)); }',
    "c": '#include <stdio.h>\nint main(void) { for (int i = 0; i < 655360; i++) puts("0123456789abcde"); return 0; }',
}
LOOP = {
    "python": "while True: pass", "javascript": "while (true) {}", "shell": "while :; do :; done", "go": "package main\nfunc main() { for {} }",
    "rust": "fn main() { loop { std::hint::spin_loop() } }", "c": "int main(void) { for (volatile int i = 0;; i++); }",
}
HOG = {
    "python": "x = []\nwhile True: x.append(bytearray(1 << 20))", "javascript": "const x = []; while (true) x.push(Buffer.alloc(1 << 20, 1))",
    "shell": "x=a; while :; do x=$x$x; done",
    "go": "package main\nvar x [][]byte\nfunc main() { for { b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; x = append(x, b) } }",
    "rust": "fn main() { let mut x = vec![]; loop { x.push(vec![1u8; 1 << 20]); } }",
    "c": "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); } }",
}
HELLO["cpp"] = '#include <iostream>\nint main() { std::cout << "hello" << std::endl; }'
STDIN["cpp"] = ("#include <iostream>\n#include <iterator>\n#include <string>\nint main() { std::string a, b; std::getline(std::cin, a); for (char &c : a) c = std::toupper(c);\n"
                "b.assign(std::istreambuf_iterator<char>(std::cin), {}); std::cout << a << ' ' << b.size() << std::endl; }")
ARGS["cpp"] = '#include <iostream>\nint main(int n, char **a) { for (int i = 1; i < n; i++) std::cout << (i > 1 ? "|" : "") << a[i]; std::cout << std::endl; }'
FILES["cpp"] = ("#include <algorithm>\n#include <fstream>\n#include <iterator>\n#include <string>\nint main() { std::ifstream in(\"in/data.bin\", std::ios::binary);\n"
                "std::string b(std::istreambuf_iterator<char>(in), {}); std::reverse(b.begin(), b.end()); std::ofstream(\"out.bin\", std::ios::binary) << b; }")
BROKEN["cpp"] = ("int main() {\n\treturn x;\n}", 2)
EXIT["cpp"], SIGNAL["cpp"] = "int main() { return 7; }", "#include <csignal>\nint main() { return std::raise(SIGTERM); }"
BYTES["cpp"] = '#include <iostream>\nint main() { std::cout.write("a\\377\\000b\\n", 5); }'
MUCH["cpp"] = '#include <iostream>\nint main() { for (int i = 0; i < 655360; i++) std::cout << "0123456789abcde\\n"; }'
LOOP["cpp"] = "int main() { for (volatile int i = 0;; i = i + 1); }"
HOG["cpp"] = "#include <cstring>\n#include <new>\nint main() { for (;;) { char *p = new (std::nothrow) char[1 << 20]; if (p) std::memset(p, 1, 1 << 20); } }"
ROOT = os.geteuid() == 0


@pytest.fixture(params=["root", "user"])
def run(request, programs, tmp_path_factory):
    """nacre run by somebody: gives the reply of a request (a dict), or what a command line printed."""
    home = tmp_path_factory.getbasetemp() / f"run-{request.param}"
    home.mkdir(exist_ok=True)
    prefix = []
    if request.param == "user" and ROOT:
        os.chown(home, 65534, 65534)
        open_way(home.parent)
        prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    elif request.param == "root" and not ROOT:
        pytest.skip("needs root")
    environment = {**os.environ, "HOME": str(home), "NACRE_STATE": str(home / "state")}

    def go(wanted=None, *words, text=True, **options):
        command = [*prefix, str(programs / "nacre"), "run"]
        if wanted is not None:
            done = subprocess.run([*command, "--json", "--request", "-"], input=json.dumps(wanted).encode(), capture_output=True, timeout=120, env=environment)
            assert done.stdout, done.stderr.decode()
            return json.loads(done.stdout)
        return subprocess.run([*command, *words], capture_output=True, timeout=120, text=text, env=environment, **options)

    go.user = request.param
    return go


def code(language, programs, **more):
    return {"language": language, "code": programs[language], **more}


@pytest.mark.parametrize("language", LANGUAGES)
def test_hello(run, language):
    reply = run(code(language, HELLO))
    assert (reply["status"], reply["output"], reply["stderr"], reply["error"]) == ("success", "hello\n", "", None), reply
    assert reply["exit_code"] == 0 and reply["signal"] is None and reply["tier"] == "container" and reply["language"] == language
    assert reply["execution_time"] > 0 and reply["resource_usage"]["memory_peak"].endswith("B")


@pytest.mark.parametrize("language", LANGUAGES)
def test_stdin(run, language):
    assert run(code(language, STDIN, inputs=["first", "ab", "c"]))["output"] == "FIRST 5\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_args(run, language):
    assert run(code(language, ARGS, args=["a b", "", "é'\"$x"]))["output"] == "a b||é'\"$x\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_files_in_and_out(run, language):
    reply = run(code(language, FILES, files={"in/data.bin": {"base64": base64.b64encode(b"\x01\x02\xff\x00z").decode()}}, capture=["*.bin"]))
    assert reply["status"] == "success", reply
    assert base64.b64decode(reply["files"]["out.bin"]["base64"]) == b"z\x00\xff\x02\x01"
    assert set(reply["files"]) == {"out.bin", "in/data.bin"} and reply["files_complete"] is True


@pytest.mark.parametrize("language", FAILING)
def test_an_exception_has_its_line(run, language):
    program, line, kind, message = FAILING[language]
    reply = run({"language": language, "code": program})
    assert reply["status"] == "error" and reply["exit_code"] > 0
    found = reply["diagnostic"]
    assert (found["phase"], found["line"], found["kind"]) == ("run", line, kind) and message in found["message"], found
    assert message in reply["error"] and f"line {line}" in reply["error"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_does_not_compile_has_its_line(run, language):
    program, line = BROKEN[language]
    reply = run({"language": language, "code": program})
    assert reply["status"] == "error" and reply["diagnostic"]["line"] == line, reply
    assert reply["diagnostic"]["phase"] == ("compile" if language in ("go", "rust", "c", "cpp") else "run")
    assert reply["stderr"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_exit_code(run, language):
    reply = run(code(language, EXIT))
    assert (reply["status"], reply["exit_code"], reply["signal"]) == ("error", 7, None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_signal(run, language):
    reply = run(code(language, SIGNAL))
    assert (reply["status"], reply["exit_code"], reply["signal"]) == ("killed", None, 15), reply


@pytest.mark.parametrize("language", LANGUAGES)
def test_output_that_is_not_utf8(run, language):
    assert run(code(language, BYTES))["output"] == "a\ufffd\0b\n"
    assert run(None, "--lang", language, "-c", BYTES[language], text=False).stdout == b"a\xff\0b\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_megabytes_of_output(run, language):
    reply = run(code(language, MUCH))
    assert reply["status"] == "success" and reply["truncated"] is True and reply["usage"]["output_bytes"] == 10 << 20
    head, gap, tail = reply["output"].partition("\n... ")
    assert head.startswith("0123456789abcde\n0123") and tail.endswith("0123456789abcde\n") and len(reply["output"]) < (1 << 20) + 100
    left_out = int(gap and tail.split()[0])
    assert len(head) + len(tail.split("...\n", 1)[1]) + left_out == 10 << 20
    assert run(None, "--lang", language, "-c", MUCH[language]).stdout == "0123456789abcde\n" * 655360


@pytest.mark.parametrize("language", LANGUAGES)
def test_infinite_loop(run, language):
    reply = run(code(language, LOOP, timeout=0.6))
    assert reply["status"] == "timeout" and 0.6 <= reply["execution_time"] < 2 and "timeout" in reply["error"], reply


@pytest.mark.parametrize("language", LANGUAGES)
def test_memory_hog(run, language):
    if run.user == "user":
        pytest.skip("without a control group the kernel's own limit per process gives other ends")
    reply = run(code(language, HOG, limits={"memory_mb": 64}, timeout=20))
    assert reply["status"] == "memory_limit" and "memory" in reply["error"], reply


def test_typescript_runs_or_says_what_is_needed(run):
    reply = run({"language": "typescript", "code": "const x: number = 42; console.log(x)"})
    assert reply["output"] == "42\n" if reply["status"] == "success" else "22.6" in reply["error"], reply


def test_an_uncaught_exception_of_cpp(run):
    reply = run({"language": "c++", "code": '#include <stdexcept>\nint main() { throw std::out_of_range("too far"); }'})
    assert (reply["status"], reply["language"], reply["signal"]) == ("killed", "cpp", 6), reply
    assert (reply["diagnostic"]["kind"], reply["diagnostic"]["message"]) == ("std::out_of_range", "too far")


C_PARTS = {"lib/sum.c": '#include "sum.h"\n#include <math.h>\ndouble root(int n) { return sqrt(n); }\n', "include/sum.h": "double root(int n);\n"}
C_MAIN = '#include "sum.h"\n#include <stdio.h>\nint main(int n, char **a) { (void)a; printf("%.0f\\n", root(n * 16)); return 0; }\n'
CPP_PARTS = {"sum.cc": "int sum(int a, int b) { return a + b; }\n", "other.c": "this is no C++ and not compiled\n"}
CPP_MAIN = '#include <iostream>\nint sum(int, int);\nint main() { std::cout << sum(2, 2) << std::endl; }\n'
GO_MAIN = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(sum(2, 2)) }\n'
GO_PARTS = {"sum.go": "package main\n\nfunc sum(a, b int) int { return a + b }\n", "sum_test.go": "package main\n\nthis is not compiled\n"}
MODULE_MAIN = 'package main\n\nimport (\n\t"fmt"\n\n\t"pearl/inner"\n)\n\nfunc main() { fmt.Println(inner.Sum(2, 2)) }\n'
MODULE_PARTS = {"go.mod": "module pearl\n\ngo 1.19\n", "inner/sum.go": "package inner\n\nfunc Sum(a, b int) int { return a + b }\n"}
RUST_PARTS = {"sum.rs": "pub fn sum(a: i32, b: i32) -> i32 { a + b }\n"}
RUST_MAIN = 'mod sum;\nfn main() { println!("{}", sum::sum(2, 2)); }\n'
PARTS = {"c": ("main.c", C_MAIN, C_PARTS), "cpp": ("main.cpp", CPP_MAIN, CPP_PARTS), "go": ("main.go", GO_MAIN, GO_PARTS),
         "go module": ("main.go", MODULE_MAIN, MODULE_PARTS), "rust": ("main.rs", RUST_MAIN, RUST_PARTS)}


@pytest.mark.parametrize("name", PARTS)
def test_programs_of_several_files(run, name):
    _, program, parts = PARTS[name]
    reply = run({"language": name.split()[0], "code": program, "files": parts})
    assert (reply["status"], reply["output"]) == ("success", "4\n"), (reply["error"], reply["stderr"])
    changed = {path: text.replace("sqrt(n)", "1 + sqrt(n)").replace("a + b", "a + b + 1") for path, text in parts.items()}
    reply = run({"language": name.split()[0], "code": program, "files": changed})
    assert (reply["output"], reply["cached_program"]) == ("5\n", False)


@pytest.mark.parametrize("name", PARTS)
def test_a_directory_is_a_program(run, name, tmp_path):
    main, program, parts = PARTS[name]
    top = tmp_path / "program"
    for path, text in {main: program, ".git/config": "hidden", **parts}.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    open_way(tmp_path)
    for path in (top, *top.rglob("*")):
        path.chmod(0o755)
    done = run(None, str(top))
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    done = run(None, "--file", f"{top}:kept", "--lang", "shell", "-c", "find . -type f | sort")
    assert done.stdout.split() == sorted(f"./kept/{path}" for path in (main, *parts)) + ["./main.sh"], done


def test_directories_that_are_no_program(run, tmp_path):
    (tmp_path / "a.py").write_text("print('a')")
    open_way(tmp_path)
    assert run(None, str(tmp_path)).stdout == "a\n"  # the only one
    (tmp_path / "b.py").write_text("print('b')")
    assert "which file is the program" in run(None, str(tmp_path)).stderr
    (tmp_path / "main.py").write_text("import a, b")
    assert run(None, str(tmp_path)).stdout == "a\nb\n"
    (tmp_path / "c.py").symlink_to("/etc/passwd")  # nobody's files are sent through a link
    done = run(None, str(tmp_path))
    assert done.returncode == 125 and "'c.py': a symbolic link, which is not followed" in done.stderr
    (tmp_path / "main.py").unlink()
    (tmp_path / "main.py").symlink_to("/etc/passwd")
    assert run(None, str(tmp_path)).returncode == 125


def test_a_file_of_the_users_is_not_compiled_that_is_of_another_language(run):
    reply = run({"language": "c", "code": HELLO["c"], "files": {"x.cpp": "no", "x.py": "no", "sub/main.go": "no"}})
    assert reply["output"] == "hello\n", reply
    reply = run({"language": "c", "code": "int f(void); int main(void) { return f(); }", "files": {"part.c": "int f(void) {\n\treturn y;\n}"}})
    assert (reply["diagnostic"]["file"], reply["diagnostic"]["line"]) == ("part.c", 2), reply["diagnostic"]


def test_a_library_is_no_program(run):
    reply = run({"language": "go", "code": "package lib\n\nfunc F() int { return 1 }\n"})
    assert reply["status"] == "error" and "package main" in reply["error"], reply


def test_the_compiler_is_needed_once(run, tmp_path):
    mark = os.urandom(8).hex()
    request = {"language": "c", "code": f'#include <stdio.h>\nint main(void) {{ puts("{mark}"); return 0; }}'}
    replies = [run(request) for _ in range(2)]
    assert [reply["cached_program"] for reply in replies] == [False, True] and replies[1]["output"] == f"{mark}\n"
    other = run({**request, "files": {"x.h": "int x;"}})
    assert other["cached_program"] is False


def test_a_workflow_shares_a_workspace(run):
    steps = [{"name": "make", "language": "python", "code": "import json; json.dump([1, 2, 3], open('d.json', 'w'))"},
             {"name": "sum", "language": "javascript", "code": "console.log(JSON.parse(require('fs').readFileSync('d.json')).reduce((a, b) => a + b))"},
             {"name": "fail", "language": "c", "code": "int main(void) { return 5; }"},
             {"name": "never", "language": "shell", "code": "echo never"}]
    reply = run({"steps": steps, "capture": ["*.json"]})
    assert [(step["name"], step["status"], step["output"]) for step in reply["steps"]] == [
        ("make", "success", ""), ("sum", "success", "6\n"), ("fail", "error", ""), ("never", "skipped", "")]
    assert reply["status"] == "error" and reply["exit_code"] == 5 and reply["files"]["d.json"]["text"] == "[1, 2, 3]"


def test_the_timeout_of_a_workflow_is_for_all_its_steps(run):
    reply = run({"steps": [{"language": "shell", "code": "sleep 0.4"}] * 3, "timeout": 0.6})
    assert [step["status"] for step in reply["steps"]] == ["success", "timeout", "skipped"]


def test_files_are_captured_after_a_failure_too(run):
    reply = run({"language": "python", "code": "open('log.txt', 'w').write('so far'); 1/0", "capture": ["*.txt"]})
    assert reply["status"] == "error" and reply["files"]["log.txt"]["text"] == "so far"
    reply = run({"language": "shell", "code": "echo so far >log.txt; sleep 9", "capture": ["*.txt"], "timeout": 0.3})
    assert reply["status"] == "timeout" and reply["files"]["log.txt"]["text"] == "so far\n"


def test_an_equal_request_is_answered_again_if_it_wants_that(run):
    request = {"language": "python", "code": f"import time  # {os.urandom(8).hex()}\nprint(time.time_ns())", "cache": True}
    first, second = run(request), run({**request, "id": "another", "labels": {"a": "b"}, "priority": 9})
    assert (first["cached"], second["cached"]) == (False, True) and first["output"] == second["output"]
    assert second["id"] == "another" and second["labels"] == {"a": "b"}
    for change in ({"inputs": ["x"]}, {"args": ["x"]}, {"env": {"X": "1"}}, {"files": {"x": ""}}, {"timeout": 3}, {"policy": "audit"}, {"tenant": "other"}, {"cache": False}):
        other = run({**request, **change})
        assert other["cached"] is False and other["output"] != first["output"], change


def test_what_failed_is_not_kept(run):
    request = {"language": "shell", "code": "exit 1", "cache": True}
    assert [run(request)["cached"] for _ in range(2)] == [False, False]


def test_the_policy_refuses(run):
    reply = run({"language": "python", "code": "x = 1\nimport socket", "policy": "strict"})
    assert reply["status"] == "blocked" and "line 2" in reply["error"] and "socket" in reply["error"] and reply["tier"] is None
    assert run(None, "--policy", "strict", "--lang", "python", "-c", "import socket").returncode == 126


def test_a_caller_cannot_ask_for_less_than_the_policy(run):
    harmless = run({"language": "python", "code": "print(1)", "tier": "process"})
    assert harmless["tier"] == "process" and harmless["output"] == "1\n"
    risky = run({"language": "python", "code": "import subprocess\nprint(subprocess.getoutput('echo 2'))", "tier": "process"})
    assert risky["risk"] != "low" and risky["tier"] == "container" and "risk" in risky["tier_reason"], risky


def test_what_this_version_has_not_is_refused_not_ignored(run):
    for more in ({"network_access": True}, {"packages": ["no-such-package"]}, {"tier": "microvm"}):
        reply = run({"language": "python", "code": "print(1)", **more})
        assert reply["status"] == "blocked" and reply["output"] == "" and reply["error"], more


def test_the_language_is_told(run):
    for text, language in (("print('x')\n", "python"), ("const a = 1\nconsole.log(a)", "javascript"), ("#!/bin/sh\necho x", "shell"),
                           ('package main\nimport "fmt"\nfunc main() { fmt.Println(1) }', "go")):
        reply = run({"code": text})
        assert reply["language"] == language and reply["language_reason"] and reply["status"] == "success", reply
    reply = run({"code": "12"})
    assert reply["status"] == "error" and "--lang" in reply["error"]


def test_input_is_passed_through_and_exit_codes_too(run, tmp_path):
    script = "import sys\nprint(sys.stdin.read()[::-1])\nsys.exit(4)"
    done = run(None, "--lang", "python", "-c", script, input="abc")
    assert (done.stdout, done.stderr, done.returncode) == ("cba\n", "", 4)
    assert run(None, "--timeout", "200ms", "--lang", "shell", "-c", "sleep 9").returncode == 124
    assert run(None, "--lang", "shell", "-c", "kill -9 $$").returncode == 137
    assert run(None, "--lang", "c", "-c", "int main(void) { return x; }").returncode == 1


def test_a_program_from_standard_input_or_a_file(run):
    assert run(None, "--lang", "python", "-", "a", input="import sys; print(sys.argv[1:])").stdout == "['a']\n"
    done = run(None, "no/such/file.py")
    assert done.returncode == 125 and "No such file" in done.stderr


@pytest.mark.parametrize("words, message", [
    ((), "Name a program"), (("--lang", "cobol", "-c", "x"), "--lang: found"), (("--memory", "x", "-c", "print(1)"), "--memory"),
    (("--env", "nothing", "-c", "1"), "--env"), (("--file", "/nonexistent", "-c", "1"), "--file"), (("--capture", "/etc/*", "-c", "1"), "--capture"),
    (("--policy", "lax", "-c", "1"), "--policy"), (("--tier", "moon", "-c", "1"), "--tier"), (("--request", "/nonexistent"), "No such file"),
    (("--request", "-", "x.py"), "--request"), *((("--request", "-", option, *value), option) for option, *value in (
        ("--policy", "strict"), ("--tier", "process"), ("--memory", "64"), ("--timeout", "1s"), ("--env", "A=b"), ("--cache",), ("--net", "none"),
        ("--bind", "/srv"), ("--code", "1"), ("--lang", "python"), ("--file", "/etc/hosts"), ("--capture", "x"), ("--input", "x"), ("--packages", "x"),
        ("--allow", "example.org"), ("--cpus", "1"), ("--pids", "5")))])
def test_wrong_calls(run, words, message):
    done = run(None, *words, input="")
    assert done.returncode == 125 and message in done.stderr and done.stdout == "", done


def test_a_policy_beside_a_request(run, tmp_path):
    """A file holds, and what names a policy of its own cannot lead around it."""
    policy = tmp_path / "mine.yaml"
    policy.write_text("inherits: strict\n")
    policy.chmod(0o644)
    tmp_path.chmod(0o755)
    request = {"language": "python", "code": "import socket"}
    done = run(None, "--policy", str(policy), "--json", "--request", "-", input=json.dumps(request))
    assert done.returncode == 126 and json.loads(done.stdout)["status"] == "blocked", done
    done = run(None, "--policy", str(policy), "--request", "-", input=json.dumps({**request, "policy": "audit"}))
    assert done.returncode == 125 and "names a policy itself" in done.stderr and done.stdout == "", done


def test_all_faults_of_a_request_are_listed(run):
    done = run(None, "--request", "-", input=json.dumps({"langage": "x", "timeout": -1, "code": 5}))
    assert done.returncode == 125 and all(word in done.stderr for word in ("/langage", "/timeout", "/code")), done.stderr


def test_named_limits_are_held_or_refused(run):
    reply = run({"language": "shell", "code": "head -c 3000000 /dev/zero >f", "limits": {"disk_mb": 1}})
    assert reply["status"] == "error" and "disk" in reply["limits"]["hit"] and "No space" in reply["stderr"]
    reply = run({"language": "shell", "code": "ulimit -n", "limits": {"open_files": 77}})
    assert reply["output"] == "77\n" and reply["limits"]["open_files"] == 77
    reply = run({"language": "shell", "code": "yes", "limits": {"output_bytes": 1000}})
    assert reply["status"] == "output_limit" and len(reply["output"]) + len(reply["stderr"]) == 1000
    reply = run({"language": "shell", "code": "true", "limits": {"memory_mb": 64}})
    assert reply["status"] == ("success" if run.user == "root" else "blocked"), reply["error"]


HOSTILE = {
    "links": "ln -s /etc/passwd a.txt; ln -s / b; mkfifo c.txt; ln /etc/hostname d.txt 2>/dev/null; echo ok >e.txt",
    "deep": "d=.; for i in $(seq 100); do d=$d/x; done; mkdir -p $d; echo hidden >$d/f.txt; echo ok >e.txt",
    "names": "printf 'x' >$'new\\nline.txt'; printf x >$'\\xff.txt'; echo ok >e.txt",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_trees_are_captured_safely(run, name):
    reply = run({"language": "shell", "code": HOSTILE[name], "capture": ["*.txt"]})
    assert reply["files"].get("e.txt", {}).get("text") == "ok\n", reply
    assert not any("root:" in file.get("text", "") for file in reply["files"].values())
    assert reply["files_complete"] is (name != "deep")


def test_captures_that_are_cut_say_why(run):
    reply = run({"language": "shell", "code": "head -c 70000000 /dev/zero >0.txt; ln -s /etc/passwd l.txt; mkfifo p.txt", "capture": ["*.txt"],
                 "limits": {"disk_mb": 200}})
    reasons = {file["path"]: file["reason"] for file in reply["files_skipped"]}
    assert "64 MiB" in reasons["0.txt"] and reasons["l.txt"] == "a symbolic link, which is not followed" and reasons["p.txt"] == "not a regular file"
    assert reply["files_reason"] is None
    reply = run({"language": "shell", "code": "for i in $(seq 1001); do echo >x$i.txt; done", "capture": ["*.txt"]})
    assert (reply["files_complete"], reply["files_reason"]) == (False, "more than 1,000 files match")


@pytest.fixture
def place(run, tmp_path):
    """A directory of whoever runs it."""
    if run.user == "user" and ROOT:
        os.chown(tmp_path, 65534, 65534)
    open_way(tmp_path)
    return tmp_path


def test_captured_files_are_written(run, place):
    script = "mkdir d; echo a >a.txt; printf 'b\\377' >d/b.txt; chmod +x d/b.txt; echo no >c.log"
    words = ("--lang", "shell", "--capture", "*.txt", "-c", script)
    done = run(None, *words, cwd=place)  # where one is
    assert done.returncode == 0 and (place / "a.txt").read_text() == "a\n" and (place / "d/b.txt").read_bytes() == b"b\xff", done
    assert os.access(place / "d/b.txt", os.X_OK) and not os.access(place / "a.txt", os.X_OK) and not (place / "c.log").exists()
    (place / "a.txt").write_text("mine")
    done = run(None, *words, cwd=place)  # nothing is replaced there
    assert done.returncode == 125 and "'a.txt': it is there" in done.stderr and (place / "a.txt").read_text() == "mine"
    done = run(None, "--out", str(place / "new"), *words)
    assert done.returncode == 0 and (place / "new/a.txt").read_text() == "a\n" and f"Captured files in '{place}/new': 2" in done.stderr
    (place / "new/a.txt").write_text("mine")
    done = run(None, "--json", "--out", str(place / "new"), *words)
    assert json.loads(done.stdout)["files"]["a.txt"]["text"] == "a\n" and (place / "new/a.txt").read_text() == "a\n"
    done = run(None, "--lang", "shell", "--out", str(place / "new"), "--capture", "*", "-c", "echo x >f; exit 3")
    assert done.returncode == 3 and (place / "new/f").exists()


def test_captured_files_go_nowhere_else(run, place):
    """Links below the directory, and hidden names where nobody named one."""
    secret = place / "secret"
    secret.mkdir()
    (place / "out").mkdir()
    for name in ("d", "f"):
        (place / "out" / name).symlink_to(secret if name == "d" else secret / "f")
    for path in (secret, place / "out"):
        os.chown(path, place.stat().st_uid, -1)
    done = run(None, "--lang", "shell", "--out", str(place / "out"), "--capture", "**", "-c", "mkdir d; echo x >d/key; echo x >f; echo x >g")
    assert done.returncode == 125 and "'d/key': a link or file is in the way" in done.stderr, done
    assert not list(secret.iterdir()) and (place / "out/f").read_text() == "x\n" and not (place / "out/f").is_symlink() and (place / "out/g").exists()
    done = run(None, "--lang", "shell", "--capture", "**", "-c", "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo x >seen", cwd=place)
    assert done.returncode == 125 and "hidden files need --out" in done.stderr and not (place / ".git").exists() and (place / "seen").exists()


def test_a_program_cannot_disturb_the_capture(run):
    """Whatever is left running is dead before the files are read."""
    script = "(setsid sh -c 'while :; do ln -sf /etc/passwd e.txt; echo x >e.txt; pkill nacre-files; done' >/dev/null 2>&1 &); echo ok >f.txt; sleep 0.2"
    for _ in range(3):
        reply = run({"language": "shell", "code": script, "capture": ["f.txt"]})
        assert reply["status"] == "success" and reply["files"]["f.txt"]["text"] == "ok\n", reply
