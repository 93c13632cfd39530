"""From an item's page reviewers claim it and ask its requester."""

import re

from sayso.core.records.decisions import Actor, ActorKind
from service.core.settings import Settings
from tests.builders import approve, make_pending
from tests.service.edge.web.sites import visit


async def test_reviewer_claims_releases_and_asks(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring)
        place = f"/items/{record.id}/i1"
        assert "I handle this" in await anna.read(place)
        await anna.send(f"{place}/claim")
        page = await anna.read(place)
        assert "anna handles this until" in page
        assert "I handle this" not in page
        await anna.send(f"{place}/release")
        assert "I handle this" in await anna.read(place)
        for _ in range(2):
            await anna.send(place, part="ask", text="Which <b>order</b>?")
        page = await anna.read(place)
        assert "Which &lt;b&gt;order&lt;/b&gt;?" in page
        assert "demo has not answered yet." in page
        (inquiry,) = (await anna.wiring.desk.suspensions.read(record.id)).record.items[0].inquiries
        demo = Actor(id="demo", kind=ActorKind.AGENT)
        await anna.wiring.desk.answer_inquiry(record.id, "i1", inquiry.id, "A-4711", demo)
        page = await anna.read(place)
        assert "A-4711" in page
        assert "demo answered about" in page


async def test_question_without_text_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring)
        page = await anna.send(f"/items/{record.id}/i1", status=422, part="ask", text=" ")
        assert re.search('id="ask-problem".*1 to 2000 characters', page)


async def test_question_to_a_closed_item_is_shown_again(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await approve(anna.wiring, await make_pending(anna.wiring))
        page = await anna.send(f"/items/{record.id}/i1", status=409, part="ask", text="Which <b>order</b>?")
        assert "Your input was not used" in page
        assert "Which &lt;b&gt;order&lt;/b&gt;?</p>" in page
