"""Tokens of Slack apps are encrypted in the store, under a key that is not in it."""

from typing import Any

import pytest

from service.channels.slack.api import OpenedToken, SlackConfig, open_token, seal_token

TOKEN = "xoxb-canary-token"
FIELDS: dict[str, Any] = {
    "name": "ops",
    "kind": "slack",
    "app_id": "A1",
    "team_id": "T1",
    "client_id": "1.2",
    "client_secret": "first-secret",
    "signing_secrets": ["s" * 16],
}


def config(**fields: Any) -> SlackConfig:
    return SlackConfig.model_validate({**FIELDS, **fields})


def test_sealed_token_is_opened_by_its_channel_alone() -> None:
    sealed = seal_token(config(), TOKEN)
    assert "canary" not in sealed
    assert sealed != seal_token(config(), TOKEN), "each one is encrypted differently"
    assert open_token(config(), sealed) == OpenedToken(TOKEN, stale=False)


@pytest.mark.parametrize("change", [{"client_secret": "other"}, {"name": "other"}, {"app_id": "A2"}, {"team_id": "T2"}])
def test_sealed_token_of_another_channel_is_not_opened(change: dict[str, str]) -> None:
    assert open_token(config(**change), seal_token(config(), TOKEN)) is None


@pytest.mark.parametrize("sealed", ["", TOKEN, "gAAAA", "\u00e9"])
def test_text_that_is_no_sealed_token_is_not_opened(sealed: str) -> None:
    assert open_token(config(), sealed) is None


def test_altered_token_is_not_opened() -> None:
    sealed = seal_token(config(), TOKEN)
    for place in range(0, len(sealed), 7):
        other = "A" if sealed[place] != "A" else "B"
        assert open_token(config(), f"{sealed[:place]}{other}{sealed[place + 1 :]}") is None


def test_old_client_secret_opens_the_token_as_stale() -> None:
    rotated = config(client_secret="second-secret", old_client_secret="first-secret")
    assert open_token(rotated, seal_token(config(), TOKEN)) == OpenedToken(TOKEN, stale=True)
    assert open_token(config(client_secret="second-secret"), seal_token(rotated, TOKEN)) == OpenedToken(TOKEN, False)
