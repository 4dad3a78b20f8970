"""What nacre says: to programs where they asked for JSON, to terminals without anybody else's escape sequences, and the reason that is the right one."""

import json
import os
import re
import subprocess

import pytest

from conftest import NACRE, ROOT, environment, open_way
from packages import wheel
from serving import Daemon
from test_packages import needs_pip

WRONG = [("exec",), ("exec", "--", "/no/such"), ("exec", "--bogus", "--", "true"), ("exec", "--memory", "x", "--", "true"), ("run",), ("run", "/no/such.py"),
         ("run", "--lang", "klingon", "-c", "1"), ("run", "--bogus"), ("check", "/no/such"), ("history", "show", "nobody"), ("env", "list", "x"), ("doctor", "x"),
         ("exce", "--", "true"), ("env", "lsit"), ("top", "--interval", "never"), ("image", "list", "x"), ("audit", "verify", "x")]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_errors_are_json_where_that_was_asked_for(nacre, words, tmp_path):
    verb = 2 if words[0] in ("env", "image", "audit") else 1
    done = nacre(*words[:verb], "--json", *words[verb:], env={"NACRE_STATE": str(tmp_path / "state")})
    answer = json.loads(done.stdout)
    assert answer["status"] == "error" and answer["error"] and answer["error"] in done.stderr, done
    assert answer["exit_status"] == done.returncode != 0 and (answer["help"] is None or answer["help"].endswith("--help"))
    assert nacre(*words, env={"NACRE_STATE": str(tmp_path / "state")}).stdout == ""  # and only there


def test_json_of_a_command_is_its_own(nacre):
    assert nacre("exec", "--", "/bin/echo", "--json").stdout == "--json\n"


EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"


def tame(text):
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_history_shows_no_escape_sequences(nacre, tmp_path):
    env = {"NACRE_STATE": str(tmp_path / "state")}
    done = nacre("run", "--json", "--lang", "python", "-c", f"# {EVIL}\nprint({EVIL!r}); raise SystemExit({EVIL!r})", env=env)
    assert done.returncode == 1
    name = json.loads(done.stdout)["id"]
    done = nacre("history", "show", name, env=env)
    assert done.returncode == 0 and tame(done.stdout) and "\\x1b]0;title\\x07" in done.stdout, done
    assert tame(nacre("history", env=env).stdout)


def test_check_prints_no_escape_sequences(nacre, tmp_path):
    name = tmp_path / f"{EVIL.replace('/', '')}.py"
    name.write_text(f"import os\nos.system('{EVIL}')  # {EVIL}\nopen('/etc/{EVIL}')\n")
    done = nacre("check", str(name))
    assert "process.shell" in done.stdout and tame(done.stdout) and tame(done.stderr), done
    os.rename(name, str(name) + "x")
    assert tame(nacre("check", str(name)).stderr)


def test_what_nacre_says_about_a_program_has_none(nacre, tmp_path):
    env = {"NACRE_STATE": str(tmp_path / "state")}
    for words in (("--lang", "python", "-c", f"raise ValueError({EVIL!r})"), ("--lang", "c", "-c", f"#error {EVIL}\n"), ("--lang", "shell", "--capture", "*", "-c", f"touch '{EVIL}'"),
                  ("--policy", "strict", "--lang", "python", "-c", f"import subprocess # {EVIL}")):
        done = nacre("run", *words, env=env, cwd=tmp_path)
        own = "\n".join(line for line in done.stderr.splitlines() if line.startswith(("nacre", "/workspace")))
        assert tame(own), (words, done.stderr)
    assert nacre("run", "--lang", "shell", "-c", "printf '\\033[1m'", env=env).stdout == "\x1b[1m"  # the program's own output is its own


def test_what_a_daemon_answers_has_none(tmp_path):
    """A server that is none answers with escape sequences; a sandbox has them in its labels and commands."""
    with Daemon(tmp_path) as daemon:
        made = daemon.post("/v1/sandboxes", {"labels": {"x": EVIL}}).json()
        daemon.post(f"/v1/sandboxes/{made['id']}/commands", {"command": ["/bin/echo", EVIL], "background": True})
        base = [str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}"]
        for words in (["ps"], ["ps", made["id"]], ["run", "--lang", "python", "-c", f"raise ValueError({EVIL!r})"], ["exec", "--sandbox", made["id"], "--", f"/{EVIL}"]):
            done = subprocess.run([*base, *words], env=daemon.env, capture_output=True, text=True, timeout=60)
            own = "\n".join(line for line in done.stderr.splitlines() if line.startswith("nacre"))
            assert tame(own) and (words[0] != "ps" or (done.stdout and tame(done.stdout))), (words, done)


