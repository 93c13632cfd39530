"""Long texts in any script are shown whole, on the item's page and in the inbox."""

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import place_of
from tests.service.features.whatif.test_drafts import ask_for


@pytest.mark.parametrize(
    "text",
    ["\u05d01" * 60_000, "\u05d0\u0661-" * 40_000, "a\u05d0" * 40_000],
    ids=["Hebrew letters and digits", "with dashes", "two scripts"],
)
async def test_item_page_shows_a_word_of_120_000_signs(settings: Settings, text: str) -> None:
    async with visit(settings) as anna:
        record = await ask_for(anna.wiring, "note", text=text)
        page = await anna.read(place_of(record))
        assert page.count("\u05d0") >= text.count("\u05d0")
        assert record.id in await anna.read("/")
