"""Tests of sandboxes, their files and their terminals, as they are in test_sandboxes, test_sandbox_archives and test_terminals, against a
daemon whose sandboxes are held by the second holder (tests/holder): nothing in them knows."""

import pathlib

import pytest

from conftest import open_way
from serving import Daemon
from test_holders import CLAIMS, NACRE
from test_sandbox_archives import test_a_tree_comes_back, test_damaged_archives  # noqa: F401
from test_sandboxes import Sandbox
from test_sandboxes import (test_a_signal_reaches_who_has_not_begun, test_bad_commands, test_commands_run_beside_each_other,  # noqa: F401
                            test_commands_share_files_and_have_ends_of_their_own, test_events_of_a_command, test_files, test_input_signals_and_terminals,
                            test_pause_and_resume, test_stats_and_health, test_work_on_files_is_bounded)
from test_terminals import (test_a_terminal, test_attach, test_clients_that_hang_up, test_fragments_and_pings, test_much_both_ways,  # noqa: F401
                            test_streams_and_an_end)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    home = tmp_path_factory.mktemp("elsewhere")
    open_way(home)
    with Daemon(home, program=NACRE, env=CLAIMS) as made:
        yield made


def place_of(box):
    """Its workspace: all of them are numbered below one directory of the holder's, and the newest is its."""
    numbers = [path for path in pathlib.Path("/tmp").glob(f"plain-holder.{box.daemon.aides()['plain']}.*/*")]
    return str(max(numbers, key=lambda path: int(path.name)) / "workspace")


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon, tier="remote", labels={"test": "yes"})
    made.place = place_of(made)
    yield made
    made.ask("DELETE")
