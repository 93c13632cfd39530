"""Members of an Enterprise Grid in Slack, and reply addresses that only look like Slack's."""

from contextlib import nullcontext
from typing import Any

import pytest

from sayso.errors import NotAllowed
from service.channels.slack.api import SlackConfig
from service.channels.slack.payloads import BlockActions, check_origin, source_of
from tests.fakes.slack_api import ANNA, APP, TEAM
from tests.service.channels.slack.worlds import NAME, SlackWorld


@pytest.mark.parametrize(
    "address", ["{}@evil.example/", "{}:80@evil.example/", "{}\\@evil.example/", "{}.evil.example/"]
)
async def test_reply_address_that_only_begins_like_slacks_is_refused(slack_world: SlackWorld, address: str) -> None:
    _, message = await slack_world.ask()
    payload = slack_world.slack.press(message, "sayso:approve")
    elsewhere = f"{address.format(slack_world.slack.url)}hooks/1"
    await slack_world.interact({**payload, "response_url": elsewhere})
    assert slack_world.slack.responses == []


GRID = {"enterprise_id": "E0GRID", "teams": ["T0HOME", TEAM]}


async def test_member_of_an_enterprise_grid_links_and_decides(slack_world: SlackWorld) -> None:
    """The home workspace of the person is another one; Slack counts them to this one, too."""
    slack_world.slack.join(ANNA, team_id="T0HOME", enterprise_user=GRID)
    code = await slack_world.world.wiring.contacts.create_code("anna", NAME)
    assert "Linked to anna" in await slack_world.command(f"link {code.code}")
    record, message = await slack_world.ask()
    home: dict[str, Any] = {"user": {"id": ANNA, "team_id": "T0HOME"}, "enterprise": {"id": "E0GRID", "name": "Acme"}}
    await slack_world.interact({**slack_world.slack.press(message, "sayso:approve"), **home})
    outcome = (await slack_world.read(record)).outcome
    assert outcome is not None
    assert outcome.by.id == "anna"


async def test_stranger_of_another_grid_is_refused(slack_world: SlackWorld) -> None:
    await slack_world.link()
    slack_world.slack.join(ANNA, team_id="T0HOME", enterprise_user={"enterprise_id": "E0OTHER", "teams": ["T0HOME"]})
    record, message = await slack_world.ask()
    home: dict[str, Any] = {"user": {"id": ANNA, "team_id": "T0HOME"}, "enterprise": {"id": "E0OTHER"}}
    await slack_world.interact({**slack_world.slack.press(message, "sayso:approve"), **home})
    assert "other workspaces" in slack_world.slack.responses[-1]["text"]
    assert (await slack_world.read(record)).open


@pytest.mark.parametrize(
    ("enterprise", "named", "accepted"),
    [("E0GRID", "E0GRID", True), ("", "E0GRID", False), ("E0GRID", "E0OTHER", False), ("", "", False)],
)
def test_payload_without_a_workspace_needs_the_named_grid(enterprise: str, named: str, accepted: bool) -> None:
    fields = {"name": NAME, "kind": "slack", "app_id": APP, "team_id": TEAM, "bot_token": "xoxb-1"}
    config = SlackConfig.model_validate({**fields, "signing_secrets": ["s" * 32], "enterprise_id": enterprise})
    sent = {"type": "block_actions", "user": {"id": ANNA}, "team": None, "enterprise": {"id": named}, "api_app_id": APP}
    pressed = BlockActions.model_validate({**sent, "actions": [{"action_id": "a", "action_ts": "1"}]})
    with nullcontext() if accepted else pytest.raises(NotAllowed, match="enterprise_id"):
        check_origin(config, source_of(pressed), pressed.user)
