"""The rules of the house, read from the files themselves: includes, lengths, lists, man page, help."""

import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, NACRE, ROOT

LONGEST_FILE = 1500
LONGEST_FUNCTION = 120
# Exceptions stand here by name, with a reason.
LONG_FILES = {}
LONG_FUNCTIONS = {}


def layers():
    """The table of docs/architecture.md: folder -> folders that it may include from."""
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `src/([a-z]+)/` \|[^|]*\| ([^|]*) \|$", text, re.M)
    assert rows, "docs/architecture.md has lost its table"
    table = {}
    for folder, knows in rows:
        names = set(re.findall(r"[a-z]+", knows)) - {"nobody"}
        if "all" in names:
            names = set(table)
        assert names <= set(table), f"{folder} knows {names - set(table)}, which stand below it in the table"
        table[folder] = names
    return table


def sources():
    return sorted([*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("include/**/*.h")])


def forbidden_includes(table, path, text):
    """The include lines of one file that its folder may not have."""
    folder = path.relative_to(ROOT / "src").parts[0]
    wrong = []
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
        target = name.split("/")[0]
        if target not in table[folder] | {folder, "nacre"}:
            wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    return wrong


def test_every_folder_stands_in_the_table():
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    assert folders == set(layers())
    for folder in folders:
        assert (ROOT / "src" / folder / "README.md").is_file()


def test_no_folder_includes_from_one_that_it_may_not_know():
    table = layers()
    wrong = [line for path in sources() if path.is_relative_to(ROOT / "src")
             for line in forbidden_includes(table, path, path.read_text())]
    assert not wrong, "\n".join(wrong)


def test_the_include_rule_itself_finds_a_forbidden_line():
    table = layers()
    base = ROOT / "src/base/x.c"
    assert forbidden_includes(table, base, '#include "kernel/probe.h"\n')
    assert forbidden_includes(table, base, '  # include "cli/cli.h"\n')
    assert not forbidden_includes(table, base, '#include "base/fd.h"\n#include "nacre/nacre.h"\n#include <errno.h>\n')
    assert not forbidden_includes(table, ROOT / "src/cli/x.c", '#include "kernel/probe.h"\n')


# How a holder makes boxes: its messages, their flags, its mechanisms, and where in a box it puts things.
HOLDERS_OWN = re.compile(r'\bnc_box_order\b|\bNC_ORDER_(?!H\b)\w+|\bnc_box_host\b|\bNC_BOX_(?:HELLO|RUN|KILL|READY|FORGET|NEXT|SIGNAL|FREEZE|ASK|RESIZE|HAD|INTRODUCE)\b'
                         r'|[lL]andlock|"/workspace|/opt/nacre')
# Who starts processes, lists those of the host, or writes down who said what, knows their names.
SPAWNERS_NAME = re.compile(r"[sS]pawner")
KNOW_ITS_NAME = {"cli", "watch", "recorder"}
HOLDERS = {"base", "kernel", "inside", "spawner", "relay", "tier"}


def test_nobody_above_the_tiers_says_how():
    wrong = [f"{path.relative_to(ROOT)}: {found.group()}" for path in sources() if path.is_relative_to(ROOT / "src")
             and path.relative_to(ROOT / "src").parts[0] not in HOLDERS for found in HOLDERS_OWN.finditer(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S))]
    wrong += [f"{path.relative_to(ROOT)}: {found.group()}" for path in sources() if path.is_relative_to(ROOT / "src")
              and path.relative_to(ROOT / "src").parts[0] not in HOLDERS | KNOW_ITS_NAME for found in SPAWNERS_NAME.finditer(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S))]
    assert not wrong, "\n".join(wrong)
    assert all(HOLDERS_OWN.search(text) for text in ("struct nc_box_order order;", "NC_ORDER_TTY", "int landlock", 'cd("/workspace")', "NC_BOX_NEXT"))
    assert not HOLDERS_OWN.search("#ifndef NC_ORDER_H")


def functions(text):
    """Name and length of each function: from the line of its opening brace to that of the closing one."""
    lines = text.split("\n")
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = "\n".join(lines[max(0, start - 8):start])
            names = re.findall(r"(\w+)\(", head.rsplit("\n\n", 1)[-1])
            yield names[0] if names else f"line {start}", number - start + 1
            start = None


