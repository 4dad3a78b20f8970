"""The rules of tests/func hold here too: honest skips, NACRE_TESTS_MUST_RUN."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from harness import Runner, copy_programs, func

# all of it, since "from conftest import" in tests/func may find this file when both are run at once
globals().update({name: value for name, value in vars(func).items() if not name.startswith("_")})


@pytest.fixture(scope="session")
def runner():
    if os.geteuid() != 0:
        pytest.skip("needs root: each attack gets a pid namespace of its own around nacre")
    if subprocess.run(["setpriv", "--reuid", "65534", "unshare", "--user", "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces for ordinary users here")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="escape-bin-"))
    yield Runner(copy_programs(directory))
    shutil.rmtree(directory)
