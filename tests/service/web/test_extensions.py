"""From the pages, reviewers give each other more time, and have a run that was given up tried again."""

from sayso.requests import ItemKind
from sayso.terms import RuleTerms
from service.settings import Settings
from tests.builders import approve, ask, give_up, make_pending
from tests.service.web.sites import visit


async def test_a_reviewer_gives_more_time_where_the_terms_allow_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        fixed = await make_pending(anna.wiring)
        assert "More time" not in await anna.read(f"/items/{fixed.id}/i1")
        record = await make_pending(anna.wiring, ask(terms=RuleTerms(timeout_s=300, extend_by_s=1800)))
        limit = record.items[0].terms.extend_until_ms
        page = await anna.read(f"/items/{record.id}/i1")
        assert "More time" in page
        assert f'value="{limit}"' in page
        await anna.send(f"/items/{record.id}/i1/extend", until=str(limit))
        page = await anna.read(f"/items/{record.id}/i1")
        assert "anna gave more time" in page
        assert "Give more time" not in page, "there is no more to give"
        await anna.send(f"/items/{record.id}/i1/extend", status=422, until=str(limit + 1))
        await anna.send(f"/items/{record.id}/i1/extend", status=422, until="tomorrow")


async def test_a_run_that_was_given_up_is_tried_again_with_one_press(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await give_up(anna.wiring, await approve(anna.wiring, await make_pending(anna.wiring)))
        for place in (f"/items/{record.id}/i1", f"/runs/{record.run.id}"):
            assert "Try again" in await anna.read(place)
        await anna.send(f"/runs/{record.run.id}/revive")
        page = await anna.read(f"/runs/{record.run.id}")
        assert "anna had the run taken up once more" in page
        assert "Try again" not in page
        await anna.send(f"/runs/{record.run.id}/revive", status=409)


async def test_the_receipt_shows_each_stage(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await approve(anna.wiring, await make_pending(anna.wiring))
        page = await anna.read(f"/items/{record.id}/i1")
        assert "Put before the workers" in page
        assert record.items[0].kind is ItemKind.APPROVAL
