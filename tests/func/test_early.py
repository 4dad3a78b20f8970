"""A plain `nacre exec` begins its spawner before libc: what that must not change, and what it must be without."""

import json
import os
import pathlib
import platform
import random
import re
import shlex
import shutil
import subprocess
import time

import pytest

from conftest import BUILD, NACRE, NOBODY, environment, open_way
from leftovers import descendants, lives

PROGRAMS = ("nacre", "nacre-exec", "nacre-spawner", "nacre-init", "nacre-files")
EARLY = BUILD / "libearly.a"
SMALL = BUILD / "nacre-exec"


@pytest.fixture(scope="module", autouse=True)
def early():
    if not EARLY.exists():
        pytest.skip("this build has no early start")


@pytest.fixture(params=[0, NOBODY], ids=["root", "user"])
def place(request, tmp_path):
    """A directory with the programs, and options of subprocess.run for the user."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    open_way(tmp_path)
    for name in PROGRAMS:
        if (BUILD / name).exists():
            shutil.copy(BUILD / name, tmp_path / name)
    user = request.param
    more = {"user": user, "group": user, "extra_groups": []} if user else {}
    return tmp_path, {"env": environment(tmp_path), "timeout": 60, "capture_output": True, "text": True, "cwd": "/",
                      "stdin": subprocess.DEVNULL, **more}


def calls_of(log, *words):
    """The system calls of the process that is started, by name."""
    subprocess.run(["strace", "-o", log, NACRE, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return [line.split("(")[0] for line in log.read_text().splitlines()]


def test_it_needs_nothing_that_is_not_there_yet():
    """Whatever else the compiler wants there would be called before it is relocated."""
    undefined = subprocess.run(["nm", "-u", EARLY], capture_output=True, text=True, check=True).stdout.split()
    assert {word for word in undefined if word != "U" and not word.endswith(":")} == {"_start", "nc_early"}
    relocated = subprocess.run(["readelf", "-rW", EARLY], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"section '\.rela\.(data|rodata|init)", relocated), "pointers in static data"
    names = subprocess.run(["nm", NACRE], capture_output=True, text=True, check=True).stdout
    entry = next(line.split()[0] for line in names.splitlines() if line.endswith(" nc_early_entry"))
    header = subprocess.run(["readelf", "-h", NACRE], capture_output=True, text=True, check=True).stdout
    assert int(header.split("Entry point address:")[1].split()[0], 16) == int(entry, 16)


@pytest.mark.parametrize("words, is_early", [
    (["exec", "--", "true"], True),
    (["exec", "true", "--bind"], True),
    (["exec", "--memory", "64MB", "--timeout=9", "--json", "--env", "A=--bind", "--", "true"], True),
    (["exec", "--memory", "--bind", "--", "true"], True),  # a value, if a wrong one
    (["exec", "--bind", "/usr", "--", "true"], False),
    (["exec", "--json", "--bind=/usr", "--", "true"], False),
    (["exec", "--tier", "process", "--", "true"], False),
    (["exec", "--image", "host", "--", "true"], False),
    (["exec", "--tty", "--", "true"], False),
    (["exec", "--timeoutx", "9", "--", "true"], False),
    (["exec", "--help"], False),
    (["exec", "--json"], False),
    (["exec", "--memory"], False),
    (["exec", "--"], False),
    (["exec"], False),
    (["--config", "/nonexistent", "exec", "--", "true"], False),
    (["executor", "--", "true"], False),
    (["exe", "--", "true"], False),
    ([], False),
])
def test_only_what_is_plain_begins_early(words, is_early, tmp_path):
    if not shutil.which("strace"):
        pytest.skip("no strace")
    calls = calls_of(tmp_path / "calls", *words)
    assert ("clone" in calls[:12]) == is_early, calls[:20]


def programs_of(log, options, *command):
    """All that is executed, by name."""
    subprocess.run(["strace", "-f", "-qq", "-e", "trace=execve", "-o", log, *command], **{**options, "user": 0, "group": 0})
    return [pathlib.Path(path).name for path in re.findall(r'execve\("([^"]*)"', log.read_text())]


needs_small = pytest.mark.skipif(not SMALL.exists(), reason="this build has no nacre-exec: no musl")


@needs_small
@pytest.mark.parametrize("words, is_small", [
    (["--", "true"], True),
    (["--memory", "64MB", "--env", "A=b", "true"], True),
    (["--json", "--", "true"], False),
    (["--tier", "process", "--", "true"], False),
])
def test_a_small_worker_does_what_is_plain(words, is_small, place, tmp_path):
    directory, options = place
    names = programs_of(tmp_path / "log", options, directory / "nacre", "exec", *words)
    assert ("nacre-exec" in names) == is_small and names.count("nacre") == 1 and names[-1] == "true", names


LINES = (["--", "sh", "-c", "cat; echo out; echo err >&2; exit 7"],
         ["--timeout", "0.3", "--", "sleep", "60"],
         ["--memory", "16MB", "--", "python3", "-c", "x = bytearray(64 << 20)"],
         ["--output", "10", "--", "sh", "-c", "echo 123456789012345; sleep 60"],
         ["--pids", "3", "--", "sh", "-c", "for i in 1 2 3 4 5; do sleep 0.1 & done; wait"],
         ["--env", "A=b c", "--env", "A=d", "sh", "-c", "echo $A; env | sort"],
         ["--", "unshare", "-r", "true"],
         ["--", "sh", "-c", "kill -9 $$"],
         ["--", "/nonexistent"], ["--", "/etc/passwd"], ["--", "/"],
         ["--memory", "lots", "--", "true"], ["--env", "x", "true"], ["--files", "1", "true"], ["--timeout", "0", "true"],
         ["true", "--json"], ["true", *["word"] * 5000], ["true", *["x" * 100_000] * 12])


@needs_small
def test_the_small_worker_says_the_same(place):
    """Without it nacre does it all: the same words, codes and output."""
    directory, options = place
    options.pop("stdin")

    def outcomes():
        for words in LINES:
            done = subprocess.run([directory / "nacre", "exec", *words], input="in\n", **options)
            yield words[:4], done.returncode, done.stdout, done.stderr

    small = list(outcomes())
    (directory / "nacre-exec").unlink()
    for one, other in zip(small, outcomes(), strict=True):
        assert one == other
    (directory / "nacre-exec").write_bytes(b"\x7fELF, or so it says")
    (directory / "nacre-exec").chmod(0o755)
    assert next(outcomes()) == small[0], "one that cannot be executed"


@needs_small
def test_where_there_is_a_configuration_it_is_read(place, tmp_path):
    directory, options = place
    (tmp_path / ".config/nacre").mkdir(parents=True)
    (tmp_path / ".config/nacre/resource_limits.yaml").write_text("default_limits:\n  execution_time_seconds: 1\n")
    names = programs_of(tmp_path / "log", options, directory / "nacre", "exec", "--", "true")
    assert [name for name in names if name in ("nacre", "nacre-exec")] == ["nacre", "nacre-exec", "nacre"], names
    done = subprocess.run([directory / "nacre", "exec", "--", "sleep", "60"], **options)
    assert done.returncode == 124, done.stderr
    done = subprocess.run([directory / "nacre", "exec", "--timeout", "x", "--", "true"], **options)
    assert done.returncode == 125 and done.stderr.count("--timeout") == 1, done.stderr


@needs_small
def test_nobody_else_starts_it(place):
    directory, options = place
    for words in (["exec", "--", "true"], []):
        done = subprocess.run([directory / "nacre-exec", *words], **options)
        assert (done.returncode, done.stdout, done.stderr) == (125, "", "nacre-exec: It is nacre that starts this\n")
    options["env"]["NACRE_BEGUN"] = str(os.getpid())  # as it tells nacre; there is no spawner
    done = subprocess.run([directory / "nacre", "exec", "--", "echo", "hi"], **options)
    assert (done.returncode, done.stdout) == (125, "") and "Greet the spawner" in done.stderr
    assert leftovers(str(directory)) == []


@needs_small
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names an instruction of x86")
def test_neither_it_nor_the_spawner_asks_the_processor():
    for name in ("nacre-exec", "nacre-spawner"):
        code = subprocess.run(["objdump", "-d", BUILD / name], capture_output=True, text=True, check=True).stdout
        assert "<main>:" in code and "cpuid" not in code, name


OVERFLOWS = {
    "none": "memcpy(bytes, text, 8)",
    "memcpy": "memcpy(bytes, text, n)",
    "memmove": "memmove(bytes, text, n)",
    "memset": "memset(bytes, 0, n)",
    "snprintf": 'snprintf(bytes, n, "%s", text)',
    "read": "(void)!read(open(\"/dev/zero\", O_RDONLY), bytes, n)",
    "pread": "(void)!pread(open(\"/dev/zero\", O_RDONLY), bytes, n, 0)",
    "readlink": '(void)!readlink("/proc/self/exe", bytes, n)',
    "heap": "memcpy(heap, text, n + 8)",
    "index": "bytes[n] = 1",
}


@needs_small
@pytest.mark.parametrize("what", OVERFLOWS)
def test_what_overflows_there_ends_at_once(what, tmp_path):
    """With the flags that its files are compiled with, and linked as it is."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    flags = shlex.split(next(entry["command"] for entry in commands if entry["output"].endswith("libsmall-kernel.a.p/base_error.c.o")))
    rule = re.search(r"^build nacre-exec: .*\n((?: .*\n)*)", (BUILD / "build.ninja").read_text(), re.M).group(1)
    link = [word for word in shlex.split(re.search(r"LINK_ARGS = (.*)", rule).group(1)) if not word.endswith(".a.p")]
    (tmp_path / "overflow.c").write_text("""
        int main(int argc, char **argv)
        {
            char bytes[16], *heap = malloc(16), text[64] = "0123456789012345678901234567890123456789";
            size_t n = 16 + (size_t)argc;

            (void)argv;
            %s;
            return bytes[0] == 'x' && heap[0] == 'y';
        }
    """ % OVERFLOWS[what])
    keep = [word for word in flags if not word.startswith(("-M", "-o", "-c", "-Wl")) and not word.endswith((".o", ".d", "error.c"))]
    subprocess.run([*keep, "-w", "-fPIE", tmp_path / "overflow.c", "-o", tmp_path / "overflow",
                    *[word for word in link if word.startswith(("-static-pie", "-nost", "/usr/lib"))]], check=True, cwd=BUILD)
    done = subprocess.run([tmp_path / "overflow"])
    assert done.returncode == (0 if what == "none" else -4), "SIGILL"


