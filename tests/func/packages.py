"""Tiny packages for tests: wheels and npm tarballs, honest ones and others, and who installs them."""

import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import time
import zipfile

from conftest import environment

USER = 1000


def wheel(directory, name, version="1.0", requires=(), files=None, entries=()):
    """Writes a wheel and returns its path. entries are (ZipInfo or name, content) as they stand, whatever they are."""
    stem = f"{name.replace('-', '_').lower()}-{version}"
    info = f"{stem}.dist-info"
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    content = files or {f"{name.replace('-', '_').lower()}.py": f"VERSION = '{version}'\n"}
    path = pathlib.Path(directory, f"{stem}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, text in content.items():
            archive.writestr(place, text)
        for place, text in entries:
            archive.writestr(place, text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    path.chmod(0o644)
    return path


def tarball(directory, name, version="1.0.0", dependencies=None, files=None, members=(), **more):
    """Writes an npm tarball and returns its path. members are TarInfos with content, as they stand."""
    manifest = {"name": name, "version": version, "main": "index.js", "dependencies": dependencies or {}, **more}
    content = {"package.json": json.dumps(manifest), **(files or {"index.js": f"module.exports = '{name} {version}';\n"})}
    path = pathlib.Path(directory, f"{name.lstrip('@').replace('/', '-')}-{version}.tgz")
    with tarfile.open(path, "w:gz") as archive:
        for place, text in content.items():
            member = tarfile.TarInfo(f"package/{place}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path.chmod(0o644)
    return path


def remove(place):
    """A recorder writes its last lines after the run that it is about has ended."""
    for _ in range(50):
        try:
            shutil.rmtree(place)
            return
        except OSError:
            time.sleep(0.1)
    shutil.rmtree(place)


class Caller:
    """Somebody with a configuration, a state and sources of packages of his own."""

    def __init__(self, place, programs, who):
        self.place, self.who, self.program = pathlib.Path(place), who, programs / "nacre"
        self.state, self.config = self.place / "state", self.place / "config"
        self.wheels, self.tarballs = self.place / "wheels", self.place / "tarballs"
        for directory in (self.config, self.wheels, self.tarballs, self.state):
            directory.mkdir(mode=0o755)
        os.chown(self.state, *((USER, USER) if who == "user" else (0, 0)))
        if who == "root":
            self.state.rmdir()  # nacre makes it, as the worker's
        self.configure()

    def configure(self, text=None, **values):
        lines = text if text is not None else (f"packages:\n  python:\n    wheels: {self.wheels}\n"
                                               f"  javascript:\n    tarballs: {self.tarballs}\n")
        if "max_mb" in values:
            lines += f"environments:\n  max_mb: {values['max_mb']}\n"
        (self.config / "nacre.yaml").write_text(lines)

    def command(self, *args):
        prefix = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if self.who == "user" else []
        return [*prefix, str(self.program), "--config", str(self.config), *map(str, args)]

    def variables(self):
        return {**environment(self.place), "NACRE_STATE": str(self.state)}

    def run(self, *args, **options):
        return subprocess.run(self.command(*args), env=self.variables(), capture_output=True, text=True, timeout=120, cwd="/",
                              stdin=subprocess.DEVNULL, **options)

    def start(self, *args):
        return subprocess.Popen(self.command(*args), env=self.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd="/", stdin=subprocess.DEVNULL, start_new_session=True)

    def build(self, *packages, language="python", good=True):
        done = self.run("env", "build", "--json", "--lang", language, *packages)
        assert (done.returncode == 0) == good, done
        return json.loads(done.stdout) if good else done.stderr

    def stored(self):
        """What stands in the store, leftovers included."""
        store = self.state / "environments"
        return sorted(path.name for path in store.iterdir()) if store.exists() else []

    def layer(self, key):
        return self.state / "environments" / key / "layer"

    def listed(self):
        done = self.run("env", "list", "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)["environments"]


class Impostor:
    """For a caller: an image in which a shell script stands in the place of a program of /usr/bin, in a mount namespace."""

    def __init__(self, caller, program, script, first_line="#!/bin/sh"):
        self.caller, self.path = caller, caller.place / program
        self.path.write_text(f"{first_line}\n{script}\n")
        self.path.chmod(0o755)
        self.prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                       f'mount --bind {self.path} "$(readlink -f /usr/bin/{program})" && exec "$@"', "sh"]

    def run(self, *args):
        return subprocess.run([*self.prefix, *self.caller.command(*args)], env=self.caller.variables(), capture_output=True, text=True,
                              timeout=120, cwd="/", stdin=subprocess.DEVNULL)
