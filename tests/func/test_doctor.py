"""nacre doctor: its answers must be right, for root, for an ordinary user, and in odd places."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading

import jsonschema
import pytest

from conftest import NACRE, NOBODY, ROOT, environment, open_way, run_in
from leftovers import our_groups

SCHEMA = json.loads((ROOT / "docs/doctor.schema.json").read_text())
GRADES = {"full", "reduced", "none"}
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def answer_of(done):
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, SCHEMA)
    return answer


@pytest.fixture
def doctor(nacre):
    return lambda **options: answer_of(nacre("doctor", "--json", **options))


def probes_of(answer):
    return {probe["name"]: probe for probe in answer["probes"]}


def test_answer_fits_its_schema(doctor):
    answer = doctor()
    assert answer["host"]["kernel"] == os.uname().release
    assert answer["host"]["uid"] == os.geteuid()


def test_schema_describes_everything():
    """Every object of the schema is closed, so that an undocumented member would fail the tests."""

    def closed(node):
        if "properties" in node:
            assert node["additionalProperties"] is False
            assert set(node["required"]) == set(node["properties"])
        for child in [*node.get("properties", {}).values(), *node.get("$defs", {}).values()]:
            closed(child)
        if "items" in node:
            closed(node["items"])

    closed(SCHEMA)


def test_namespaces_agree_with_unshare(doctor, user_namespaces):
    """Another program that tries the same comes to the same result."""
    probes = probes_of(doctor())
    kinds = {"mount_namespace": "--mount", "net_namespace": "--net", "ipc_namespace": "--ipc",
             "uts_namespace": "--uts", "cgroup_namespace": "--cgroup", "user_namespace": "--user"}
    for name, option in kinds.items():
        tried = subprocess.run(["unshare", "--user", "--map-root-user", option, "true"], capture_output=True)
        assert probes[name]["ok"] == (tried.returncode == 0), name
    tried = subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", "true"], capture_output=True)
    assert probes["pid_namespace"]["ok"] == (tried.returncode == 0)


def test_nothing_is_left_behind(doctor):
    before = (our_groups(), pathlib.Path("/proc/self/mountinfo").read_text(), sorted(os.listdir("/tmp")))
    doctor()
    assert before == (our_groups(), pathlib.Path("/proc/self/mountinfo").read_text(),
                      sorted(os.listdir("/tmp")))


def test_interrupted_at_any_moment_leaves_no_group(as_root):
    before = our_groups()
    for delay in (0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08):
        process = subprocess.Popen([NACRE, "doctor"], stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        process.wait(timeout=10)
    for _ in range(100):  # the probe of groups outlives the interrupted doctor for a moment
        if our_groups() <= before:
            break
        threading.Event().wait(0.05)
    assert our_groups() <= before


def test_root_gets_id_ranges_and_groups(as_root, user_namespaces, doctor):
    answer = doctor()
    assert answer["strength"]["identity"]["grade"] == "full"
    if answer["host"]["cgroup"] == "none":
        pytest.skip("no control groups are mounted")
    assert probes_of(answer)["cgroup_pids"]["ok"]
    assert answer["strength"]["pids"] == {"grade": "full", "reason": "a cgroup limit", "fix": None}


def test_ordinary_user_is_told_what_is_reduced(reachable_copy, user_namespaces):
    done = subprocess.run([*AS_NOBODY, reachable_copy, "doctor", "--json"], capture_output=True, text=True,
                          timeout=60, env={"PATH": "/usr/bin:/bin"})
    answer = answer_of(done)
    assert answer["host"]["user"] == "nobody"
    assert not probes_of(answer)["id_range"]["ok"]
    for name, grade in (("identity", "reduced"), ("memory", "reduced"), ("cpu", "none"), ("pids", "reduced")):
        assert answer["strength"][name]["grade"] == grade
        assert answer["strength"][name]["fix"] == "run Nacre as root"
    assert answer["strength"]["io"]["grade"] == "none"
    assert answer["tiers"]["container"]["grade"] == "reduced"


def test_host_without_user_namespaces(as_root, user_namespaces, reachable_copy):
    """With the limit of user namespaces at 0 nothing that needs one may be claimed."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    done = subprocess.run([*AS_NOBODY, "unshare", "--user", "--map-user=7", "--map-group=7", "sh", "-c", "exec unshare --user --map-root-user sh -c \"$@\"", "sh",
                           script, "sh", reachable_copy, "doctor", "--json"], capture_output=True, text=True, timeout=60)
    answer = answer_of(done)
    assert not probes_of(answer)["user_namespace"]["ok"]
    strength = answer["strength"]
    assert strength["filesystem"]["grade"] != "full"
    assert strength["filesystem"]["fix"] == "sudo sysctl -w user.max_user_namespaces=10000"
    assert strength["identity"]["grade"] == "none"
    assert answer["tiers"]["container"]["grade"] == "none"