def test_it_is_what_it_was(place):
    directory, options = place
    for words, expected in ((["--", "sh", "-c", "echo out; echo err >&2; exit 7"], (7, "out\n", "err\n")),
                            (["--timeout", "60", "--env", "A=b c", "sh", "-c", "echo $A; kill -9 $$"], (137, "b c\n", "")),
                            (["--", "/nonexistent"], (127, "", None))):
        done = subprocess.run([directory / "nacre", "exec", *words], **options)
        assert (done.returncode, done.stdout) == expected[:2] and expected[2] in (None, done.stderr), done.stderr


def test_it_is_found_as_before(place, tmp_path):
    """By a link, by PATH, and by the name that the caller makes up."""
    directory, options = place
    (tmp_path / "links").mkdir()
    (tmp_path / "links/pearl").symlink_to(directory / "nacre")
    for argv, more in ((["pearl"], {"executable": tmp_path / "links/pearl"}),
                       (["nacre"], {"env": {"PATH": f"{directory}:/bin"}}),
                       (["/nonexistent/nacre"], {"executable": directory / "nacre"})):
        done = subprocess.run([*argv, "exec", "--", "echo", "hi"], **{**options, **more})
        assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")


def leftovers(text):
    return subprocess.run(["pgrep", "-f", text], capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("words, message", [
    (["--memory", "lots"], "nacre exec: Option '--memory': found 'lots', expected a size such as 64MB, up to 1 TB\n"),
    (["--env", "novalue"], "nacre exec: Option '--env': found 'novalue', expected NAME=VALUE\n"),
    (["--env", "A=b", "--timeout", "0"], "nacre exec: Option '--timeout': found '0', expected a time such as 30s, up to 7 days\n"),
])
def test_wrong_words_leave_nothing(place, words, message):
    directory, options = place
    done = subprocess.run([directory / "nacre", "exec", *words, "--", "true"], **options)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == message + "Try: nacre exec --help\n"
    assert leftovers(str(directory)) == []


def test_a_broken_configuration_is_told_once(place, tmp_path):
    directory, options = place
    (tmp_path / ".config/nacre").mkdir(parents=True)
    (tmp_path / ".config/nacre/nacre.yaml").write_text("nosuch: 1\n")
    done = subprocess.run([directory / "nacre", "exec", "--", "true"], **options)
    assert (done.returncode, done.stdout) == (125, "") and done.stderr.count("nosuch") == 1, done.stderr
    assert leftovers(str(directory)) == []


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams(place, closed):
    """What is opened first must not land where programs look for their streams."""
    directory, options = place
    options.pop("stdin")

    def close():
        for fd in closed:
            os.close(fd)

    done = subprocess.run([directory / "nacre", "exec", "--", "sh", "-c", "echo out; ls -l /proc/self/fd >&2"], preexec_fn=close,
                          **options)
    assert done.stdout == ("" if 1 in closed else "out\n")
    assert "socket" not in done.stderr


def test_descriptors_of_the_caller_do_not_matter(place):
    """Also not one where the spawner expects its own."""
    directory, options = place
    read_fd, write_fd = os.pipe()
    done = subprocess.run([directory / "nacre", "exec", "--", "sh", "-c", "ls /proc/self/fd | wc -l"], **options,
                          preexec_fn=lambda: [os.dup2(read_fd, fd) for fd in (3, 4, 5)], close_fds=False)
    os.close(read_fd)
    os.close(write_fd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_without_its_spawner_it_says_so(place):
    directory, options = place
    (directory / "nacre-spawner").unlink()
    done = subprocess.run([directory / "nacre", "exec", "--", "true"], **options)
    assert done.returncode == 125 and "nacre-spawner: No such file or directory" in done.stderr
    (directory / "nacre-spawner").write_bytes(b"\x7fELF, or so it says")
    (directory / "nacre-spawner").chmod(0o755)
    done = subprocess.run([directory / "nacre", "exec", "--", "true"], **options)
    assert (done.returncode, done.stderr) == (125, "nacre: nacre-spawner cannot be executed\n")
    assert leftovers(str(directory)) == []


def test_without_proc(place):
    directory, options = place
    if options.get("user"):
        pytest.skip("mounts are root's")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", directory / "nacre", "exec", "--",
                           "true"], **options)
    assert (done.returncode, done.stderr) == (125, "nacre exec: /proc is not mounted here, and nothing works without it: mount -t proc proc /proc\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="inject.c knows the registers of x86_64 only")
def test_what_fails_there_is_done_later(place, tmp_path):
    """Each of its calls refused in turn: main does the same in its own time."""
    directory, options = place
    user = options.pop("user", 0)
    options.pop("group", None), options.pop("extra_groups", None)
    source = pathlib.Path(__file__).resolve().parents[1] / "fault/inject.c"
    subprocess.run(["cc", "-O2", source, "-o", tmp_path / "inject"], check=True)
    for number in (267, 269, 53, 56, 72):  # readlinkat, faccessat, socketpair, clone, fcntl
        done = subprocess.run([tmp_path / "inject", tmp_path / "report", str(user), "0", "1", str(number), "1", "1", "--",
                               directory / "nacre", "exec", "--", "echo", "hi"], **options)
        assert "hit" in (tmp_path / "report").read_text().split(), number
        assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", ""), number


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_killed_at_any_moment_it_leaves_no_process(place, signal):
    """The worker may be on its way yet when its spawner dies."""
    directory, options = place
    number = random.Random(1)
    for _ in range(8):
        nap = f"sleep {number.randint(10 ** 6, 10 ** 9)}"
        process = subprocess.Popen([directory / "nacre", "exec", "--", *nap.split()], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   **{name: options[name] for name in ("user", "group", "extra_groups", "env", "cwd") if name in options})
        time.sleep(number.random() * 0.012)
        below = descendants(process.pid)
        subprocess.run(["kill", f"-{signal}", str(process.pid)], check=True)
        process.wait(timeout=60)
        deadline = time.monotonic() + 20
        while any(map(lives, below)) or leftovers(nap):
            assert time.monotonic() < deadline, "something outlived it"
            time.sleep(0.02)
    subprocess.run([directory / "nacre", "exec", "--", "true"], **options)  # what was left of groups is swept


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["small", "json"])
def test_the_worker_is_locked_in_before_it_speaks(tmp_path, words):
    """And so before it has met a byte that a stranger wrote."""
    subprocess.run(["strace", "-ff", "-s", "16", "-o", tmp_path / "log", NACRE, "exec", *words, "--", "echo", "stranger"],
                   capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=True)
    logs = [path.read_text().splitlines() for path in tmp_path.glob("log.*")]
    worker = next(lines for lines in logs if any(line.startswith("read(") and "stranger" in line for line in lines))

    def first(pattern):
        return next(i for i, line in enumerate(worker) if re.search(pattern, line))

    word = first("^sendmsg")
    for lock in (r"^prctl\(PR_SET_NO_NEW_PRIVS, 1", r"^landlock_restrict_self.* = 0", r"^seccomp\(SECCOMP_SET_MODE_FILTER.* = 0"):
        assert first(lock) < word, lock