def test_lengths():
    long = []
    for path in sources():
        text = path.read_text()
        name = str(path.relative_to(ROOT))
        if text.count("\n") > LONG_FILES.get(name, LONGEST_FILE):
            long.append(f"{name}: {text.count(chr(10))} lines")
        for function, length in functions(text):
            if length > LONG_FUNCTIONS.get(function, LONGEST_FUNCTION):
                long.append(f"{name}: {function}: {length} lines")
    assert not long, "\n".join(long)


def test_the_length_rule_itself_finds_a_long_function():
    body = "int f(void)\n{\n" + "\tg();\n" * 200 + "}\n"
    assert list(functions(body)) == [("f", 202)]


@pytest.mark.parametrize("header", [path for path in sources() if path.suffix == ".h"],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_header_compiles_alone(header):
    done = subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Werror", "-fsyntax-only", "-x", "c",
                           f"-I{ROOT}/src", f"-I{ROOT}/include", header], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", ["strcpy(a, b)", "sprintf(a, b)", "strtok(a, b)", "atoi(a)", "system(a)", "alloca(3)",
                                  "dup(3)", "exit(1)", "strncpy(a, b, 2)", "strcat(a, b)", "rand()"])
def test_banned_function_does_not_compile(call):
    code = f"void f(char *a, char *b);\nvoid f(char *a, char *b)\n{{\n\t(void)a, (void)b, (void){call};\n}}\n"
    base = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-x", "c", "-"]
    headers = "#include <alloca.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
    # exit(1) is void: casting it is fine; without the ban everything compiles
    assert subprocess.run(base, input=headers + code, text=True, capture_output=True).returncode == 0
    banned = ["-Werror=implicit-function-declaration", "-include", f"{ROOT}/src/base/banned.h"]
    done = subprocess.run([*base, *banned], input=headers + code, text=True, capture_output=True)
    assert done.returncode != 0 and "nc_banned_" in done.stderr


def test_every_unit_has_a_test():
    """One test file per module of base and config; kernel's probes are tested from outside."""
    tested = {path.stem.removeprefix("test-") for path in (ROOT / "tests/unit").glob("test-*.c")}
    elsewhere = {"load", "reader", "scalar", "schema", "policy_file", "tier_ids"}  # by test-config, test-book and test_doctor
    for folder in ("base", "config"):
        modules = {path.stem for path in (ROOT / "src" / folder).glob("*.c")}
        assert modules - tested - elsewhere == set()


def test_unit_tests_are_built_where_the_suite_runs():
    """A build directory that `make run` made knows of no tests; `make test` must tell it."""
    listed = subprocess.run(["meson", "test", "-C", BUILD, "--list"], capture_output=True, text=True).stdout
    wanted = {path.stem.removeprefix("test-") for path in (ROOT / "tests/unit").glob("test-*.c")}
    assert wanted <= set(re.findall(r"[a-z0-9_-]+$", listed, re.M))


def packages():
    lines = [line for line in (ROOT / "tools/packages").read_text().splitlines() if line and not line.startswith("#")]
    return {line.split()[1] for line in lines}


def test_every_package_has_its_reason():
    text = (ROOT / "docs/dependencies.md").read_text()
    documented = set(re.findall(r"^\| `([^`]+)` \|", text, re.M))
    assert documented == packages()


def verbs(words=()):
    """All verbs with their help texts, found through --help alone."""
    text = subprocess.run([NACRE, *words, "--help"], capture_output=True, text=True, check=True).stdout
    yield words, text
    listed = re.search(r"\nVerbs:\n(.*?)\n\n", text, re.S)
    for verb in re.findall(r"^  (\S+)", listed[1], re.M) if listed else []:
        yield from verbs((*words, verb))


def man_text():
    done = subprocess.run(["mandoc", "-T", "utf8", ROOT / "man/nacre.1"], capture_output=True, text=True, check=True)
    return re.sub(r".\x08", "", done.stdout).replace("\u2010", "-").replace("\u2212", "-")


def test_man_page_and_help_agree():
    text = man_text()
    names, options = set(), set()
    for words, help_text in verbs():
        if words:
            names.add(" ".join(words))
        options |= set(re.findall(r"--[a-z][a-z-]*", help_text.split("\nOptions:\n")[1].split("\nExample:")[0]))
    for name in names:
        assert f"nacre {name}" in text, f"nacre(1) lacks {name}"
    assert set(re.findall(r"--[a-z][a-z-]*", text)) == options
    synopsis = text.split("\nSYNOPSIS\n")[1].split("\nDESCRIPTION")[0]
    leaves = {name for name in names if not any(other.startswith(name + " ") for other in names)}
    lines = re.findall(r"^ +nacre (.*)$", synopsis, re.M)
    assert len(lines) == len(leaves)
    assert all(any(line.startswith(leaf) for line in lines) for leaf in leaves)