def test_the_command_line_prints_through_one_place():
    """printf of texts is for files that have none of a stranger's, or quote them."""
    own = {"doctor.c", "help.c", "completion.c", "top.c", "early.c", "plain.c", "main.c", "upgrade.c"}
    for path in sorted((ROOT / "src/cli").glob("*.c")):
        if path.name in own:
            continue
        for call in re.findall(r"(?<![a-z_])(?:f?printf|f?puts)\((?:[^;]|\n)*?;", path.read_text()):
            assert "%s" not in call or "codes" in call, (path.name, call)
            assert not re.match(r"f?puts\([a-z_]+[,()]", call), (path.name, call)


def test_a_mistyped_id_is_no_program(tmp_path):
    with Daemon(tmp_path) as daemon:
        for word in ("sb_0123z", "sb-" + "0" * 32, "SB_" + "0" * 32, "0123456789abcdef" * 2):
            done = subprocess.run([str(NACRE), "--server", f"http://127.0.0.1:{daemon.port}", "shell", word], env=daemon.env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=60)
            assert done.returncode == 125 and "is not the id of a sandbox" in done.stderr, done
        assert daemon.get("/v1/sandboxes").json()["sandboxes"] == []


def in_mounts(script, **options):
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(NACRE)], capture_output=True, text=True, timeout=60, **options)


def test_no_proc_is_said(as_root, tmp_path):
    for verb in ("exec -- true", "run -c 'print(1)'", "doctor"):
        done = in_mounts(f'mount -t tmpfs none /proc; exec "$0" {verb}', env=environment(tmp_path))
        assert done.returncode == 125 and "/proc is not mounted" in done.stderr, done


def test_no_run_is_said(as_root, tmp_path):
    (tmp_path / "root").mkdir()
    script = (f'mount -t tmpfs none {tmp_path}/root && cd {tmp_path}/root && for d in /*; do [ $d = /run ] && continue; if [ -L $d ]; then cp -P $d .$d; elif [ -d $d ]; then '
              'mkdir .$d && mount --rbind $d .$d; fi; done; mkdir old && pivot_root . old && umount -l /old && rmdir /old && exec "$0" exec -- true')
    done = in_mounts(script, env=environment(tmp_path))
    assert done.returncode == 125 and "/run/nacre cannot be made: the directory above it is missing" in done.stderr, done


def test_root_without_groups_is_not_told_to_be_root(as_root, tmp_path):
    done = in_mounts('mount -t tmpfs none /sys/fs/cgroup; exec "$0" exec --memory 64MB -- true', env=environment(tmp_path))
    assert done.returncode == 125 and "mount the cgroup controllers" in done.stderr and "run as root" not in done.stderr, done


def test_a_private_address_names_the_key(nacre, tmp_path):
    reply = json.loads(nacre("run", "--json", "--allow", "localhost:9", "--lang", "shell", "-c", "curl -s --noproxy '' http://localhost:9/",
                             env={"NACRE_STATE": str(tmp_path / "state")}).stdout)
    assert "network.inner" in reply["output"], reply["output"]
    assert any("network.inner" in json.dumps(denial) for denial in reply["denials"]), reply["denials"]


@needs_pip
def test_a_full_disk_is_not_the_size_limit(as_root, tmp_path):
    open_way(tmp_path)
    for name in ("wheels", "config", "state"):
        (tmp_path / name).mkdir()
    wheel(tmp_path / "wheels", "pearl", files={"pearl.py": "", "data.bin": "0" * 8_000_000})
    (tmp_path / "config/nacre.yaml").write_text(f"packages:\n  python:\n    wheels: {tmp_path}/wheels\n")
    script = f'mount -t tmpfs -o size=4m,mode=755 none {tmp_path}/state; export NACRE_STATE={tmp_path}/state/nacre; exec "$0" --config {tmp_path}/config env build --lang python pearl'
    done = in_mounts(script, env=environment(tmp_path))
    assert done.returncode == 125 or done.returncode == 1, done
    assert "disk that environments are kept on is full" in done.stderr and "which is the most of an environment" not in done.stderr, done
