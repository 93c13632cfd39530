"""The API shows who was notified of an item, and no address."""

from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.terms import RuleTerms
from sayso.wire.models import read_view
from sayso.wire.suspensions import SuspensionView
from service.core.wiring import Wiring
from tests.builders import ask, make_pending
from tests.service.worlds import World

SENT_AT_MS = 1_700_000_000_000


async def make_notified(wiring: Wiring) -> str:
    """Return a suspension whose card reached anna."""
    record = await make_pending(wiring, ask(terms=RuleTerms(channels=("ops",), reviewers=("anna",))))
    sent = CardDelivery(
        channel="ops",
        person="anna",
        state=DeliveryState.SENT,
        sent_at_ms=SENT_AT_MS,
        references={"+49 170 555": "message-4711"},
    )
    await wiring.desk.record_deliveries(record.id, [DeliveryReport("i1", sent.key, (sent,))])
    return record.id


async def test_item_shows_deliveries_without_addresses(world: World) -> None:
    suspension_id = await make_notified(world.wiring)
    async with world.client("demo") as client:
        response = await client.get(f"/api/v1/suspensions/{suspension_id}")
    (delivery,) = response.json()["items"][0]["deliveries"]
    assert delivery == {
        "channel": "ops",
        "person": "anna",
        "state": "sent",
        "step": 0,
        "outcome": False,
        "reason": None,
        "next_try_at": None,
        "sent_at": "2023-11-14T22:13:20.000Z",
        "seen_at": None,
    }
    assert "+49" not in response.text
    assert "message-4711" not in response.text
    (read,) = read_view(SuspensionView, response.content).items[0].deliveries
    assert read.sent_at is not None
    assert read.sent_at.timestamp() * 1000 == SENT_AT_MS
