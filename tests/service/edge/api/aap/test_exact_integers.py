"""Integers of any size pass the Agent Approval Protocol exactly: to the item, its card and back."""

import json

import pytest

from service.channels.cards import build_card
from tests.builders import approve
from tests.service.channels.given import BEYOND
from tests.service.edge.api.aap.clients import InstanceClient, find
from tests.service.worlds import World


@pytest.mark.parametrize("order", BEYOND)
async def test_integer_of_a_request_stays_exact(world: World, bot: InstanceClient, order: int) -> None:
    request_id = await bot.waiting(args={"order": order})
    record = await find(world.wiring, request_id)
    (item,) = record.items
    assert item.tool.args == {"order": order}
    assert str(order) in build_card(record, item, None, "https://sayso.example").args_text
    await approve(world.wiring, record)
    consumed = await bot.consume(request_id)
    assert consumed.status_code == 200, consumed.text
    shown = await bot.client.get(f"/requests/{request_id}")
    assert f'"arguments":{{"order": {order}}}' in shown.text or f'"arguments":{{"order":{order}}}' in shown.text
    for answer in (consumed, shown):
        assert json.loads(answer.text).get("arguments", {"order": order}) == {"order": order}
