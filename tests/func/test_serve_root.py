"""Sandboxes with users and with a root to write to: what the policy says of them, who commands are, what comes back after a restart."""

import os

import pytest

from serving import Daemon
from test_sandboxes import Sandbox

pytestmark = pytest.mark.usefixtures("as_root", "user_namespaces")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    home = tmp_path_factory.mktemp("root")
    policies = home / "config" / "policies"
    policies.mkdir(parents=True)
    (policies / "rootless.yaml").write_text("inherits: standard\nsandbox:\n  root: deny\n")
    (policies / "closed.yaml").write_text("inherits: standard\nsandbox:\n  writable_root: deny\n")
    (policies / "rooted.yaml").write_text("inherits: strict\nsandbox:\n  root: allow\n  writable_root: allow\n")
    (policies / "whole.yaml").write_text("inherits: standard\nfloor:\n  identity: full\n")
    with Daemon(home, config=home / "config") as made:
        yield made


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon, user="root", writable_root=True)
    yield made
    made.ask("DELETE")


def refused(daemon, **fields):
    answer = daemon.post("/v1/sandboxes", fields)
    return answer.status, answer.body.decode()


def test_commands_are_roots_unless_they_say_otherwise(sandbox):
    assert (sandbox.value["user"], sandbox.value["writable_root"]) == ("root", True)
    who = "id -u; echo $HOME $USER; pwd"
    assert sandbox.run(who)["stdout"] == "0\n/root root\n/workspace\n"
    assert sandbox.run(who, user="sandbox")["stdout"] == "1000\n/workspace sandbox\n/workspace\n"
    assert sandbox.run(who, user="nobody")["stdout"] == "65534\n/workspace nobody\n/workspace\n"
    assert sandbox.run("echo web:x:77:77::/:/bin/sh >>/etc/passwd; touch /usr/local/bin/mine; chown web /usr/local/bin/mine")["exit_code"] == 0
    assert sandbox.run("id -u; stat -c %U /usr/local/bin/mine; rm /usr/local/bin/mine || echo held", user="web")["stdout"] == "77\nweb\nheld\n"
    assert sandbox.run("id")["strength"]["identity"] == "reduced"


def test_a_user_that_is_not_there_costs_the_command_and_not_the_sandbox(sandbox):
    ended = sandbox.run("id", user="nosuch")
    assert ended["status"] == "error" and ended["failure"] == "box" and "/etc/passwd" in ended["error"], ended
    assert sandbox.run("id -u", user="0")["stdout"] == "0\n"


def test_commands_of_several_users_at_once(sandbox):
    begun = [sandbox.run("id -u; sleep 0.3; ls /proc | grep -c '^1$'", user=user, background=True)["id"] for user in ("root", "sandbox", "33", "root")]
    assert [sandbox.wait(identity)["stdout"] for identity in begun] == ["0\n0\n", "1000\n0\n", "33\n0\n", "0\n0\n"]


def test_terminals_and_input_of_root(sandbox):
    begun = sandbox.run("id -u; tty; cat", terminal=True, input="typed\n", background=True)
    assert sandbox.ask("POST", f"/commands/{begun['id']}/input", b"\x04", headers={"Content-Type": "application/octet-stream"}).status in (200, 202, 204)
    printed = sandbox.wait(begun["id"])["stdout"]  # what is typed shows as soon as it comes
    assert "0\r\n" in printed and "/dev/pts/" in printed


def test_work_on_files_is_the_sandboxs_user(sandbox):
    assert sandbox.write("/etc/made", b"by root").status in (200, 201, 204)
    assert sandbox.run("stat -c %u /etc/made; cat /etc/made")["stdout"] == "0\nby root"
    sandbox.run("echo closed >/root/closed; chmod 600 /root/closed")
    assert sandbox.ask("GET", "/files?path=/root/closed").body == b"closed\n"


def test_what_one_has_written_no_other_sees(daemon, sandbox):
    sandbox.run("echo mine >/usr/local/mine; echo x:x:5:5::/:/bin/sh >>/etc/passwd; rm /usr/bin/env")
    other = Sandbox(daemon, user="root", writable_root=True)
    try:
        assert other.run("ls /usr/local/mine; grep -c ^x: /etc/passwd; ls /usr/bin/env")["stdout"] == "0\n/usr/bin/env\n"
    finally:
        other.ask("DELETE")
    assert os.path.exists("/usr/bin/env") and not os.path.exists("/usr/local/mine")


def test_a_sandbox_that_was_made_for_its_own_user_has_no_other(daemon):
    plain = Sandbox(daemon)
    try:
        assert (plain.value["user"], plain.value["writable_root"]) == ("sandbox", False)
        answer = plain.ask("POST", "/commands", {"command": "id", "user": "root"})
        assert answer.status == 403 and b"'user'" in answer.body, answer.body
        assert plain.run("id -u; touch /usr/x || echo held")["stdout"] == "1000\nheld\n"
        assert plain.run("id")["strength"]["identity"] == "full"
    finally:
        plain.ask("DELETE")


