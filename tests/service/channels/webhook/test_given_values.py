"""What a webhook says and takes is exact, and a password that arrives by one is shown nowhere afterwards."""

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from pydantic import SecretStr

from sayso.core.records.events import WebhookEvent
from sayso.core.text.redaction import MASK
from service.channels.webhook_events import build_event
from service.core.settings import Settings
from service.core.store.announcements import Announcement
from tests.service.channels.given import BEYOND, PAIRS, SECRET, TYPED, WHOLE, call_with, read_views, redeem
from tests.service.channels.webhook.test_inbound import NEW, send
from tests.service.edge.api.test_exact_integers import call
from tests.service.edge.api.test_execution import ask
from tests.service.worlds import POLICY, World


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", webhook_secret=(SecretStr(NEW),))


async def give(world: World, suspension: dict[str, Any], **given: Any) -> Response:
    """Send a signed decision about the suspension's item."""
    (item,) = suspension["items"]
    basics = {"suspension_id": suspension["id"], "item_id": "i1", "reviewer": "anna", "digest": item["digest"]}
    async with world.client() as client:
        answer = await send(client, {**basics, **given})
    assert answer.status_code == 200, answer.text
    return answer


async def describe(world: World, suspension: dict[str, Any], event: WebhookEvent) -> str:
    """Return the body of an event about the suspension's item."""
    record = (await world.wiring.desk.suspensions.read(suspension["id"])).record
    definitions = await world.wiring.runs.find_definitions([record])
    announcement = Announcement(id="e1", type=event, suspension_id=record.id, item_id="i1", at_ms=record.updated_at_ms)
    body = build_event(announcement, record, definitions, world.wiring.settings.public_url)
    assert body is not None
    return body


@pytest.mark.parametrize("order", BEYOND)
async def test_event_holds_an_integer_exactly(world: World, order: int) -> None:
    suspension = (await ask(world, call(order))).json()
    body = await describe(world, suspension, WebhookEvent.ITEM_CREATED)
    assert f'"args":{{"order":{order}}}' in body


@pytest.mark.parametrize(("sent", "given"), PAIRS)
async def test_edited_integer_in_a_webhook_reaches_the_call(world: World, sent: float, given: int) -> None:
    suspension = (await ask(world, call(2**81))).json()
    await give(world, suspension, action="approve", args={"order": sent})
    assert f'"args":{{"order":{given}}}' in await describe(world, suspension, WebhookEvent.ITEM_DECIDED)
    assert await redeem(world, suspension) == f'{{"order": {given}}}'


@pytest.mark.parametrize(("sent", "given"), PAIRS)
async def test_integer_given_as_a_value_in_a_webhook_is_exact(world: World, sent: float, given: int) -> None:
    suspension = (await ask(world, call_with(WHOLE))).json()
    await give(world, suspension, action="value", value=sent)
    assert f'"args":{{"account":{given}}}' in await describe(world, suspension, WebhookEvent.ITEM_DECIDED)
    assert await redeem(world, suspension) == f'{{"account": {given}}}'


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("pay", {"action": "value", "value": TYPED}),
        ("log_in", {"action": "approve", "args": {"login": "ann", "account": TYPED}}),
    ],
)
async def test_password_given_in_a_webhook_is_masked_everywhere(world: World, tool: str, given: dict[str, Any]) -> None:
    suspension = (await ask(world, call_with(SECRET, tool, login="ann"))).json()
    shown = [(await give(world, suspension, **given)).text]
    assert json.loads(await redeem(world, suspension)) == {"account": TYPED, "login": "ann"}
    shown += [await describe(world, suspension, WebhookEvent.ITEM_DECIDED), *await read_views(world, suspension)]
    assert [text for text in shown if TYPED in text] == []
    assert MASK in shown[-1]
    assert MASK in shown[1]
