"""An item in stages on its page: who decides now, what the next stage sees, and who decided when all have."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from service.core.settings import Settings
from tests.browser import PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, make_ask, place_of

STAGES = {"stages": [{"reviewers": ["anna"]}, {"reviewers": ["ben"]}]}


@pytest.mark.browser
def test_stages_follow_each_other_on_the_page(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms=STAGES)))
    anna = open_as(place_of(record), viewport=PHONE)
    stages = anna.get_by_label("Stages")
    expect(stages.get_by_role("listitem")).to_have_text(["anna now", "ben next"])
    ben = open_as(place_of(record), name="ben")
    expect(ben.get_by_text("Only anna can decide this.").first).to_be_visible()
    expect(anna.get_by_text("Your approval sends nothing yet: ben must approve next.").first).to_be_visible()
    read_to_the_end(anna)
    anna.get_by_role("button", name="Approve EUR 250.00").click()
    expect(anna.get_by_text("You approved an earlier stage, so others must approve this one.").first).to_be_visible()
    ben.reload()
    expect(ben.get_by_label("Stages").get_by_role("listitem")).to_have_text(["anna done · anna", "ben now"])
    read_to_the_end(ben)
    ben.get_by_role("button", name="Approve EUR 250.00").click()
    expect(ben.get_by_role("heading", name="ben approved this")).to_be_visible()
    expect(ben.get_by_label("Stages").get_by_role("listitem")).to_have_text(["anna done · anna", "ben done · ben"])


async def test_next_stage_sees_what_the_earlier_one_changed(settings: Settings) -> None:
    async with visit(settings, "ben") as ben:
        record = await asked(ben.wiring, make_ask(terms=STAGES))
        edited = {**REFUND_ARGS, "amount": 120}
        await decide(ben.wiring, record, "approve", "anna", args=edited)
        page = await ben.read(place_of(record))
        panel = page.split("Changed in an earlier stage")[1].split("</aside>")[0]
        assert "250" in panel.split("<ins>")[0]
        assert "120" in panel.split("<ins>")[1]
        assert "with edited arguments in stage 1" in page
