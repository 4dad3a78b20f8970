"""What programs in a box are told of its limits: runtimes that size themselves by the machine's memory take the box's."""

import json
import os
import re
import shutil

import pytest

from serving import Daemon

MB = 1 << 20
HEAP = "console.log(require('v8').getHeapStatistics().heap_size_limit)"
MEMINFO = "import os; print(os.cpu_count(), os.sysconf('SC_NPROCESSORS_ONLN'), *open('/proc/meminfo').read().split()[:2])"
LOOK = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max /sys/devices/system/cpu/online; head -n 1 /proc/meminfo"


def expected(memory_mb, cpu="100000 100000", online="0"):
    return f"{memory_mb * MB}\n{cpu}\n{online}\nMemTotal:       {memory_mb * 1024:8d} kB\n"


@pytest.fixture(params=["root", "user"])
def caller(request, nacre_by):
    return nacre_by(request.param)


@pytest.mark.parametrize("memory", [64, 256, 700])
def test_exec(nacre, memory):
    done = nacre("exec", "--memory", f"{memory}MB", "--", "sh", "-c", LOOK)
    assert done.stdout == expected(memory), done


def test_what_holds_without_a_word(caller):
    assert caller("exec", "--", "sh", "-c", LOOK).stdout == expected(512)


def test_a_part_of_a_processor(nacre):
    part = nacre("exec", "--cpus", "0.5", "--", "cat", "/sys/fs/cgroup/cpu.max", "/sys/devices/system/cpu/online").stdout
    assert part == "50000 100000\n0\n"


def test_more_than_the_host_has_is_what_the_host_has(nacre):
    host = int(re.search(r"MemTotal: *(\d+)", open("/proc/meminfo").read())[1])
    told = nacre("exec", "--memory", "1000000MB", "--", "cat", "/proc/meminfo").stdout
    assert 0 < int(re.search(r"MemTotal: *(\d+)", told)[1]) <= host


def test_nobody_inside_changes_it(caller):
    done = caller("exec", "--", "sh", "-c", "for f in memory.max cpu.max cpus meminfo; do echo 1 >/sys/fs/cgroup/$f; done; echo 1 >/proc/meminfo; " + LOOK)
    assert done.stdout == expected(512) and done.stderr.count("Read-only file system") == 5, done


def test_nothing_of_the_host_is_told(caller):
    groups = caller("exec", "--", "cat", "/proc/cgroups").stdout
    assert {line.split()[2] for line in groups.splitlines()[1:]} == {"1"}
    assert caller("exec", "--", "find", "/sys", "-type", "f").stdout.count("\n") == 5


def has(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin"), reason=f"no {program} here")


PROCESSORS = os.cpu_count()
FEW = pytest.mark.skipif(PROCESSORS < 2, reason="a box cannot have fewer processors than this machine")
GO = 'package main\n\nimport (\n\t"fmt"\n\t"runtime"\n)\n\nfunc main() { fmt.Println(runtime.GOMAXPROCS(0)) }\n'
JAVA = "public class N { public static void main(String[] a) { System.out.println(Runtime.getRuntime().availableProcessors()); } }"


@FEW
@has("go")
@pytest.mark.parametrize("tier", ["container", "process"])
def test_go_goes_by_the_processors_of_the_box(nacre, tier):
    for options, told in ((("--cpus", "1"), 1), (("--cpus", "1.5"), 2), (("--cpus", str(PROCESSORS)), PROCESSORS), (("--cpus", "1", "--env", "GOMAXPROCS=2"), 2)):
        done = nacre("run", "--tier", tier, *options, "--lang", "go", "-c", GO, timeout=300)
        assert done.stdout == f"{told}\n", (options, done)


@FEW
@has("java")
@pytest.mark.parametrize("tier", ["container", "process"])
def test_java_goes_by_the_processors_of_the_box(nacre, tier):
    for options, told in ((("--cpus", "1"), 1), (("--cpus", str(PROCESSORS)), PROCESSORS)):
        done = nacre("exec", "--tier", tier, "--memory", "700MB", "--timeout", "120s", *options, "--", "sh", "-c", "cat >N.java && exec java N.java", input=JAVA, timeout=180)
        assert done.stdout == f"{told}\n", (options, done)


@FEW
def test_the_processors_of_a_box_that_stays(tmp_path):
    """Commands of sandboxes are told as others are."""
    with Daemon(tmp_path, "--no-warm") as daemon:
        for cores, told in ((1, "GOMAXPROCS=1\n"), (PROCESSORS, "")):
            sandbox = daemon.post("/v1/sandboxes", {"limits": {"cpu_cores": cores}}).json()["id"]
            for _ in range(2):
                ended = daemon.post(f"/v1/sandboxes/{sandbox}/commands", {"command": "env | grep ^GO || true"}).json()
                assert ended["stdout"] == told, ended


@has("node")
def test_node(caller, nacre):
    for run, options, memory in ((caller, (), 512), (nacre, ("--memory", "256MB"), 256)):
        assert int(run("exec", *options, "--", "node", "-e", HEAP).stdout) < memory * MB
        assert int(run("run", *options, "--lang", "javascript", "-c", HEAP).stdout) < memory * MB


def test_python(nacre):
    assert nacre("run", "--memory", "300MB", "--lang", "python", "-c", MEMINFO).stdout == f"1 1 MemTotal: {300 * 1024}\n"


def test_the_daemon_and_what_it_keeps_ready(tmp_path):
    """Interpreters that were started before their limits were known, boxes that stay, and commands beside each other."""
    with Daemon(tmp_path) as daemon:
        for memory in (300, 200, 300):
            reply = daemon.execute(MEMINFO, limits={"memory_mb": memory}).json()
            assert reply["output"] == f"1 1 MemTotal: {memory * 1024}\n", reply
        usual = []
        for _ in range(6):  # from the second one on they wait
            reply = daemon.execute(HEAP + "; console.log(require('fs').readFileSync('/proc/meminfo', 'latin1').split(/ +/)[1])", "javascript").json()
            usual.append(reply["output"])
            heap, total = map(int, usual[-1].split())
            assert heap < total * 1024, reply
        assert len(set(usual)) == 1, usual
        for memory in (2000, 256):  # not the waiting one's heap
            heap = int(daemon.execute(HEAP, "javascript", limits={"memory_mb": memory}).json()["output"])
            assert memory * MB / 4 < heap < memory * MB
        sandbox = daemon.post("/v1/sandboxes", {"limits": {"memory_mb": 222}}).json()["id"]
        for _ in range(2):
            answer = daemon.post(f"/v1/sandboxes/{sandbox}/commands", {"command": ["sh", "-c", LOOK]}).json()
            assert json.dumps(expected(222)) in json.dumps(answer), answer
