"""Packages in an image whose interpreter lies: no report of a build box is believed, and none of its words reach a terminal."""

import json
import time

import pytest

from frames import Engine
from packages import Impostor
from test_packages import fresh  # noqa: F401


NEEDS_ALL = 'echo \'{"interpreter": "3.11", "packages": null}\''
DIGEST = "0" * 64


PEARL = {"name": "pearl", "version": "1", "file": "pearl.whl", "sha256": DIGEST}
ONE = json.dumps(PEARL)


def package(**values):
    return json.dumps({"interpreter": "3.11", "packages": [{**PEARL, **values}]})


def impostor(caller, probe, install="exit 9"):
    """An image whose python3 is a box that was taken over, or never was an installer."""
    return Impostor(caller, "python3", f'case "$3" in *--no-compile*) {install} ;; *) {probe} ;; esac')


def build(caller, *words):
    done = impostor(caller, *words).run("env", "build", "pearl")
    return done.returncode, done.stderr


@pytest.mark.parametrize("probe, install", [
    ("echo garbage", ""), ("echo []", ""), ("echo '{\"interpreter\": \"3\"}'", ""), ("head -c 1200000 /dev/zero", ""),
    ("echo '{\"interpreter\": \"a b\", \"packages\": null}'", ""), ("echo '{\"interpreter\": \"3\", \"packages\": [{\"name\": 1}]}'", ""),
    (NEEDS_ALL, ":"), (NEEDS_ALL, f"echo '{package(name='x y')}'"), (NEEDS_ALL, f"echo '{package(version='')}'"),
    (NEEDS_ALL, f"echo '{package(name='n' * 300)}'"), (NEEDS_ALL, f"echo '{package(file=None)}'"),
    (NEEDS_ALL, f"echo '{package(sha256=DIGEST[1:])}'"), (NEEDS_ALL, f"echo '{package(sha256='x' + DIGEST[1:])}'"),
    (NEEDS_ALL, f"""echo '{{"interpreter": "3", "packages": ['; yes '{ONE},' | head -n 4096; echo '{ONE}]}}'"""),
])
def test_a_report_that_has_not_its_form_is_none(fresh, probe, install):
    code, said = build(fresh, probe, install)
    assert code != 0 and "the installer's box gave no report that can be read" in said, said
    assert fresh.stored() == []


@pytest.mark.parametrize("probe, install, words", [
    (NEEDS_ALL, "exit 4", "the image has nothing to install them with: apt-get install python3-pip"),
    (NEEDS_ALL, "exit 5", "they take more than 1024 MB"),
    (NEEDS_ALL, 'echo \'{"lacks": "a\\u001b[31mb"}\'; exit 3', r"has no 'a\x1b[31mb', or no version"),
    (NEEDS_ALL, "echo '{\"lacks\": 7}'; exit 3", "has no such package, or no version"),
    (NEEDS_ALL, "echo nothing; exit 3", "they cannot be installed: no reason was given"),
    (NEEDS_ALL, "echo first >&2; printf 'last \\033[31m line\\n\\n' >&2; exit 1", r"they cannot be installed: 'last \x1b[31m line'"),
    # of much that is said the beginning is kept: the last line of that
    (NEEDS_ALL, "yes 1234567 | head -c 400000 >&2; echo end >&2; exit 1", "they cannot be installed: '1234567'"),
    (NEEDS_ALL, "kill -9 $$", "they cannot be installed: no reason was given"),
])
def test_what_a_failed_installation_says(fresh, probe, install, words):
    code, said = build(fresh, probe, install)
    assert code != 0 and words in said and "\033" not in said, said
    assert fresh.stored() == []


def test_an_interpreter_that_cannot_be_run(fresh):
    lying = Impostor(fresh, "python3", "", "#!/no/such/interpreter")
    assert "python3 cannot be run in this image: apt-get install python3" in lying.run("env", "build", "pearl").stderr


@pytest.mark.parametrize("hangs_up", [False, True], ids=["cancelled", "hung up"])
def test_builds_end_while_they_install_and_while_they_wait(fresh, hangs_up):
    lying = impostor(fresh, NEEDS_ALL, "sleep 60")
    request = {"language": "python", "code": "1", "packages": ["pearl"]}
    with Engine(fresh.place, "--config", str(fresh.config), "--max-running", "3", program=fresh.program, prefix=lying.prefix,
                env=fresh.variables()) as engine:
        engine.receive()
        asked = [engine.execute(request) for _ in range(2)]
        while len(fresh.stored()) < 2:  # a lock, and a directory to install into
            time.sleep(0.05)
        time.sleep(0.3)
        if hangs_up:
            engine.socket.close()
            assert engine.process.wait(30) == 0
            assert fresh.stored() == []
            return
        cancels = [engine.ask(op="cancel", of=n) for n in reversed(asked)]
        answers = engine.replies(4)
        assert all(answers[n]["event"] == "ok" for n in cancels)
        assert [answers[n]["reply"]["status"] for n in asked] == ["cancelled"] * 2
    assert engine.code == 0 and fresh.stored() == []


@pytest.mark.parametrize("first_line", ["#!/no/such/interpreter", "\x7fELF"])
def test_a_program_whose_interpreter_cannot_be_run(fresh, first_line):
    lying = Impostor(fresh, "python3", "", first_line)
    reply = json.loads(lying.run("run", "--json", "--lang", "python", "-c", "print(1)").stdout)
    assert reply["status"] == "error" and reply["error"].startswith("python cannot be run in this image: "), reply