def test_inside_a_user_namespace(as_root, user_namespaces, reachable_copy):
    answer = answer_of(subprocess.run([*AS_NOBODY, "unshare", "--user", "--map-root-user", "--mount", reachable_copy, "doctor", "--json"],
                                      capture_output=True, text=True, timeout=60))
    assert not probes_of(answer)["id_range"]["ok"]
    assert answer["strength"]["identity"]["grade"] == "reduced"
    assert probes_of(answer)["user_namespace"]["ok"]


def test_the_hosts_root_in_a_user_namespace_is_told_that_nothing_runs(as_root, user_namespaces):
    answer = answer_of(run_in(["unshare", "--user", "--map-root-user", "--mount"], "doctor", "--json"))
    assert {entry["grade"] for entry in answer["strength"].values()} == {"none"}
    assert all("host's root" in entry["reason"] for entry in answer["strength"].values())
    done = run_in(["unshare", "--user", "--map-root-user", "--mount"], "exec", "--", "true")
    assert done.returncode == 125 and "host's root" in done.stderr


WRAPPERS = {"root": [], "user": None, "user_in_a_namespace": ["unshare", "--user", "--map-root-user", "--mount"]}


@pytest.mark.parametrize("who", WRAPPERS)
def test_it_agrees_with_boxes(as_root, user_namespaces, programs, tmp_path, who):
    """What it says a box can be held by is what a box says it was held by, property by property."""
    open_way(tmp_path)
    tmp_path.chmod(0o777)
    wrapper = [] if who == "root" else [*AS_NOBODY, *(WRAPPERS[who] or [])]

    def ask(*words):
        done = subprocess.run([*wrapper, programs / "nacre", *words], capture_output=True, text=True, timeout=60, env=environment(tmp_path), cwd="/")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    said = {name: entry["grade"] for name, entry in ask("doctor", "--json")["strength"].items()}
    held = ask("exec", "--json", "--", "true")["strength"]
    held["hypervisor"] = said["hypervisor"]  # of the host: no box of this version has a kernel of its own
    assert said == held


def test_without_seccomp_nothing_is_claimed(as_root, tmp_path):
    """A filter from outside that refuses seccomp(), as some containers have."""
    source = tmp_path / "noseccomp.c"
    source.write_text("""
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {
            (void)argc;
            struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = {.len = 4, .filter = code};
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                return 1;
            execv(argv[1], argv + 1);
            return 1;
        }""")
    program = tmp_path / "noseccomp"
    subprocess.run(["cc", source, "-o", program], check=True)
    answer = answer_of(run_in([program], "doctor", "--json"))
    assert answer["strength"]["syscalls"]["grade"] == "none"
    assert answer["tiers"]["process"]["grade"] == "none"


def test_kvm_is_believed_only_when_a_guest_runs(doctor):
    answer = doctor()
    probe = probes_of(answer)["kvm"]
    assert probe["ok"] == (answer["strength"]["hypervisor"]["grade"] == "full")
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    if flags and not {"vmx", "svm"} & set(flags[1].split()):
        assert not probe["ok"], "a processor without virtualisation cannot run a guest"


