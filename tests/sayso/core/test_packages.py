"""The command that installs the SDK, and the sentence about a desk of another version."""

import pytest

from sayso import __version__
from sayso.core.packages import describe_difference, install_command


@pytest.mark.parametrize(
    ("extras", "url", "command"),
    [
        ("", None, "pip install sayso"),
        ("cli,mcp", None, "pip install 'sayso[cli,mcp]'"),
        ("", "http://127.0.0.1:8321", "pip install --extra-index-url http://127.0.0.1:8321/sdk/ sayso"),
        ("cli", "https://d.example/", "pip install --extra-index-url https://d.example/sdk/ 'sayso[cli]'"),
        (
            "",
            "http://10.0.0.5:8321",
            "pip install --extra-index-url http://10.0.0.5:8321/sdk/ --trusted-host 10.0.0.5:8321 sayso",
        ),
        ("", "http://[::1]:8321", "pip install --extra-index-url 'http://[::1]:8321/sdk/' sayso"),
        ("", "desk.example", "pip install sayso"),
        ("", "http://[", "pip install sayso"),
    ],
)
def test_install_command_fits_the_desk(
    monkeypatch: pytest.MonkeyPatch, extras: str, url: str | None, command: str
) -> None:
    monkeypatch.delenv("SAYSO_URL", raising=False)
    assert install_command(extras, url) == command
    if url is not None:
        monkeypatch.setenv("SAYSO_URL", url)
        assert install_command(extras) == command, "an error knows the desk from the environment"


def test_difference_of_versions_is_a_sentence_with_a_command() -> None:
    url = "http://127.0.0.1:8321"
    assert describe_difference(url, __version__) is None
    assert describe_difference(url, "9.0.0") == (
        f"The desk at {url} is Sayso 9.0.0, and this SDK is {__version__}. "
        f"Install that of the desk: pip install --extra-index-url {url}/sdk/ sayso==9.0.0"
    )


@pytest.mark.parametrize("version", ["", "latest", "1; rm -rf ~", "1\nInstall", "1" * 41])
def test_version_that_is_none_is_not_repeated(version: str) -> None:
    assert describe_difference("http://127.0.0.1:8321", version) is None
