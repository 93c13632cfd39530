"""The item's page shows the word of an assessor apart from what Sayso computed, as text."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.stories import place_of
from tests.service.features.whatif.test_drafts import ask_for

RULES = """version: 1
default: deny
rules:
  - {id: pay, tool: pay, action: allow, assess: {by: fraud, high: {}}}
  - {id: send, tool: send, action: allow, assess: {by: nobody, high: {}}}
"""


def rate(call: dict[str, object]) -> dict[str, object]:
    return {"score": 0.9, "reason": f"<b>new</b>\u202e account of {call['agent']}"}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with a rule and its assessor."""
    assessors = tmp_path / "assessors.yaml"
    assessors.write_text(f"assessors: {{fraud: {{function: '{__name__}:rate', timeout_s: 10}}}}")
    return settings_for(clean_store_url, tmp_path, RULES, assessors=str(assessors))


async def test_item_page_shows_what_the_assessor_said(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read(place_of(await ask_for(anna.wiring, "pay", amount=5)))
        assert "What the assessor fraud said" in page
        assert "score 0.9 of 1" in page
        assert "&lt;b&gt;new&lt;/b&gt;" in page
        assert "\u202e" not in page


async def test_item_page_says_that_there_is_no_usable_answer(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read(place_of(await ask_for(anna.wiring, "send", amount=5)))
        assert "No usable answer, so the call counts as high" in page