def test_the_policy_says_whether(daemon):
    assert refused(daemon, policy="strict", user="root")[0] == 403
    status, text = refused(daemon, policy="rootless", user="root")
    assert status == 403 and "sandbox.root" in text, text
    status, text = refused(daemon, policy="rootless", user="sandbox")
    assert status == 403 and "sandbox.root" in text, text
    status, text = refused(daemon, policy="closed", writable_root=True)
    assert status == 403 and "sandbox.writable_root" in text, text
    status, text = refused(daemon, policy="whole", user="root")
    assert status == 403 and "identity=full" in text, text
    for fields in ({"policy": "rooted", "user": "root", "writable_root": True}, {"policy": "closed", "user": "root"}, {"policy": "rootless", "writable_root": True},
                   {"policy": "audit", "user": "root"}):
        made = Sandbox(daemon, **fields)
        assert made.run("id -u")["stdout"] == ("0\n" if "user" in fields else "1000\n")
        made.ask("DELETE")


@pytest.mark.parametrize("user", ["", "x" * 33, "a:b", "a\nb", 0, None, ["root"]])
def test_users_that_cannot_be(daemon, user):
    assert refused(daemon, user=user)[0] in (400, 422)


def test_the_command_line_asks_for_it(daemon, nacre):
    url = f"http://127.0.0.1:{daemon.port}"
    done = nacre("--server", url, "exec", "--user", "root", "--writable-root", "--", "sh", "-c", "id -u; touch /usr/x && echo made; echo $HOME")
    assert done.stdout == "0\nmade\n/root\n", done
    made = Sandbox(daemon, user="sandbox")
    assert nacre("--server", url, "exec", "--sandbox", made.id, "--user", "nobody", "--", "id", "-u").stdout == "65534\n"
    done = nacre("--server", url, "exec", "--sandbox", made.id, "--writable-root", "--", "id", "-u")
    assert done.returncode == 125 and "--writable-root" in done.stderr
    made.ask("DELETE")


def test_it_is_there_after_the_worker_has_died(daemon):
    made = Sandbox(daemon, user="root", writable_root=True)
    made.run("echo kept >/etc/kept")
    daemon.die()
    assert made.ask("GET").json()["user"] == "root"
    assert made.run("id -u; cat /etc/kept")["stdout"] == "0\nkept\n"
    assert made.run("id -u", user="33")["stdout"] == "33\n"
    made.ask("DELETE")


ROOT_CODE = "id -u; touch /usr/local/made /etc/made && echo wrote; chown 33 file.txt && stat -c %u file.txt; echo done >out.txt; chmod 600 out.txt; echo $HOME"


def test_executions_as_root(daemon):
    reply = daemon.execute(ROOT_CODE, "shell", user="root", writable_root=True, files={"file.txt": "x"}, capture=["out.txt"]).json()
    assert reply["status"] == "success" and reply["output"] == "0\nwrote\n33\n/root\n", reply
    assert reply["strength"]["identity"] == "reduced" and "out.txt" in reply["files"], reply
    assert not os.path.exists("/usr/local/made")


@pytest.mark.parametrize("language, code", [("python", "import os; print(os.getuid())"), ("javascript", "console.log(process.getuid())"), ("c", "#include <stdio.h>\n#include <unistd.h>\nint main(void){printf(\"%d\\n\", getuid());}")])
def test_executions_as_root_in_languages(daemon, language, code):
    """Also where interpreters wait, which are nobody's root; and what a compiler makes runs as root, the compiler does not."""
    for fields, uid in (({}, "1000"), ({"user": "root"}, "0"), ({"user": "sandbox"}, "1000"), ({"writable_root": True}, "1000"), ({"user": "root", "cache": True}, "0"), ({"cache": True}, "1000")):
        reply = daemon.execute(code, language, **fields).json()
        assert (reply["status"], reply["output"]) == ("success", uid + "\n"), (fields, reply)


def test_the_policy_says_whether_executions_may(daemon):
    for fields, word in (({"policy": "strict", "user": "root"}, "sandbox.root"), ({"policy": "strict", "writable_root": True}, "sandbox.writable_root"),
                         ({"policy": "rootless", "user": "root"}, "sandbox.root"), ({"policy": "closed", "writable_root": True}, "sandbox.writable_root"),
                         ({"policy": "whole", "user": "root"}, "identity=full")):
        reply = daemon.execute("id", "shell", **fields).json()
        assert reply["status"] == "blocked" and word in reply["error"], reply
    reply = daemon.execute("id -u", "shell", policy="rooted", user="root", tier="process").json()
    assert (reply["output"], reply["tier"]) == ("0\n", "container") and "root" in reply["tier_reason"], reply


def test_nacre_run(nacre):
    done = nacre("run", "--lang", "shell", "--user", "root", "--writable-root", "-c", "id -u; touch /usr/made && echo made")
    assert done.stdout == "0\nmade\n", done
    done = nacre("run", "--lang", "shell", "--policy", "strict", "--user", "root", "-c", "id -u")
    assert done.returncode != 0 and "sandbox.root" in done.stderr, done
    done = nacre("run", "--lang", "shell", "--user", "nobody", "-c", "id -u")
    assert done.returncode == 125 and "--user" in done.stderr, done


def test_an_ordinary_users_executions_are_refused_with_the_reason(nacre_by):
    done = nacre_by("user")("run", "--lang", "shell", "--user", "root", "-c", "id -u")
    assert done.returncode != 0 and "one user id" in done.stderr, done
