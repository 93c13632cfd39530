"""What is frozen is shown on every page; an admin freezes and unfreezes it on one."""

import re
from typing import Any

from sayso.core.records.freezes import ClockReading
from sayso.core.records.suspensions import SuspensionRecord
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import person
from tests.service.edge.web.sites import Visit, visit
from tests.service.edge.web.stories import asked, decide, make_ask, place_of
from tests.waits import until


async def make_admin(site: Visit) -> None:
    """Give the visitor the role for it."""
    people = site.wiring.reviewers._people
    anna = await people.find_reviewer("anna")
    assert anna is not None
    await people.save_reviewer(anna.model_copy(update={"roles": ("reviewer", "admin")}))


async def test_admin_freezes_and_unfreezes(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "Nothing is frozen." in await anna.read("/operate")
        await asked(anna.wiring)
        form: dict[str, Any] = {"scope": "tool:refund_payment", "reason": "Wrong <amounts>"}
        page = await anna.send("/operate", 200, **form)
        for words in (
            "Freeze the tool refund_payment?",
            "It stops 1 waiting and 0 about to start.",
            "Wrong &lt;amounts&gt;",
        ):
            assert words in page, words
        assert "Nothing is frozen." in await anna.read("/operate")
        await anna.send("/operate", confirm=form["scope"], **form)
        for place in ("/me", "/runs", "/history", "/operate"):
            assert "the tool refund_payment" in await anna.read(place)
        page = await anna.read("/operate")
        assert "Wrong &lt;amounts&gt;" in page
        (freeze_id,) = re.findall(r'action="/operate/(frz_\w+)/unfreeze"', page)
        await anna.send(f"/operate/{freeze_id}/unfreeze")
        page = await anna.read("/operate")
        assert "Nothing is frozen." in page
        assert "unfrozen by anna" in page


async def test_reviewer_sees_freezes_without_forms(settings: Settings) -> None:
    async with visit(settings) as anna:
        freeze = await anna.wiring.freezes.freeze("all", "Stop", person("root"))
        page = await anna.read("/operate")
        assert "everything" in page
        assert '<form method="post" action="/operate' not in page
        await anna.send(f"/operate/{freeze.id}/unfreeze", status=403)
        assert "admin" in await anna.send("/operate", status=403, kind="all")
        assert await anna.wiring.freezes.in_force(fresh=True) == [freeze]


async def test_frozen_item_shows_its_held_deadline_and_can_be_decided(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.wiring.freezes.freeze("tool:refund_payment", "Stop", person("root"))
        record = await asked(anna.wiring, make_ask(terms={"timeout_s": 1}))
        await until(lambda: is_due(anna.wiring, record))
        for place in ("/", place_of(record)):
            page = await anna.read(place)
            assert "left, on hold" in page
            assert 'data-left="' not in page
        await anna.send(place_of(record), answer="approve", digest=record.items[0].digest)
        assert "anna approved this" in await anna.read(place_of(record))


async def is_due(wiring: Wiring, record: SuspensionRecord) -> bool:
    found = await wiring.desk.suspensions.read(record.id)
    return found.now_ms >= record.items[0].terms.deadline_at_ms


async def test_refused_freeze_keeps_the_input(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.send("/operate", status=422, reason="Look at this")
        assert "Choose what to freeze." in page
        assert "Look at this" in page
        assert "Enter the reason." in await anna.send("/operate", status=422, scope="all")
        await anna.send("/operate", status=422, scope="world", reason="Stop")
        page = await anna.send("/operate", status=422, kind="tool", named="refund_*", reason="Stop")
        assert "not a pattern" in page
        assert 'value="refund_*"' in page
        await anna.send("/operate", status=422, kind="tool", named="a\x01b", reason="Stop")
        await anna.send("/operate", status=422, kind="time", named="x", reason="Stop")


async def test_freeze_of_an_unknown_name_needs_a_tick(settings: Settings) -> None:
    """Freezing "payot" stopped nothing, and the page said that it did."""
    async with visit(settings) as anna:
        await make_admin(anna)
        await asked(anna.wiring)
        form: dict[str, Any] = {"kind": "tool", "named": "refund_paymnt", "reason": "Look at this"}
        for confirmed in (dict[str, Any](), {"confirm": "tool:refund_paymnt"}):
            page = await anna.send("/operate", status=422, **form, **confirmed)
            for words in ("was seen here", "Near it: refund_payment.", "Look at this", 'value="refund_paymnt"'):
                assert words in page, words
        assert await anna.wiring.freezes.in_force(fresh=True) == []
        page = await anna.send("/operate", 200, **form, unseen="yes")
        assert "It stops nothing at the moment." in page
        await anna.send("/operate", **form, unseen="yes", confirm="tool:refund_paymnt")
        assert [one.scope for one in await anna.wiring.freezes.in_force(fresh=True)] == ["tool:refund_paymnt"]


async def test_choices_of_a_freeze_have_their_counts(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await asked(anna.wiring, make_ask(), make_ask(index=1))
        await decide(anna.wiring, await asked(anna.wiring), "approve")
        page = await anna.read("/operate")
        for words in ("refund_payment · 2 waiting", "support · 2 waiting", "Everything · 2 waiting"):
            assert words in page, words
        page = await anna.send("/operate", 200, scope="agent:support", reason="It loops")
        assert "It stops 2 waiting and 1 about to start." in page


async def test_freezes_path_leads_to_the_operate_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        answer = await anna.client.get("/freezes")
        assert (answer.status_code, answer.headers["location"]) == (308, "/operate")


async def test_clock_in_doubt_is_shown_until_an_admin_resolves_it(
    settings: Settings,
) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        freezes = anna.wiring.freezes
        for said in ("pass", "move"):
            now_ms = await anna.wiring.schedule.now_ms()
            freeze = await freezes.doubt_time(now_ms - 3_600_000, now_ms)
            for place in ("/me", "/runs", "/history", "/operate"):
                page = await anna.read(place)
                assert "Clock in doubt:" in page
                assert "clock jumped from" in page
                assert "<strong>Frozen:</strong>" not in page
            assert "Let them pass" in await anna.read("/operate")
            await anna.send(f"/operate/{freeze.id}/unfreeze", deadlines=said)
            assert "Clock in doubt:" not in await anna.read("/me")
            (unfrozen,) = [one for one in await freezes.known(fresh=True) if one.id == freeze.id]
            assert (unfrozen.unfrozen_by, unfrozen.deadlines) == ("anna", said)


async def test_reviewer_cannot_resolve_a_clock_in_doubt(settings: Settings) -> None:
    async with visit(settings) as anna:
        now_ms = await anna.wiring.schedule.now_ms()
        freeze = await anna.wiring.freezes.doubt_time(now_ms - 3_600_000, now_ms)
        assert "Let them pass" not in await anna.read("/operate")
        await anna.send(f"/operate/{freeze.id}/unfreeze", status=403, deadlines="pass")
        assert await anna.wiring.freezes.in_force(fresh=True) == [freeze]


async def test_decision_with_the_clock_in_doubt_keeps_the_input(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        ahead_ms = record.items[0].terms.deadline_at_ms + 1
        freezes = anna.wiring.freezes
        await freezes.doubt_time(record.created_at_ms, ahead_ms)
        beat = ClockReading(at_ms=ahead_ms, uptime_ms=0, boot="one", wall_ms=ahead_ms)
        await freezes._store.save_reading(beat, ahead_ms)
        await freezes.known(fresh=True)
        fields = {"digest": record.items[0].digest, "answer": "deny", "message": "Never delivered"}
        page = await anna.send(f"/items/{record.id}/i1", status=409, **fields)
        assert "The clock is in doubt" in page
        assert "Never delivered" in page


async def test_refresh_after_an_event_shows_the_freeze_of_another_process(settings: Settings) -> None:
    async with visit(settings) as anna, assemble(settings) as other:
        place = place_of(await asked(anna.wiring))
        assert "on hold" not in await anna.read(place)  # its process knows now that nothing is frozen
        await other.freezes.freeze("agent:support", "Wrong", person("root"))
        refreshed = await anna.client.get(place, headers={"X-Sayso-Live": "1"})
        assert "left, on hold" in refreshed.text
