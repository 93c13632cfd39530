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
        (("--url", "http://127.0.0.1:9/mcp", "--header", "no colon"), "Write each --header as"),
        (("--", "a-server"), "pip install 'sayso[cli,mcp]'"),
    ],
)
def test_mcp_refuses_wrong_or_missing_options(words: tuple[str, ...], message: str) -> None:
    assert_refused(["mcp", *words], message)


def test_agui_refuses_wrong_or_missing_options() -> None:
    assert_refused(["agui"], "Missing option '--url'")
    assert_refused(["agui", "--url", "http://localhost:9/", "--header", "no colon"], "Write each --header as")


@pytest.mark.parametrize("command", ["mcp", "agui"])
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://agents.example.com/", "the way to agents.example.com. Use https, or --plain-http."),
        ("http://127.0.0.1.example.com/", "Use https, or --plain-http."),
        ("https://", "Write it as https://host/path"),
        ("http://[::1", "Write it as https://host/path"),
        ("127.0.0.1:9/mcp", "Write it as https://host/path"),
        ("file:///etc/passwd", "Write it as https://host/path"),
    ],
)
def test_proxies_reach_other_machines_by_https(command: str, url: str, message: str) -> None:
    assert_refused([command, "--url", url], message)


@pytest.mark.parametrize("command", ["mcp", "agui"])
@pytest.mark.parametrize(
    "url", [("http://agent:8000/", "--plain-http"), ("http://127.1.1.1/",), ("https://a.example/",)]
)
def test_proxies_take_urls_that_are_safe_or_allowed(command: str, url: tuple[str, ...]) -> None:
    assert_refused([command, "--header", "no colon", "--url", *url], "Write each --header as")


def assert_refused(words: list[str], message: str) -> None:
    """Check that the command prints the message, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "sayso", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert (done.returncode > 0, done.stdout) == (True, "")
    assert message in " ".join(done.stderr.split())
