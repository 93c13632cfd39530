"""The fields of a Slack channel, and the examples of its page."""

import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from service.channels.slack.answering import router
from service.channels.slack.api import SlackConfig
from service.features.operate.slack_install import SCOPES
from service.features.operate.slack_install import router as pages
from tests.architecture.sources import ROOT

BASE: dict[str, Any] = {
    "name": "ops",
    "kind": "slack",
    "app_id": "A1",
    "team_id": "T1",
    "bot_token": "xoxb-1",
    "signing_secrets": ["s" * 16],
}
PAGE = (ROOT / "docs" / "channels" / "slack.md").read_text()
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bot_token": None}, "either bot_token, or client_id"),
        ({"client_id": "1.2", "client_secret": "x"}, "either bot_token, or client_id"),
        ({"bot_token": None, "client_id": "1.2"}, "belong together"),
        ({"client_secret": "x"}, "belong together"),
        ({"old_client_secret": "x"}, "old_client_secret needs client_secret"),
        ({"signing_secrets": []}, "decisions need signing_secrets, or app_token"),
        ({"signing_secrets": [""]}, "16 or more visible characters"),
        ({"signing_secrets": ["s" * 15]}, "16 or more visible characters"),
        ({"signing_secrets": ["s" * 16, "with a blank in it"]}, "16 or more visible characters"),
        ({"bot_token": "xapp-1"}, "bot_token begins with xoxb-"),
        ({"app_token": "xoxb-1"}, "app_token begins with xapp-"),
        ({"app_id": "sayso"}, "app_id"),
        ({"team_id": ""}, "team_id"),
        ({"base_url": "https://slack.com/api"}, "base_url"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_faulty_channel_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        SlackConfig.model_validate({**BASE, **change})


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"signing_secrets": [], "decide": False},
        {"signing_secrets": [], "app_token": "xapp-1"},
        {"bot_token": None, "client_id": "1.2", "client_secret": "x"},
        {"signing_secrets": ["a" * 16, "b" * 32]},
    ],
)
def test_channel_is_accepted_without_showing_its_secrets(change: dict[str, Any]) -> None:
    config = SlackConfig.model_validate({**BASE, **change})
    assert not any(secret in repr(config) for secret in ("xoxb-1", "xapp-1", "s" * 16))


def test_examples_of_the_page_are_valid_channels() -> None:
    found = [one["channels"] for one in EXAMPLES if "channels" in one]
    assert len(found) == 2
    environ = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1", "SLACK_SIGNING_SECRET": "s" * 32}
    for channels in found:
        for name, fields in channels.items():
            SlackConfig.model_validate({"name": name, **fields}, context={"environ": environ})


def test_manifests_of_the_page_have_the_scopes_and_routes() -> None:
    manifests = [one for one in EXAMPLES if "oauth_config" in one]
    assert [one["settings"]["socket_mode_enabled"] for one in manifests] == [False, True]
    assert all(tuple(one["oauth_config"]["scopes"]["bot"]) == SCOPES for one in manifests)
    known = {getattr(route, "path", "") for route in (*router.routes, *pages.routes)}
    named = re.findall(r"https://sayso\.example\.com(/\S+)", PAGE)
    assert len(named) == 4
    assert {path.replace("ops-slack", "{name}") for path in named} <= known


def test_page_describes_every_field() -> None:
    assert [name for name in SlackConfig.model_fields if f"`{name}`" not in PAGE and name not in ("name", "kind")] == []
