"""Comments on the item's page, in the timeline and on the run's page."""

import re
from collections.abc import Callable
from functools import partial

from playwright.sync_api import Page, expect

from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.discussions.discussing import add_comment
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import asked, decide, finish, place_of


async def test_comment_is_shown_on_item_and_run(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        place = place_of(record)
        assert "The agent and the requester do not see it." in await anna.read(place)
        for _ in range(2):
            text = "Is <b>order</b> A-1932 real?\r\nI doubt it."
            sent = await anna.send(place, part="comments", nonce="n1", text=text)
            assert sent == f"{place}#comments"
        page = await anna.read(place)
        assert page.count("Is &lt;b&gt;order&lt;/b&gt; A-1932 real?") == 3  # the list, its folded line and the timeline
        assert "anna commented on refund_payment" in page
        await finish(anna.wiring, await decide(anna.wiring, record, "approve"))
        await anna.send(place, part="comments", nonce="n2", text="Audited")
        page = await anna.read(f"/runs/{record.run.id}")
        assert page.index("anna commented on refund_payment") < page.index("ben approved refund_payment")
        assert page.rindex("Audited") > page.index("The run completed")


async def test_comment_without_text_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        for typed in ("  ", "x" * 2001):
            page = await anna.send(place_of(record), 422, part="comments", nonce="n", text=typed)
            assert re.search('id="comments-problem".*1 to 2000 characters', page)
            assert f"{typed}</textarea>" in page


def test_comment_of_another_reviewer_appears_while_one_types(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    page.keyboard.press("m")
    expect(page.locator("#comment")).to_be_focused()
    page.keyboard.type("I am typi")
    site.act(partial(_comment, suspension_id=record.id))
    expect(page.locator(".comments")).to_contain_text("The customer called.")
    page.keyboard.type("ng")
    expect(page.locator("#comment")).to_have_value("I am typing")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".comments li")).to_have_count(2)


async def _comment(wiring: Wiring, suspension_id: str) -> None:
    await add_comment(wiring, suspension_id, "i1", "The customer called.", "ben", None)
