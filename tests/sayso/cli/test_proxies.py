"""`sayso mcp` says what it needs before it starts anything; `make frameworks` tests what it does then."""

import subprocess
import sys

import pytest

from service.settings import CHECKOUT


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Name one server"),
        (("--url", "http://127.0.0.1:9/mcp", "--", "a-server"), "Name one server"),
        (("--url", "127.0.0.1:9/mcp"), "Write it as https://host/mcp"),
        (("--url", "http://127.0.0.1:9/mcp", "--header", "no colon"), "Write each --header as"),
        (("--", "a-server"), "pip install 'sayso[cli,mcp]'"),
    ],
)
def test_what_is_missing_is_told_in_a_sentence(words: tuple[str, ...], told: str) -> None:
    command = [sys.executable, "-m", "sayso", "mcp", *words]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in " ".join(done.stderr.split())
