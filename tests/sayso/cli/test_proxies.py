"""Options of `sayso mcp`. `make frameworks` tests the proxy itself."""

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
    command = [sys.executable, "-m", "sayso", "mcp", *words]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in " ".join(done.stderr.split())
