"""Commands are listed from tables and imported when they are called."""

import subprocess
import sys

import pytest

from sayso.cli.commands import COMMANDS, POLICY_COMMANDS, load

TABLES = [*COMMANDS.items(), *POLICY_COMMANDS.items()]


@pytest.mark.parametrize(("name", "row"), TABLES, ids=[name for name, _ in TABLES])
def test_row_of_table_begins_help_of_its_command(name: str, row: tuple[str, str]) -> None:
    place, text = row
    loaded = load(name, place)
    assert loaded.name == name
    assert " ".join(loaded.help.split()).startswith(text)


@pytest.mark.parametrize("words", ["--help", "policy --help"])
def test_listing_commands_imports_no_client(words: str) -> None:
    program = (
        f"import sys; sys.argv = ['sayso', *{words!r}.split()]; from sayso.__main__ import main; status = main(); "
        "sys.exit(status or sorted({'sayso.client', 'httpx', 'sayso.cli.reviews'} & sys.modules.keys()) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_client_imports_no_rules() -> None:
    program = "import sys, sayso.client; sys.exit([name for name in sys.modules if 'sayso.core.policy' in name] or 0)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
