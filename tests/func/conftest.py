"""What the black-box tests share: the program, ways to run it, and honest skips."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NACRE_BUILD", ROOT / "build"))
NACRE = BUILD / "nacre"
HOLDER = BUILD / "tests/holder/nacre-plain"
NOBODY = 65534
# what boxes can do and hold, by way (see below), as their holder says when it greets (wire.read_terms); test_holders.py holds
# this against that
ALL_TERMS = {"stops", "shares", "mounts", "warms", "memory", "cpus", "cpu_time", "pids", "disk", "inodes"}
TERMS = {"direct": ALL_TERMS, "relay": ALL_TERMS, "holder": {"stops", "shares"}}


# Look at the whole machine, or measure it, or load it: `make test` runs them after the others, one by one.
ALONE = {
    "test_delegation",  # groups of all users
    "test_deps",  # installs packages
    "test_doctor",  # groups at the top
    "test_guest", "test_guest_cgroup", "test_guest_exec", "test_guest_top",  # machines of their own, with clocks
    "test_limits",  # shares of the processors
    "test_prometheus",  # alerts about slow starts
    "test_serve_soak", "test_soak",  # as much as it can take
}


def pytest_configure(config):
    # under nohup or in the background these are ignored, and would be by the programs that tests send them to: what
    # is handled here is as usual in whatever is started
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    config.addinivalue_line("markers", "alone: nothing else may run on the machine")
    config.addinivalue_line("markers", "wants(...): what the terms of a holder must have for this test")


def is_redundant(item):
    """Another holder has one tier, and is the same whoever starts it."""
    params = getattr(item, "callspec", None) and item.callspec.params or {}
    return params.get("way") == "holder" and (params.get("tier", "container") != "container" or params.get("play", "root") != "root")


def pytest_collection_modifyitems(config, items):
    redundant = [item for item in items if is_redundant(item)]
    config.hook.pytest_deselected(items=redundant)
    items[:] = [item for item in items if item not in redundant]
    for item in items:
        if item.path.stem in ALONE:
            item.add_marker("alone")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """NACRE_TESTS_MUST_RUN=1 turns a skip into a failure."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("NACRE_TESTS_MUST_RUN") == "1":
        report.outcome = "failed"
        report.longrepr = f"must run, but: {report.longrepr}"


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skipped: {report.nodeid}: {report.longrepr[2]}")


def environment(home):
    """A clean environment; make coverage speaks to its run-time through GCOV_ variables."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("GCOV_")}
    return {"PATH": os.environ["PATH"], "HOME": str(home), **kept}


@pytest.fixture
def nacre(tmp_path):
    """Runs nacre with the given arguments and an environment of the test's own."""

    def run(*args, env=None, **options):
        options.setdefault("capture_output", True)
        options.setdefault("text", True)
        options.setdefault("timeout", 60)
        return subprocess.run([str(NACRE), *map(str, args)], env={**environment(tmp_path), **(env or {})}, **options)

    return run


def run_in(wrapper, *args, **options):
    """Runs nacre behind a wrapper such as setpriv or unshare."""
    options.setdefault("timeout", 60)
    return subprocess.run([*wrapper, str(NACRE), *args], capture_output=True, text=True, **options)


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(scope="module")
def programs():
    """Copies of the programs where every user can reach them."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="nacre-test-", dir="/var/tmp"))
    directory.chmod(0o755)
    for name in ("nacre", "nacre-spawner", "nacre-recorder", "nacre-egress", "nacre-init", "nacre-files", "nacre-relay", "nacre-sudo", *(path.name for path in BUILD.glob("nacre-exec"))):
        shutil.copy(BUILD / name, directory / name)
    if HOLDER.exists():  # of a build with tests
        shutil.copy(HOLDER, directory / "nacre-plain")
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(params=["direct", "relay", "holder"])
def way(request):
    """Whether the spawner is spoken to as it is, or through two relays and a byte stream between them (wire.through_relay), or
    another holder of boxes in its place, which has plain processes of the tier "remote" (wire.through_holder)."""
    return request.param


@pytest.fixture
def relay_line(way, request):
    """What a script says for that, before it makes its Worker."""
    if way == "direct":
        return "\n"
    program = request.getfixturevalue("programs") / {"relay": "nacre-relay", "holder": "nacre-plain"}[way]
    return f"\nthrough_{way}({str(program)!r})\n"


@pytest.fixture
def terms(way):
    """Skips a test that wants what the boxes of this way cannot do or hold, with that as the reason: terms("mounts")."""
    def want(*what):
        missing = [each for each in what if each not in TERMS[way]]
        if missing:
            pytest.skip(f"the terms of these boxes are without: {', '.join(missing)}")
    return want


@pytest.fixture
def nacre_by(nacre, programs, tmp_path):
    """What runs nacre by "root", or by "user": somebody who owns nothing."""
    def user(*args):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", programs / "nacre", *map(str, args)],
                              env=environment(tmp_path), cwd="/", capture_output=True, text=True, timeout=60)

    def find(name):
        if name == "root":
            return nacre
        open_way(tmp_path)
        tmp_path.chmod(0o777)
        return user
    return find


@pytest.fixture
def user_namespaces():
    """For tests of what a host with user namespaces must answer; a chroot, for one, has none."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces here")


def open_way(directory):
    """Lets every user pass and look through what pytest has closed on the way to a directory; nothing else is changed."""
    for part in (directory, *directory.parents):
        mode = part.stat().st_mode
        if mode & 0o005 != 0o005:
            part.chmod(mode & 0o7777 | 0o055)


@pytest.fixture
def reachable_copy(as_root, tmp_path_factory):
    """A copy of nacre that an ordinary user may execute, wherever the build tree is."""
    directory = tmp_path_factory.mktemp("bin")
    open_way(directory)
    target = directory / "nacre"
    target.write_bytes(NACRE.resolve().read_bytes())
    target.chmod(0o755)
    return target
