"""libnacre from outside: its names, its examples as root and as a user, what it leaves, and programs that try it."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, NACRE, NOBODY, ROOT, environment, open_way
from leftovers import Leftovers
from test_engine import AS_NOBODY, is_sanitized, user_with_boxes  # noqa: F401

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.c"))
HEADER = ROOT / "include/nacre/nacre.h"
LIBRARY = BUILD / "libnacre.so.0"


def flags(*options):
    done = subprocess.run(["pkg-config", *options, "nacre"], capture_output=True, text=True,
                          env={**os.environ, "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def compile_program(source, target, static=False):
    """As a user of the library does, through pkg-config, and without a warning."""
    sanitizers = ["-fsanitize=address,undefined"] if is_sanitized() else []
    counters = ["-lgcov"] if b"__gcov_init" in NACRE.read_bytes() else []
    link = [str(BUILD / "libnacre.a"), "-ljansson", *counters] if static else flags("--libs")
    done = subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", *sanitizers, *flags("--cflags"), source, "-o",
                           target, *link, f"-Wl,-rpath,{target.parent}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def place(programs):
    """The programs, the library and the compiled examples where every user can reach them."""
    shutil.copy(LIBRARY, programs / "libnacre.so.0")
    for name in EXAMPLES:
        compile_program(ROOT / f"examples/{name}.c", programs / name)
    return programs


@pytest.fixture
def home(tmp_path_factory):
    directory = tmp_path_factory.mktemp("home")
    open_way(directory)
    os.chown(directory, NOBODY, NOBODY)
    return directory


def run(*command, home, env=None, timeout=300, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout,
                          env={**environment(home), "NACRE_STATE": str(home / "state"), **(env or {})}, **options)


@pytest.fixture
def leaves_nothing():
    left = Leftovers()
    yield
    left.check()


def test_there_are_examples():
    assert EXAMPLES == ["check", "hello", "history", "monitor", "parallel", "stream"]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "parallel"])
@pytest.mark.parametrize("who", ["root", "user"])
def test_example(place, home, leaves_nothing, request, name, who):
    if who == "user":
        request.getfixturevalue("user_with_boxes")
    done = run(*(AS_NOBODY if who == "user" else []), place / name, home=home)
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("who", ["root", "user"])
def test_five_hundred_mixed_requests_have_five_hundred_right_answers(place, home, leaves_nothing, request, who):
    if who == "user":
        request.getfixturevalue("user_with_boxes")
    done = run(*(AS_NOBODY if who == "user" else []), place / "parallel", "500", "8", home=home, timeout=600)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]
    assert done.stdout.endswith("500 done\n500 of 500 right\n")


def test_examples_say_how_they_are_compiled():
    for name in EXAMPLES:
        assert f"cc {name}.c $(pkg-config --cflags --libs nacre) -o {name} && ./{name}" in (ROOT / f"examples/{name}.c").read_text()


def prototypes():
    """The functions of the header, as the compiler sees them: name -> its type and parameters."""
    text = subprocess.run(["cc", "-E", "-P", HEADER], capture_output=True, text=True, check=True).stdout
    text = re.sub(r"\s+", " ", text)
    found = re.findall(r"\b((?:const )?(?:int|void|char)(?: \*)?) ?(nacre_\w+)\(([^()]*)\);", text)
    return {name: (kind, *(word.strip() for word in words.split(","))) for kind, name, words in found}


def declared():
    return set(prototypes())


def defined(*command):
    listed = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listed.splitlines() if re.search(r" [TDBRVWi] ", line)}


def test_exports_the_header_and_nothing_else():
    names = {name.split("@")[0] for name in defined("nm", "-D", "--defined-only", LIBRARY)}
    versions = {name.split("@@")[1] for name in defined("nm", "-D", "--defined-only", LIBRARY)}
    assert names == declared() and versions == {"NACRE_0.1"}


def test_static_library_shows_the_same_names():
    shown = {name for name in defined("nm", "-g", "--defined-only", BUILD / "libnacre.a") if not name.startswith("__")}
    assert {name for name in shown if not name.startswith((".", "DW."))} == declared()


def test_manual_has_every_prototype():
    synopsis = (ROOT / "man/nacre.3").read_text().split(".Sh DESCRIPTION")[0]
    shown = {}
    for kind, name, words in re.findall(r'^\.Ft (.*)\n\.Fn (nacre_\w+)(.*)$', synopsis, re.M):
        shown[name] = (kind.strip('"'), *(quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', words)))
    assert shown == prototypes() and len(shown) > 20


def test_manual_is_well_formed():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", ROOT / "man/nacre.3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_needs_nothing_but_libc_and_jansson():
    dynamic = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", dynamic))
    assert {name for name in needed if not re.match(r"lib(asan|ubsan|gcov)", name)} <= {"libc.so.6", "libjansson.so.4", "ld-linux-x86-64.so.2"}
    assert "SONAME" in dynamic and "[libnacre.so.0]" in dynamic


def test_header_is_one_for_cpp_too(tmp_path):
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    source = tmp_path / "a.cc"
    source.write_text("#include <nacre/nacre.h>\nint main() { return nacre_version() == nullptr; }\n")
    done = subprocess.run(["c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags("--cflags"), source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_static_library_runs(place, home, leaves_nothing):
    program = compile_program(ROOT / "examples/hello.c", place / "hello-static", static=True)
    assert "libnacre" not in subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    done = run(program, home=home)
    assert (done.returncode, done.stderr) == (0, "")


def test_program_is_found_by_its_variable(place, home, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(place / "hello", elsewhere)
    shutil.copy(place / "libnacre.so.0", elsewhere)
    env = {"LD_LIBRARY_PATH": str(elsewhere)}
    done = run(elsewhere / "hello", home=home, env={**env, "NACRE_PROGRAM": str(place / "nacre")})
    assert done.returncode == 0, done.stderr
    done = run(elsewhere / "hello", home=home, env={**env, "NACRE_PROGRAM": "/nonexistent"})
    assert done.returncode == 1 and "'/nonexistent': No such file" in done.stderr
    done = run(elsewhere / "hello", home=home, env={**env, "NACRE_PROGRAM": "/bin/true"})
    assert done.returncode == 1 and "has ended" in done.stderr
    done = run(elsewhere / "hello", home=home, env={**env, "NACRE_PROGRAM": str(tmp_path)})
    assert done.returncode == 1 and "Find" in done.stderr


@pytest.fixture(scope="module")
def trial(place):
    """tests/library/trial.c: one test per word."""
    return compile_program(ROOT / "tests/library/trial.c", place / "trial")


TRIALS = re.findall(r'^\t\{"(\w+)", ', (ROOT / "tests/library/trial.c").read_text(), re.M)


def test_there_are_trials():
    assert len(TRIALS) >= 12


@pytest.mark.parametrize("name", TRIALS)
def test_trial(trial, place, home, leaves_nothing, name):
    done = run(trial, name, home=home, timeout=120, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done
    if name == "killed":  # whose boxes may still have been dying when the next engine looked
        run(place / "hello", home=home)


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
@pytest.mark.skipif(is_sanitized(), reason="sanitizers do not run under valgrind")
@pytest.mark.parametrize("name", TRIALS)
def test_trial_under_valgrind(trial, place, home, leaves_nothing, name):
    """valgrind knows no pidfds: the library does without, and touches no memory that is not its own and leaks none."""
    done = run("valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--error-exitcode=99", trial, name,
               home=home, timeout=300, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done
    if name == "killed":
        run(place / "hello", home=home)


def test_program_that_dies_leaves_nothing(trial, place, home, leaves_nothing):
    """The engine finds that its client is gone, however that went."""
    done = run(trial, "die", home=home, timeout=60)
    assert done.returncode == -9
