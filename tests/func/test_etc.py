"""The box's /etc: what packages of the image bring and programs need, and nothing that tells about the host or its people."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest

from conftest import NACRE, environment

# what a package's scripts make of the packages' own files; the same on every host with these packages
MADE = {"alternatives": "links to programs", "ssl/certs": "links to certificates of ca-certificates", "fonts/conf.d": "links to conf.avail",
        "ld.so.cache": "by ldconfig", "localtime": "a link", "sgml": "catalogs", "xml": "catalogs", "python3.11": "py3compile",
        "java-17-openjdk": "certificates and links", "java-11-openjdk": "", "java-21-openjdk": "", "texmf": "updmap", "groff": "links"}
OURS = {"passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "mtab", "os-release"}
# what says who or where the host is, whatever else is shown
TELLING = ["passwd-", "shadow", "gshadow", "group-", "subuid", "subgid", "machine-id", "fstab", "crypttab", "exports", "sudoers", "sudoers.d", "ssh", "ssl/private",
           "cron.d", "crontab", "cron.daily", "network", "netplan", "NetworkManager", "hosts.allow", "hosts.deny", "krb5.conf", "krb5.keytab", "ldap", "sssd", "pam.d",
           "security", "systemd", "init.d", "default", "apt", "environment", "profile.d", "motd", "issue", "adjtime", "timezone", "wireguard", "openvpn", "ppp", "gitconfig",
           "npmrc", "pip.conf", "docker", "containers", "kubernetes", "nacre", "postgresql", "mysql", "nginx", "apache2", "postfix", "aliases", "letsencrypt", "skel"]
LIST = ("import os, hashlib\n"
        "for top, dirs, files in os.walk('/etc', followlinks=False):\n"
        "  for name in files + [d for d in dirs if os.path.islink(os.path.join(top, d))]:\n"
        "    path = os.path.join(top, name)\n"
        "    if os.path.islink(path): print(path, '->', os.readlink(path))\n"
        "    else: print(path, hashlib.md5(open(path, 'rb').read()).hexdigest(), oct(os.stat(path).st_mode & 0o777))\n")


def shipped():
    """Files of /etc as packages brought them: path -> MD5, or None where dpkg does not keep one."""
    asked = subprocess.run(["dpkg-query", "-W", "-f=${Conffiles}\n"], capture_output=True, text=True).stdout
    known = dict(line.split()[:2] for line in asked.splitlines() if line.startswith(" /etc/"))
    for info in pathlib.Path("/var/lib/dpkg/info").glob("*.md5sums"):
        known.update({"/" + line.split(None, 1)[1]: line.split(None, 1)[0] for line in info.read_text().splitlines() if "  etc/" in line})
    for info in pathlib.Path("/var/lib/dpkg/info").glob("*.list"):
        for line in info.read_text().splitlines():
            if line.startswith("/etc/"):
                known.setdefault(line, None)
    return known


@pytest.fixture(params=["root", "user"])
def caller(request, nacre_by):
    return nacre_by(request.param)


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="a rule about Debian's packages")
def test_what_is_shown_is_a_packages_own(caller):
    known, wrong = shipped(), []
    lines = caller("exec", "--", "python3", "-c", LIST).stdout.splitlines()
    assert len(lines) > 20 and len(known) > 100
    for line in lines:
        path, what, *mode = line.split(" ")
        name = path.removeprefix("/etc/")
        if name in OURS or any(name == made or name.startswith(made + "/") for made in MADE):
            continue
        if what == "->" or path not in known or (known[path] and known[path] != what) or not int(mode[0], 8) & 0o004:
            wrong.append(line)
    assert wrong == []


def test_nothing_tells_about_the_host_or_its_people(caller):
    seen = caller("exec", "--", "sh", "-c", "for name; do test -e /etc/$name && echo there: $name; done; cat /etc/passwd /etc/hosts /etc/hostname /etc/resolv.conf", "-", *TELLING).stdout
    assert "there:" not in seen
    assert os.uname().nodename not in seen and "sandbox:x:1000" in seen


def test_what_is_not_for_everybody_is_not_for_boxes(caller):
    """Files in directories that are shown keep their permissions, and nobody in a box is their owner."""
    closed = [path for top in ("fonts", "java-17-openjdk", "perl", "vim", "xml", "ssl/certs") for path in pathlib.Path("/etc", top).rglob("*")
              if path.is_file() and not stat.S_IMODE(path.stat().st_mode) & 0o004]
    for path in closed:
        assert caller("exec", "--", "cat", path).returncode != 0


@pytest.mark.parametrize("tier", ["container", "process"])
def test_any_version_of_a_package(as_root, tmp_path, tier):
    """Directories with a version in their name are found by it; what only begins like them is not."""
    theirs, others = ("python3.19", "java-30-openjdk", "ImageMagick-8"), ("python3.19.local", "java-30-openjdk-keys", "java-key-openjdk", "ImageMagick-")
    script = f"cp -a /etc {tmp_path}/etc && cd {tmp_path}/etc && for name in {' '.join(theirs + others)}; do mkdir -p $name && echo $name >$name/f || exit 9; done\n" \
             f"mount --bind {tmp_path}/etc /etc && cd / && exec {NACRE} exec --tier {tier} -- sh -c 'cat /etc/*/f 2>/dev/null'"
    if tier == "process":  # names can be seen there, files cannot be read
        script = script.replace("cat /etc/*/f", "cd /etc; cat " + " ".join(f"{name}/f" for name in theirs + others))
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.split()) == sorted(theirs), done


def has(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin"), reason=f"no {program} here")


@has("fc-list")
def test_fontconfig(caller):
    done = caller("exec", "--", "fc-list")
    assert done.returncode == 0 and "Fontconfig error" not in done.stderr and done.stdout.count("\n") >= 1, done


@has("openssl")
def test_openssl(caller):
    script = ("openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/k -out /tmp/c -subj /CN=pearl -days 1 2>/dev/null && "
              "openssl x509 -in /tmp/c -noout -subject")
    assert "pearl" in caller("exec", "--", "sh", "-c", script).stdout


@has("java")
def test_java(caller):
    done = caller("exec", "--", "java", "-XshowSettings:security:providers", "-version")
    assert done.returncode == 0 and "SunJSSE" in done.stderr and "rror" not in done.stderr, done


@has("java")
@pytest.mark.parametrize("given", ["", "-XX:MaxRAM=268435456"])
def test_java_goes_by_the_memory_of_the_box(caller, given):
    """A quarter of the 512 MB that boxes have by default, as of any machine; what the caller sets stands."""
    words = ["--env", f"JAVA_TOOL_OPTIONS={given}"] if given else []
    done = caller("exec", *words, "--", "java", "-XX:+PrintFlagsFinal", "-version")
    assert done.returncode == 0, done
    flags = dict(re.findall(r"^\s*\S+ (\w+)\s+= (\S+)", done.stdout, re.M))
    assert int(flags["MaxRAM"]) == (256 if given else 512) << 20
    assert int(flags["MaxHeapSize"]) <= 128 << 20


@has("man")
def test_man(caller):
    page = caller("exec", "--", "sh", "-c", "MANWIDTH=80 man -P cat ls").stdout
    assert "LS(1)" in page and "SYNOPSIS" in page or "minimized" in page, page


@has("python3")
def test_matplotlib(caller):
    if caller("exec", "--", "/usr/bin/python3", "-c", "import matplotlib").returncode != 0:
        pytest.skip("no matplotlib here")
    code = "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p; p.plot([1, 2]); p.title('x'); p.savefig('/tmp/x.png'); print('drawn')"
    done = caller("exec", "--timeout", "60s", "--", "/usr/bin/python3", "-c", code)
    assert done.stdout == "drawn\n", done


@has("perl")
def test_perl(caller):
    assert caller("exec", "--", "perl", "-MNet::Config", "-e", "print 'good'").stdout == "good"
