"""The item's page shows what Sayso computed from the call, apart from the agent's own words."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.stories import place_of
from tests.service.edge.web.test_freezes import make_admin
from tests.service.features.whatif.test_drafts import DRAFT, ask_for

RULES = """version: 1
default: allow
lists: {bad: {file: bad.txt}}
rules:
  - id: commands
    tool: run
    when: >-
      shell(args.command).writes_files.size() < 9 && shell(args.command).programs.exists(one, one in lists.bad)
      && shell(args.command).pipes > 0
    action: request_approval
  - {id: listed, tool: {in: bad}, action: deny}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with rules that read a command and a list."""
    found = settings_for(clean_store_url, tmp_path, RULES)
    (tmp_path / "bad.txt").write_text("rm\n<b>\n")
    return found


async def test_item_page_shows_what_was_computed(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask_for(anna.wiring, "run", command="ls > '<b>' | rm x")
        page = await anna.read(place_of(record))
    why = page[page.index('id="why"') :].partition("</details>")[0]
    assert "What Sayso computed from the call" in why
    for words in ("shell(args.command).programs<", "shell(args.command).pipes<", "shell(args.command).writes_files<"):
        assert words in why, words
    assert "&lt;b&gt;" in why
    assert "<b>" not in page


async def test_item_page_says_nothing_of_rules_that_computed_nothing(settings: Settings) -> None:
    settings.policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    async with visit(settings) as anna:
        record = await ask_for(anna.wiring, "run", command="rm x")
        assert "What Sayso computed" not in await anna.read(place_of(record))


async def test_draft_reads_the_lists_of_the_rules_in_force(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await ask_for(anna.wiring, "run", command="ls | rm x")
        page = await anna.send(DRAFT, 200, text=RULES.replace("request_approval", "deny"))
        assert "asked → denied" in page
        page = await anna.send(DRAFT, 200, text=RULES.replace("bad.txt", "other.txt"))
        assert "the file &#39;other.txt&#39; is not here" in page
