"""Every attack in every kind of box, and outside of boxes as a control that the attack works at all."""

import concurrent.futures
import ctypes
import subprocess
import threading

import pytest
from attacks import KINDS
from harness import ATTACKS, BY_ROOT, MODES, PROCESS, ROOT_OF_BOX, Host, inside, program

# What is not in the tree yet, or not decided; an attack that needs it is expected to get through. Remove a line when it lands.
MISSING = {
    "decision": "the design shares this with the host; to be decided",
}

# What a process box does not promise (SECURITY.md 3.4): it has no namespaces of its own but for users and processes.
NOT_OF_PROCESS_BOXES = {
    "open_host_devices": "stat() is nobody's part (kernel/fence.h): names are seen; open_host_devices_for_real opens them",
}

# What is no attack for who is root of the box and may write to its root: these are allowed to it. attacks/on_root.py has what they are
# about for that one, and the host looks whether its own files are as they were.
GRANTED_TO_ROOT_OF_BOX = {
    "have_capabilities": "a closed set: have_more_capabilities",
    "become_root_by_call": "it is root, and has other ids of the box: become_process_1s_user",
    "become_root_by_own_setuid_program": "it is root: regain_by_set_user_id_file",
    "write_outside_of_scratch": "its own copy: change_what_the_host_shows",
    "truncate_read_only_files": "its own copy: change_what_the_host_shows",
    "change_attributes_of_read_only_files": "its own copy: change_what_the_host_shows",
    "write_shared_pages_by_splice": "its own copy: write_pages_of_lower_files",
    "find_writable_mounts": "its root is one",
    "have_host_ids": "its map is of ids of the box: tests/func/test_root_of_box.py looks at them from the host",
}

one_at_a_time = threading.Lock()  # for attacks on pools that the whole host shares


def inotify_is_left():
    """Whether root and the ordinary user can still have an inotify instance."""
    code = "import ctypes; raise SystemExit(ctypes.CDLL(None).inotify_init1(0) < 0)"
    users = {"root": [], "nobody": MODES["user"]}
    return [name for name, words in users.items() if subprocess.run([*words, "/usr/bin/python3", "-c", code]).returncode != 0]


def asynchronous_io_is_left():
    handle = ctypes.c_ulong(0)
    if inside.libc.syscall(ctypes.c_long(206), 1, ctypes.byref(handle)) < 0:
        return ["io_setup fails for root"]
    inside.libc.syscall(ctypes.c_long(207), handle)
    return []


def start_a_program():
    subprocess.run(["/usr/bin/true"], check=True)


# attacks that hold something while the host looks; a look gives what the host lost
LOOKS = {
    "take_inotify_instances": inotify_is_left,
    "take_asynchronous_io": asynchronous_io_is_left,
    "watch_files_of_host": start_a_program,
}


def check_output_is_cut(answer):
    assert answer["truncated"] and len(answer["stdout"]) + len(answer["stderr"]) <= 100 * 1024


def check_bill(answer):
    used = answer["usage"]["cpu_user_seconds"] + answer["usage"]["cpu_system_seconds"]
    assert used >= 0.6, f"ESCAPED: burnt 0.6 s, billed {used:.2f} s"


def check_bytes(answer):
    assert "\x1b[2J" in answer["stdout"] and answer["stdout"].count("status") == 200


# what the host checks of the JSON answer beyond the status
CHECKS = {"print_without_end": check_output_is_cut, "burn_time_unbilled": check_bill, "print_hostile_bytes": check_bytes}


class Batches:
    """Runs attacks in the background as soon as the first result is asked for; tests then pick theirs."""

    def __init__(self, runner):
        self.runner = runner
        self.pool = concurrent.futures.ThreadPoolExecutor(3)
        self.futures = {}

    def submit(self, cases):
        for mode, name in cases:
            attack = ATTACKS[name]
            if attack.alone:
                self.futures[mode, name] = self.pool.submit(self.alone, mode, name)
        groups = {}
        for mode, name in cases:
            if not ATTACKS[name].alone:
                groups.setdefault((mode, ATTACKS[name].kind), []).append(name)
        for (mode, _), names in groups.items():
            run = self.runner.control if mode == "outside" else lambda names, mode=mode: self.runner.batch(mode, names)
            future = self.pool.submit(run, names)
            self.futures.update({(mode, name): future for name in names})

    def alone(self, mode, name):
        if name in LOOKS:
            with one_at_a_time:
                return self.runner.while_held(mode, name, LOOKS[name])
        return self.runner.alone(mode, name)

    def get(self, mode, name):
        return self.futures[mode, name].result()


