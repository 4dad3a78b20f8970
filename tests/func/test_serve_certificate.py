"""nacre serve: a new certificate, without a new start."""

import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import time

import pytest

from conftest import open_way
from serving import Daemon


def make(directory, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost", "-keyout", directory / f"{name}.key",
                    "-out", directory / f"{name}.crt"], check=True, capture_output=True)
    return directory / f"{name}.crt", directory / f"{name}.key"


class Certificates:
    def __init__(self, home):
        self.made = {name: make(home, name) for name in ("pearl", "oyster")}
        self.place = home / "live"
        self.place.mkdir(mode=0o700)
        self.options = ("--tls-cert", str(self.place / "cert.pem"), "--tls-key", str(self.place / "key.pem"))

    def put(self, certificate, key):
        """As tools that renew them do: by renaming."""
        for source, name in ((self.made[certificate][0] if certificate in self.made else None, "cert.pem"), (self.made[key][1], "key.pem")):
            fresh = self.place / "fresh"
            shutil.copy(source, fresh) if source else fresh.write_text(certificate)
            fresh.chmod(0o600)
            fresh.rename(self.place / name)

    def connect(self, daemon, name):
        """A connection, which fails unless that is its certificate."""
        context = ssl.create_default_context(cafile=str(self.made[name][0]))
        return context.wrap_socket(daemon.connect(), server_hostname="localhost")


def ask(client):
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client.recv(65536).startswith(b"HTTP/1.1 200")


def hang_up(daemon, message):
    """SIGHUP, and what the log says of it."""
    count = sum(record["message"] == message for record in daemon.log())
    os.kill(daemon.process.pid, signal.SIGHUP)
    until = time.monotonic() + 20
    while True:
        found = [record for record in daemon.log() if record["message"] == message]
        if len(found) > count:
            return found[-1]
        assert time.monotonic() < until, open(daemon.log_path).read()
        time.sleep(0.05)


GOOD, BAD = "The certificate was read again", "The certificate is bad, keeping the old one"


@pytest.mark.parametrize("respawn", (False, True))
def test_a_new_certificate(tmp_path, respawn):
    certificates = Certificates(tmp_path)
    certificates.put("pearl", "pearl")
    with Daemon(tmp_path, *certificates.options, respawn=respawn) as daemon:
        with certificates.connect(daemon, "pearl") as old:
            assert ask(old)
            certificates.put("oyster", "oyster")
            hang_up(daemon, GOOD)
            with certificates.connect(daemon, "oyster") as new:
                assert ask(new) and ask(old)  # who was there goes on
            with pytest.raises(ssl.SSLError):
                certificates.connect(daemon, "pearl")
            # bad ones: no PEM, not the key of it, not there
            for certificate, key, reason in (("nonsense", "oyster", "Certificate"), ("pearl", "oyster", "Key of the certificate")):
                certificates.put(certificate, key)
                assert reason in hang_up(daemon, BAD)["reason"]
                assert ask(certificates.connect(daemon, "oyster")) and ask(old)
            (certificates.place / "key.pem").unlink()
            assert "No such file" in hang_up(daemon, BAD)["reason"]
        # the next daemon has what this one took, not what it began with
        if not respawn:
            daemon.die()
            assert ask(certificates.connect(daemon, "oyster"))
        certificates.put("pearl", "pearl")
        hang_up(daemon, GOOD)
        assert ask(certificates.connect(daemon, "pearl"))
    assert daemon.code == 0


def test_who_reads_them_has_little_and_comes_back(tmp_path):
    certificates = Certificates(tmp_path)
    certificates.put("pearl", "pearl")
    with Daemon(tmp_path, *certificates.options) as daemon:
        pid = daemon.aides()["certifier"]
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
        if os.geteuid() == 0:
            assert "CapEff:\t0000000000000002" in status  # it reads what only root may
        daemon_status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
        assert "CapEff:\t0000000000000000" in daemon_status
        os.kill(pid, signal.SIGKILL)
        daemon.wait_for_log("An aide is there again")
        certificates.put("oyster", "oyster")
        hang_up(daemon, GOOD)
        assert ask(certificates.connect(daemon, "oyster"))


def test_without_tls_nobody_reads_certificates(tmp_path):
    with Daemon(tmp_path) as daemon:
        assert "certifier" not in daemon.aides()
        hang_up(daemon, "The configuration was read again")


def test_links_of_those_who_renew_certificates(tmp_path, as_root):
    """live/cert.pem -> ../archive/cert2.pem"""
    certificates = Certificates(tmp_path)
    archive = tmp_path / "archive"
    archive.mkdir(mode=0o700)
    open_way(tmp_path)
    for number, name in enumerate(("pearl", "oyster"), 1):
        shutil.copy(certificates.made[name][0], archive / f"cert{number}.pem")
        shutil.copy(certificates.made[name][1], archive / f"key{number}.pem")

    def point(number):
        for name in ("cert", "key"):
            (certificates.place / f"{name}.pem").unlink(missing_ok=True)
            (certificates.place / f"{name}.pem").symlink_to(f"../archive/{name}{number}.pem")
    point(1)
    with Daemon(tmp_path, *certificates.options) as daemon:
        point(2)
        hang_up(daemon, GOOD)
        assert ask(certificates.connect(daemon, "oyster"))
