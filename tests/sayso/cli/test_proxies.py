"""Options of `sayso mcp` and `sayso agui`. `make frameworks` tests the proxies themselves."""

import subprocess
import sys

import pytest

from service.core.settings import CHECKOUT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Name one server"),
        (("--url", "http://127.0.0.1:9/mcp", "--", "a-server"), "Name one server"),
        (("--url", "127.0.0.1:9/mcp"), "Write it as https://host/mcp"),
        (("--url", "http://127.0.0.1:9/mcp", "--header", "no colon"), "Write each --header as"),
        (("--", "a-server"), "pip install 'sayso[cli,mcp]'"),
    ],
)
def test_mcp_refuses_wrong_or_missing_options(words: tuple[str, ...], message: str) -> None:
    assert_refused(["mcp", *words], message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing option '--url'"),
        (("--url", "http://agents.example.com/"), "http is for localhost"),
        (("--url", "http://127.0.0.1.example.com/"), "http is for localhost"),
        (("--url", "https://"), "Write https://host/path"),
        (("--url", "http://[::1"), "Write https://host/path"),
        (("--url", "http://localhost:9/", "--header", "no colon"), "Write each --header as"),
    ],
)
def test_agui_refuses_wrong_or_missing_options(words: tuple[str, ...], message: str) -> None:
    assert_refused(["agui", *words], message)


def assert_refused(words: list[str], message: str) -> None:
    """Check that the command prints the message, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "sayso", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert (done.returncode > 0, done.stdout) == (True, "")
    assert message in " ".join(done.stderr.split())
