"""From the pages, reviewers give each other more time, and have a run that was given up tried again."""

from sayso.core.records.items import ItemKind
from sayso.core.records.terms import RuleTerms
from service.core.settings import Settings
from tests.builders import approve, ask, give_up, make_pending, person
from tests.service.edge.web.sites import visit


async def test_extend_where_the_terms_allow_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        fixed = await make_pending(anna.wiring)
        assert "Extend the deadline" not in await anna.read(f"/items/{fixed.id}/i1")
        record = await make_pending(anna.wiring, ask(terms=RuleTerms(timeout_s=300, extend_by_s=1800)))
        limit = record.items[0].terms.extend_until_ms
        page = await anna.read(f"/items/{record.id}/i1")
        assert "Extend the deadline" in page
        assert f'value="{limit}"' in page
        for until, advice in (("tomorrow", "Choose one of the new deadlines"), (str(limit + 1), "Choose again")):
            assert advice in await anna.send(f"/items/{record.id}/i1", 422, until=until)
        await anna.send(f"/items/{record.id}/i1", until=str(limit))
        page = await anna.read(f"/items/{record.id}/i1")
        assert "anna extended the deadline" in page
        assert "Extend the deadline" not in page, "there is no more to give"
        await anna.send(f"/items/{record.id}/i1", status=422, until=str(limit + 1))
        await anna.send(f"/items/{record.id}/i1", status=422, until="tomorrow")


async def test_failed_run_is_retried(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await give_up(anna.wiring, await approve(anna.wiring, await make_pending(anna.wiring)))
        for place in (f"/items/{record.id}/i1", f"/runs/{record.run.id}"):
            assert "Try again" in await anna.read(place)
        await anna.send(f"/runs/{record.run.id}")
        page = await anna.read(f"/runs/{record.run.id}")
        assert "anna retried the run" in page
        assert "Try again" not in page
        page = await anna.send(f"/runs/{record.run.id}", status=409)
        assert "Only a failed run can be retried. This run is suspended." in page
        assert "Requests</h2>" in page


async def test_extend_after_the_end_shows_the_outcome(settings: Settings) -> None:
    terms = RuleTerms(timeout_s=300, extend_by_s=1800)
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring, ask(terms=terms))
        until = record.items[0].terms.extend_until_ms
        cancelled = await make_pending(anna.wiring, ask(terms=terms))
        await anna.wiring.desk.cancel(cancelled.run.id, person("ben"))
        page = await anna.send(f"/items/{cancelled.id}/i1", status=409, until=str(until + 60_000))
        assert "This can no longer be decided</h2><p>The run was cancelled. Nothing was changed." in page
        await approve(anna.wiring, record, "ben")
        page = await anna.send(f"/items/{record.id}/i1", status=409, until=str(until), answer="deny", message="Too old")
        for words in ("Already decided", "ben approved this. Nothing was changed.", "was not used", "Too old"):
            assert words in page, words
        late = await make_pending(anna.wiring, ask(terms=terms), late_ms=400_000)
        page = await anna.send(f"/items/{late.id}/i1", 409, until=str(late.items[0].terms.extend_until_ms))
        assert "<h2>The deadline has passed</h2><p>" in page


async def test_extend_keeps_the_unfinished_decision(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring, ask(terms=RuleTerms(timeout_s=300, extend_by_s=18_000)))
        place, at_ms = f"/items/{record.id}/i1", record.items[0].terms.deadline_at_ms
        assert "15 min, until" in await anna.read(place)
        first, second = str(at_ms + 900_000), str(at_ms + 1_800_000)
        page = await anna.send(place, status=200, until=first, answer="deny", message="Half a reas")
        assert "Half a reas</textarea>" in page
        assert "anna extended the deadline" in page
        assert await anna.send(place, until=first, answer="deny", message="") == place, "a double tap is no mistake"
        await anna.send(place, until=second)
        page = await anna.send(place, status=422, until=first, answer="deny", message="Half a reason")
        for words in ("Not sent", "it has moved since", "Half a reason</textarea>"):
            assert words in page, words


async def test_receipt_shows_each_stage(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await approve(anna.wiring, await make_pending(anna.wiring))
        page = await anna.read(f"/items/{record.id}/i1")
        assert "Handed over" in page
        assert record.items[0].kind is ItemKind.APPROVAL
