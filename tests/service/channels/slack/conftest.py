"""Give tests of Slack a workspace, and the running app with a channel in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.core.settings import Settings
from tests.fakes.slack import FakeSlack, running_slack
from tests.service.channels.slack.worlds import NAME, SlackWorld, fields_of
from tests.service.worlds import POLICY, World


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with running_slack() as running:
        yield running


@pytest.fixture
def channel_fields(slack: FakeSlack) -> dict[str, Any]:
    """The channel's fields in the channels file; a test module may have its own."""
    return fields_of(slack)


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, channel_fields: dict[str, Any]) -> Settings:
    channels, policy = tmp_path / "channels.yaml", tmp_path / "policy.yaml"
    channels.write_text(yaml.safe_dump({"channels": {NAME: channel_fields}}))
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, channels=channels)


@pytest.fixture
def slack_world(world: World, slack: FakeSlack) -> SlackWorld:
    return SlackWorld(world, slack)