def test_man_page_is_well_formed():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", ROOT / "man/nacre.1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_man_page_documents_every_configuration_key():
    shown = subprocess.run([NACRE, "config", "show"], capture_output=True, text=True, check=True).stdout
    text = man_text()
    for key in re.findall(r"^  ([a-z_.]+) ", shown, re.M):
        for part in key.split("."):
            assert part in text, f"nacre(1) lacks {key}"


def test_makefile_targets_are_all_in_help():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.M))
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\S+) ", shown, re.M)) == targets
    for name in ("run", "test", "build", "check", "sanitize", "coverage", "fuzz", "bench", "install", "clean", "help"):
        assert name in targets


def test_ci_runs_what_the_readme_says():
    assert re.findall(r"^make .*$", (ROOT / ".ci/run").read_text(), re.M) == ["make test"]
    readme = (ROOT / "README.md").read_text()
    assert "make run" in readme and "make test" in readme


def test_links_in_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


@pytest.mark.alone  # it builds anew what the others run
def test_install_honours_destdir_and_prefix(tmp_path):
    done = subprocess.run(["meson", "configure", BUILD, "-Dprefix=/opt/pearl"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["meson", "install", "-C", BUILD, "--destdir", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run(["meson", "configure", BUILD, "-Dprefix=/usr/local"], check=True, capture_output=True)
    installed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    library = next(name for name in installed if name.endswith("/libnacre.a")).rpartition("/")[0]
    assert installed - {"opt/pearl/libexec/nacre/nacre-exec"} == {  # which needs musl
        "opt/pearl/bin/nacre",
        "opt/pearl/libexec/nacre/nacre-files",
        "opt/pearl/libexec/nacre/nacre-init",
        "opt/pearl/libexec/nacre/nacre-egress",
        "opt/pearl/libexec/nacre/nacre-recorder",
        "opt/pearl/libexec/nacre/nacre-relay",
        "opt/pearl/libexec/nacre/nacre-spawner",
        "opt/pearl/libexec/nacre/nacre-sudo",
        "opt/pearl/share/man/man1/nacre.1",
        "opt/pearl/share/man/man3/nacre.3",
        "opt/pearl/include/nacre/nacre.h",
        f"{library}/libnacre.a",
        f"{library}/libnacre.so",
        f"{library}/libnacre.so.0",
        f"{library}/libnacre.so.0.1.0",
        f"{library}/pkgconfig/nacre.pc",
        "opt/pearl/share/bash-completion/completions/nacre",
        "opt/pearl/share/doc/nacre/examples/nacre.yaml",
        "opt/pearl/share/doc/nacre/examples/resource_limits.yaml",
        "opt/pearl/share/doc/nacre/examples/security_policies.yaml",
        "opt/pearl/share/doc/nacre/examples/serve.yaml",
    }
    assert subprocess.run([tmp_path / "opt/pearl/bin/nacre", "--version"]).returncode == 0


def test_spawner_links_nothing_but_libc():
    listed = subprocess.run(["ldd", BUILD / "nacre-spawner"], capture_output=True, text=True, check=True).stdout
    if "statically linked" in listed:
        rule = re.search(r"^build nacre-spawner: .*\n((?: .*\n)*)", (BUILD / "build.ninja").read_text(), re.M).group(1)
        assert not re.search(r"\s-l\w|jansson|yaml|seccomp", rule), rule
        return
    names = {line.split()[0].split("/")[-1] for line in listed.splitlines()}
    sanitizers = {name for name in names if re.match(r"lib(asan|ubsan|gcov|m|dl|pthread|rt|gcc_s|stdc\+\+)\.", name)}
    assert {name.split(".")[0] for name in names - sanitizers} <= {"linux-vdso", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}


def test_spawner_can_be_read_in_one_sitting():
    code = (re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S) for path in (ROOT / "src/spawner").glob("*.[ch]"))
    lines = [line for text in code for line in text.splitlines() if line.strip() and not line.startswith("#include")]
    assert len(lines) < 3200  # the aim was 2,500; homes, zygotes, a thousand boxes and what they cost took more
