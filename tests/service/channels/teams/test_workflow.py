"""Cards by a Workflows webhook have only a link, and nothing shows the webhook's secret."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from service.channels.base import DeliveryFailed, Recipient
from service.channels.teams.outbound import WorkflowChannel, WorkflowConfig
from tests.fakes.teams import HOOK, Teams, check_card, list_verbs, read_text, serving_teams
from tests.service.channels.conformance import ARGS, ChannelConformance, Shown, card_of, record_of

FLOW = Recipient("", "flow")


class Flow:
    """The flow's side of the fake."""

    def __init__(self, teams: Teams) -> None:
        self.teams = teams

    def cards(self, address: str) -> list[Shown]:
        return [Shown(read_text(one), bool(list_verbs(one))) for one in self.teams.hooks]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        self.teams.refuse(status, retry_after_s)

    def remove(self, address: str) -> None:
        self.teams.remove("hook")


@pytest.fixture
def provider() -> Iterator[Flow]:
    with serving_teams() as teams:
        yield Flow(teams)


@pytest.fixture
async def channel(provider: Flow) -> AsyncIterator[WorkflowChannel]:
    fields = {"name": "flow", "kind": "teams_workflow", "url": provider.teams.url + HOOK}
    channel = WorkflowChannel(WorkflowConfig.model_validate(fields))
    yield channel
    await channel.aclose()


@pytest.fixture
def recipient() -> Recipient:
    return FLOW


class TestWorkflowConformance(ChannelConformance):
    decides = False

    def check_limits(self, body: Any) -> None:
        check_card(body)


async def test_update_of_an_open_item_posts_nothing(provider: Flow, channel: WorkflowChannel) -> None:
    card = card_of(record_of(ARGS["small"]))
    reference = await channel.send(FLOW, card, "e1")
    await channel.update(FLOW, reference, card)
    assert len(provider.teams.hooks) == 1


async def test_secret_of_the_webhook_is_in_no_failure(provider: Flow, channel: WorkflowChannel) -> None:
    provider.remove("flow")
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(FLOW, card_of(record_of(ARGS["small"])), "e1")
    assert "fake-signature" not in failed.value.reason + repr(channel) + channel.destination


@pytest.mark.parametrize("url", ["", "flow", "ftp://x.example/y", "https://"])
def test_config_refuses_what_is_no_webhook(url: str) -> None:
    with pytest.raises(ValidationError, match="copy it from the flow"):
        WorkflowConfig.model_validate({"name": "flow", "kind": "teams_workflow", "url": url})