@pytest.fixture(scope="session")
def batches(runner, request):
    made = Batches(runner)
    made.submit([item.callspec.params["case"] for item in request.session.items if "case" in getattr(item, "callspec", _Nothing).params])
    yield made
    made.pool.shutdown(cancel_futures=True)


class _Nothing:
    params = ()


def is_for(attack, mode):
    """Whether this box promises anything against this attack."""
    caller, process = mode.removesuffix(PROCESS), mode.endswith(PROCESS)
    # an ordinary user has no control groups: the result says so, and named limits are refused
    if mode == ROOT_OF_BOX and attack.name in GRANTED_TO_ROOT_OF_BOX:
        return False
    if caller not in BY_ROOT and (attack.needs == "cgroup" or "--memory" in attack.options or (process and "--pids" in attack.options)):
        return False
    # a process box has no file system of its own to limit, and refuses to be asked for it
    return not process or ("--disk" not in attack.options and attack.name not in NOT_OF_PROCESS_BOXES)


def cases():
    for attack in ATTACKS.values():
        modes = [mode for mode in attack.modes if mode != ROOT_OF_BOX]
        as_root = [ROOT_OF_BOX] if {"root", ROOT_OF_BOX} & set(attack.modes) else []
        for mode in [*modes, *(mode + PROCESS for mode in modes), *as_root]:
            if not is_for(attack, mode):
                continue
            missing = MISSING.get(attack.needs)
            marks = [pytest.mark.xfail(reason=f"{attack.needs}: {missing}", strict=False)] if missing else []
            yield pytest.param((mode, attack.name), id=f"{attack.kind}-{attack.name}-{mode}", marks=marks)


def controls():
    for attack in ATTACKS.values():
        if attack.control and not attack.alone:
            yield pytest.param(("outside", attack.name), id=f"{attack.kind}-{attack.name}")


def check_host(secret, result):
    """What the host sees for itself, whatever the attack says."""
    assert secret not in result.output and secret not in result.error, "ESCAPED: a secret of the host is in the output"
    assert result.victim == "alive", "ESCAPED: a process beside the box was killed"
    assert not result.left, f"ESCAPED: left behind: {result.left}"


def check_verdict(verdicts, name):
    assert name in verdicts, f"no verdict of {name}: {verdicts}"
    assert verdicts[name].startswith("held:"), f"{ATTACKS[name].what}\n{verdicts[name]}"


def check_alone(name, secret, result):
    attack = ATTACKS[name]
    assert not result.hung, f"ESCAPED: {attack.what}\nnacre did not end within {attack.within} s"
    check_host(secret, result)
    answer = result.answer()
    for verdict in result.verdicts(answer["stdout"]).values():
        assert verdict.startswith("held:"), f"{attack.what}\n{verdict}"
    if attack.ends:
        assert (answer["status"], answer["exit_code"], answer["signal"]) == attack.ends, answer
    CHECKS.get(name, lambda _: None)(answer)


@pytest.mark.parametrize("case", cases())
def test_attack(batches, case):
    mode, name = case
    if name in LOOKS:
        result, seen = batches.get(mode, name)
        assert not result.hung and not seen, f"{ATTACKS[name].what}\nESCAPED: no longer for the host: {seen}"
        check_verdict(result.verdicts(), name)
    elif ATTACKS[name].alone:
        check_alone(name, *batches.get(mode, name))
    else:
        secret, result = batches.get(mode, name)
        assert not result.hung, "the box did not end"
        check_verdict(result.verdicts(), name)
        # what the host sees is about the whole batch; each of its attacks that may still get through has its mark
        assert secret not in result.verdicts()[name]
        assert result.victim == "alive" and not result.left, (result.victim, result.left)
        assert not set(result.hits) - {"vsock"}, f"ESCAPED: connected to {result.hits}"


@pytest.mark.parametrize("case", controls())
def test_attack_works_outside(batches, case):
    """A control: what is refused in the box is possible outside of it."""
    mode, name = case
    verdicts = batches.get(mode, name)[1].verdicts()
    assert verdicts[name].startswith("ESCAPED:"), f"this attack proves nothing here: {verdicts[name]}"


def test_kill_everybody_works_outside(runner):
    """The control of an attack whose success is the victim's death."""
    with Host() as host:
        text = program(["kill_everybody"], host.context(), False)
        assert runner.run("root", host, ["/usr/bin/python3", "-c", text]).victim == "dead"


def test_every_attack_says_what_it_breaks():
    """The rules of the table: a sentence with the promise, a known class, a known need."""
    for attack in ATTACKS.values():
        assert "Promise:" in attack.what and attack.kind in KINDS, attack.name
        assert attack.needs in (None, "seccomp", "cgroup", "decision"), attack.name
    assert len(ATTACKS) >= 60
