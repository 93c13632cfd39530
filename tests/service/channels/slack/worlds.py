"""Slack channels for tests, on a fake workspace."""

from typing import Any

from service.channels.slack.config import SlackConfig
from tests.fakes.slack import APP, APP_TOKEN, BOT_TOKEN, ROOM, SIGNING_SECRET, TEAM, FakeSlack

NAME = "ops-slack"


def fields_of(slack: FakeSlack, **fields: Any) -> dict[str, Any]:
    """Return the fields of a channel in the channels file."""
    known = {"kind": "slack", "app_id": APP, "team_id": TEAM, "channel": ROOM, "bot_token": BOT_TOKEN}
    known |= {"base_url": f"{slack.url}/api/", "hooks_url": f"{slack.url}/hooks/", "per_minute": 6000}
    return {**known, "signing_secrets": [SIGNING_SECRET], **fields}


def config_of(slack: FakeSlack, **fields: Any) -> SlackConfig:
    """Return a channel's configuration."""
    return SlackConfig.model_validate({"name": NAME, **fields_of(slack, **fields)})


def socket_fields(slack: FakeSlack, **fields: Any) -> dict[str, Any]:
    """Return the fields of a channel in Socket Mode."""
    return fields_of(slack, signing_secrets=[], app_token=APP_TOKEN, **fields)
