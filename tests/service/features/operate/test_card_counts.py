"""The diagnostics count the deliveries of each channel."""

from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.terms import RuleTerms
from service.core.wiring import Wiring
from service.features.operate.cards import SLOW_MS, CardCounts, count_cards
from service.features.operate.diagnostics import diagnose
from tests.builders import approve, ask, make_pending

TERMS = RuleTerms(channels=("ops",), reviewers=("anna", "ben", "cleo"))


async def report(wiring: Wiring, suspension_id: str, person: str, state: DeliveryState, reason: str = "") -> None:
    one = CardDelivery(channel="ops", person=person, state=state, reason=reason or None)
    await wiring.desk.record_deliveries(suspension_id, [DeliveryReport("i1", one.key, (one,))])


async def test_count_cards_of_open_items(wiring: Wiring) -> None:
    record = await make_pending(wiring, ask(terms=TERMS))
    closed = await make_pending(wiring, ask(terms=TERMS))
    await make_pending(wiring)
    await approve(wiring, closed)
    await report(wiring, record.id, "anna", DeliveryState.SENT)
    await report(wiring, record.id, "ben", DeliveryState.FAILED, "HTTP 503")
    found = await count_cards(wiring)
    assert found == {"ops": CardCounts(1, 1, 1, record.created_at_ms, "HTTP 503")}
    sentence = "1 queued, 1 sent, 1 failed; the oldest is queued for 1 min. The last failure: HTTP 503"
    assert found["ops"].describe(record.created_at_ms + 60_000) == sentence
    assert found["ops"].is_slow(record.created_at_ms + SLOW_MS + 1)
    assert not found["ops"].is_slow(record.created_at_ms + SLOW_MS)


async def test_card_that_is_held_is_not_slow(wiring: Wiring) -> None:
    record = await make_pending(wiring, ask(terms=TERMS.model_copy(update={"reviewers": ("anna",)})))
    until_ms = record.created_at_ms + 10 * SLOW_MS
    held = CardDelivery(channel="ops", person="anna", next_try_at_ms=until_ms)
    await wiring.desk.record_deliveries(record.id, [DeliveryReport("i1", held.key, (held,))])
    counts = (await count_cards(wiring))["ops"]
    assert counts.describe(until_ms - 1) == "1 queued, 0 sent, 0 failed."
    assert (counts.is_slow(until_ms), counts.is_slow(until_ms + SLOW_MS + 1)) == (False, True)


async def test_diagnose_channels_that_fail_or_are_not_configured(wiring: Wiring) -> None:
    record = await make_pending(wiring, ask(terms=TERMS))

    async def find(**channels: str) -> list[tuple[bool, str]]:
        found = [one async for one in diagnose(wiring, channels) if one.part == "channels"]
        return [(one.ok, one.message.split(";")[0]) for one in found][:-1]

    assert await find(ops="slack", push="push") == [
        (True, "ops (slack): 3 queued, 0 sent, 0 failed"),
        (True, "push (push): 0 queued, 0 sent, 0 failed."),
    ]
    assert await find() == [(False, "ops (not configured): 3 queued, 0 sent, 0 failed")]
    await report(wiring, record.id, "anna", DeliveryState.FAILED, "no address")
    assert await find(ops="slack") == [(False, "ops (slack): 2 queued, 0 sent, 1 failed")]