def test_languages_are_those_that_a_box_would_see(doctor, tmp_path):
    fake = tmp_path / "bin"
    fake.mkdir()
    for name in ("python3", "go"):
        (fake / name).write_text("#!/bin/sh\necho 9.9.9\n")
        (fake / name).chmod(0o755)
    languages = doctor(env={"PATH": f"{fake}:{os.environ['PATH']}"})["languages"]
    assert languages["python"]["version"] != "9.9.9"
    real = subprocess.run(["/usr/bin/python3", "--version"], capture_output=True, text=True).stdout.split()[1]
    assert languages["python"] == {"ok": True, "version": real, "program": "/usr/bin/python3", "reason": None,
                                   "fix": None}
    if not any(os.access(f"{directory}/go", os.X_OK) for directory in ("/usr/local/bin", "/usr/bin", "/bin")):
        assert languages["go"]["reason"] == f"{fake}/go is outside of /usr, where boxes cannot see it"
        assert languages["go"]["fix"] == "apt-get install golang-go"


def engine(path, reply):
    """A Docker engine that knows one answer."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)

    def serve():
        client, _ = server.accept()
        client.recv(4096)
        if reply is not None:
            client.sendall(reply)
            client.close()
        else:
            threading.Event().wait(4)

    threading.Thread(target=serve, daemon=True).start()
    return {"DOCKER_HOST": f"unix://{path}"}


@pytest.mark.parametrize(
    "reply, grade, reason",
    [
        (b'HTTP/1.0 200 OK\r\n\r\n{"Version": "28.2.2"}', "full", "Docker Engine 28.2.2"),
        (b'HTTP/1.0 500 Oh\r\n\r\n{"Version": "28.2.2"}', "none", "Protocol error"),
        (b"HTTP/1.0 200 OK\r\n\r\n[1]", "none", "Protocol error"),
        (b"SSH-2.0-OpenSSH\r\n", "none", "Protocol error"),
        (b"", "none", "Protocol error"),
        (None, "none", "timed out"),
    ],
)
def test_docker_engine(doctor, tmp_path, reply, grade, reason):
    tier = doctor(env=engine(tmp_path / "docker.sock", reply))["tiers"]["docker"]
    assert tier["grade"] == grade and reason in tier["reason"]


def test_docker_host_elsewhere(doctor):
    tier = doctor(env={"DOCKER_HOST": "tcp://127.0.0.1:2375"})["tiers"]["docker"]
    assert (tier["grade"], tier["reason"]) == ("none", "DOCKER_HOST is no unix:// socket")
    tier = doctor(env={"DOCKER_HOST": "unix:///" + "x" * 200})["tiers"]["docker"]
    assert "too long" in tier["reason"]


def test_wasm_tool_chain(doctor):
    """tools/packages installs wabt for this test."""
    tier = doctor()["tiers"]["wasm"]
    assert "wasm2c and cc build a module" in tier["reason"] or tier["grade"] == "reduced"


@pytest.mark.parametrize("tier", ["wasm", "process", "container", "docker", "microvm", "remote"])
def test_only_tiers_that_exist_are_claimed_to_be_built(doctor, nacre, tier):
    """What the doctor marks runs, and what it does not is refused."""
    found = doctor()["tiers"][tier]
    reply = json.loads(nacre("run", "--json", "--tier", tier, "--lang", "shell", "-c", "echo here").stdout)
    refused = f"The tier '{tier}' cannot be had" in (reply["error"] or "")
    assert refused == (not found["built"]), (found, reply["error"])
    assert found["built"] == (tier in ("process", "container"))
    if found["built"] and found["grade"] != "none":
        assert (reply["tier"], reply["output"]) == (tier, "here\n"), reply


def test_text_says_the_same_as_json(nacre, doctor):
    answer = doctor()
    text = nacre("doctor").stdout
    for name, entry in {**answer["strength"], **answer["tiers"]}.items():
        assert re.search(rf"^[ *] {name} +{entry['grade']} ", text, re.M), name
    for name, entry in answer["languages"].items():
        assert re.search(rf"^  {name} +{re.escape(entry['version'] if entry['ok'] else 'none')} ", text, re.M), name
    assert "Probes" not in text
    text = nacre("doctor", "--probes").stdout
    for probe in answer["probes"]:
        assert re.search(rf"^  {probe['name']} +{'yes' if probe['ok'] else 'no'} ", text, re.M)
