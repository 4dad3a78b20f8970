"""nacre top: finds running boxes, shows hostile names harmlessly, leaves the terminal as it was."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time

import pytest

from conftest import NACRE, NOBODY, environment

LONG = 30  # seconds, for what must happen


@contextlib.contextmanager
def running(*command, wrapper=(), program=NACRE, options=()):
    """A box that runs the command, which says so by its first line."""
    process = subprocess.Popen([*wrapper, program, "exec", *options, "--", *command], stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, env=environment("/nonexistent"), cwd="/")
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.terminate()
        process.wait(LONG)


def boxes_of(done):
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == "nacre.top/1"
    return answer["boxes"]


def box_with(done, word):
    """Other boxes may run on this machine: that of ours has the word in its command."""
    found = [box for box in boxes_of(done) if word in box["command"]]
    assert len(found) == 1, done.stdout
    return found[0]


def test_json_of_a_running_box(nacre):
    with running("sh", "-c", "echo ready; sleep 50; : top-json"):
        box = box_with(nacre("top", "--json", "--once"), "top-json")
    assert box["state"] == "running"
    assert 1 <= box["processes"] <= 3 and box["threads"] >= box["processes"]
    assert 0 < box["memory_bytes"] <= box["memory_peak_bytes"]
    assert box["memory_limit_bytes"] in (None, 512 << 20)
    assert 0 <= box["age_seconds"] < LONG
    assert box["command"].startswith("sh -c echo ready; sleep 50")
    assert 0 <= box["cpu_percent"] < 100


def test_boxes_are_listed_in_the_same_order_every_time(nacre):
    commands = ["sh", "-c", "echo ready; sleep 50; : top-order"]
    with running(*commands), running(*commands), running(*commands):
        looks = [[(box["spawner"], box["box"]) for box in boxes_of(nacre("top", "--json", "--once")) if "top-order" in box["command"]] for _ in range(2)]
    assert looks[0] == looks[1] == sorted(looks[0]) and len(looks[0]) == 3


def test_the_limit_of_a_box_with_a_group(nacre, as_root):
    with running("sh", "-c", "echo ready; sleep 50; : top-limit", options=["--memory", "64MB"]):
        box = box_with(nacre("top", "--json", "--once"), "top-limit")
    if not box["spawner"].startswith("sp_"):
        pytest.skip("no control groups here")
    assert box["box"].startswith("bx_")
    assert box["memory_limit_bytes"] == 64 << 20


def test_a_busy_box_shows_its_cpu_use(nacre):
    with running("sh", "-c", "echo ready; while :; do :; done; : top-busy"):
        deadline = time.monotonic() + LONG
        while box_with(nacre("top", "--json", "--once"), "top-busy")["cpu_percent"] < 1:
            assert time.monotonic() < deadline


def test_a_box_that_has_ended_is_gone(nacre):
    with running("sh", "-c", "echo ready; sleep 50; : top-gone"):
        pass
    assert not [box for box in boxes_of(nacre("top", "--json", "--once")) if "top-gone" in box["command"]]


def test_table(nacre):
    with running("sh", "-c", "echo ready; sleep 50; : top-table"):
        done = nacre("top")
    assert done.returncode == 0
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["SPAWNER", "BOX", "PIDS", "CPU%", "MEMORY", "LIMIT", "AGE", "COMMAND"]
    [line] = [line for line in lines if "top-table" in line]
    assert line.endswith("'sh -c echo ready; sleep 50; : top-table'")


HOSTILE = "echo ready; sleep 50; : top-hostile \x1b]0;owned\x07 \x1b[2J \r\n \u009b31m \u202e"


def test_hostile_names_are_quoted(nacre):
    with running("sh", "-c", HOSTILE):
        plain = nacre("top")
        [line] = [line for line in plain.stdout.splitlines() if "top-hostile" in line]
        assert not [c for c in plain.stdout if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
        assert r"\x1b]0;owned\x07" in line
        assert HOSTILE in box_with(nacre("top", "--json", "--once"), "top-hostile")["command"]


def test_a_process_that_calls_itself_a_spawner_makes_no_boxes(nacre):
    """Its children would be boxes that it names as it likes."""
    script = "import ctypes, os, time; ctypes.CDLL(None).prctl(15, b'nacre-spawner')\n" \
             "if os.fork() == 0: os.execvp('sh', ['sh', '-c', 'echo ready; sleep 50; : top-fake'])\n" \
             "time.sleep(50)"
    with running("python3", "-c", script, "top-parent"):
        boxes = boxes_of(nacre("top", "--json", "--once"))
    assert [box["command"].split()[-1] for box in boxes if "top-" in box["command"]] == ["top-parent"]


def test_boxes_without_groups_are_found(nacre, programs):
    """An ordinary user has no groups here, or delegated ones: his box is there either way, once."""
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with running("sh", "-c", "echo ready; sleep 50; : top-user", wrapper=user, program=programs / "nacre",
                 options=["--floor", "none"]):
        as_root = box_with(nacre("top", "--json", "--once"), "top-user")
        done = subprocess.run([*user, programs / "nacre", "top", "--json", "--once"], capture_output=True, text=True)
        as_user = box_with(done, "top-user")
    assert as_root["box"] == as_user["box"]
    assert as_user["processes"] >= 1 and as_user["memory_bytes"] > 0


@pytest.mark.parametrize("interval", ["0", "99ms", "61m", "soon", "-1"])
def test_bad_intervals(nacre, interval):
    done = nacre("top", f"--interval={interval}")
    assert done.returncode == 125
    assert "expected a time from 100ms to 1h" in done.stderr


class Terminal:
    """nacre top on a terminal of its own."""

    def __init__(self, *options, hangup=signal.SIG_DFL):
        self.ours, theirs = pty.openpty()
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.text = b""
        self.process = subprocess.Popen([NACRE, "top", "--interval", "100ms", *options], stdin=theirs, stdout=theirs,
                                        stderr=theirs, start_new_session=True, env=environment("/nonexistent"),
                                        preexec_fn=lambda: signal.signal(signal.SIGHUP, hangup))  # whatever this suite was started with

    def read_until(self, wanted, count=1):
        deadline = time.monotonic() + LONG
        while self.text.count(wanted) < count:
            assert select.select([self.ours], [], [], max(0, deadline - time.monotonic()))[0], self.text
            self.text += os.read(self.ours, 65536)

    def end(self):
        code = self.process.wait(LONG)
        while select.select([self.ours], [], [], 0)[0]:
            self.text += os.read(self.ours, 65536)
        assert termios.tcgetattr(self.theirs) == self.before
        os.close(self.ours)
        os.close(self.theirs)
        return code


LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"


def test_terminal_redraws_in_place_and_q_ends():
    terminal = Terminal()
    terminal.read_until(b"COMMAND", 3)
    assert terminal.text.startswith(b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H")
    os.write(terminal.ours, b"q")
    assert terminal.end() == 0
    assert terminal.text.endswith(LEAVE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_terminal_is_given_back_after_a_signal(number):
    terminal = Terminal()
    terminal.read_until(b"COMMAND")
    terminal.process.send_signal(number)
    assert terminal.end() == -number
    assert terminal.text.endswith(LEAVE)


def test_who_is_started_to_ignore_a_signal_ignores_it():
    terminal = Terminal(hangup=signal.SIG_IGN)
    terminal.read_until(b"COMMAND")
    terminal.process.send_signal(signal.SIGHUP)
    terminal.read_until(b"COMMAND", terminal.text.count(b"COMMAND") + 2)
    os.write(terminal.ours, b"q")
    assert terminal.end() == 0


def test_a_stop_is_not_obeyed_with_the_terminal_in_disorder():
    terminal = Terminal()
    terminal.read_until(b"COMMAND")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.read_until(b"COMMAND", terminal.text.count(b"COMMAND") + 2)
    os.write(terminal.ours, b"q")
    assert terminal.end() == 0


def test_json_on_a_terminal_is_one_object_per_look():
    terminal = Terminal("--json")
    terminal.read_until(b"\n", 3)
    os.write(terminal.ours, b"q")
    assert terminal.end() == 0
    for line in terminal.text.decode().splitlines()[:3]:
        assert json.loads(line)["schema"] == "nacre.top/1"


def test_once_on_a_terminal():
    terminal = Terminal("--once")
    assert terminal.process.wait(LONG) == 0
    terminal.read_until(b"COMMAND")
    assert terminal.end() == 0
    assert b"\x1b" not in terminal.text


def test_full_output_device(nacre):
    with open("/dev/full", "w") as full:
        done = nacre("top", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 125
