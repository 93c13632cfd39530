"""A preview on the page, the card and over the API: escaped, masked, compared, and never a reason to run a call."""

from typing import Any

import pytest

from sayso.core.records.items import ItemDraft
from sayso.core.records.previews import Preview
from service.channels.cards import build_card
from service.core.settings import Settings
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import REFUND, REFUND_ARGS, asked, make_ask, place_of
from tests.service.worlds import World

EDIT = {**REFUND_ARGS, "amount": 120.0}
HOSTILE = 'wipes <script>alert(1)</script> "orders"\u202e\n' + "line\n" * 40
PATCH = "--- a/limits\n+++ b/limits\n@@ -1,2 +1,2 @@\n keep\n-limit 100\n+limit 9000\n"
MAIL = {"to": ["ann@example.com"], "subject": "Your refund", "body": "We sent 250 EUR."}


def draft(*previews: Preview, **fields: Any) -> ItemDraft:
    asked_about = make_ask(**fields)
    tool = asked_about.tool.model_copy(update={"previews": True})
    return asked_about.model_copy(update={"tool": tool, "previews": previews})


def shown(content: Any, digest: str = "a", **fields: Any) -> Preview:
    return Preview(content=content, digest=digest * 64, at_ms=1, **fields)


@pytest.mark.parametrize("content", [HOSTILE, PATCH, [{"order": "<b>A</b>", "rows": 3}], MAIL, [], {}])
async def test_preview_of_each_kind_is_escaped(settings: Settings, content: Any) -> None:
    async with visit(settings) as reader:
        record = await asked(reader.wiring, draft(shown(content, cut=5000)))
        page = await reader.read(place_of(record))
    assert "<script>alert" not in page
    assert "<b>A</b>" not in page
    assert ("Nothing." in page) is (content in ([], {}))
    assert "5000" in page


async def test_changed_preview_is_compared_with_the_approved_one(settings: Settings) -> None:
    async with visit(settings) as reader:
        record = await asked(reader.wiring, draft(shown("deletes 4000 rows", before="deletes 3 rows")))
        page = await reader.read(place_of(record))
    assert "This has changed since it was approved:" in page
    changed = page.partition("This has changed since it was approved:")[2]
    assert 0 < changed.index("deletes 3 rows") < changed.index("deletes 4000 rows")


async def test_failed_preview_gives_its_reason_and_blocks_nothing(settings: Settings) -> None:
    async with visit(settings) as reader:
        record = await asked(reader.wiring, draft(shown(None, error="LookupError: <b>no table</b>")))
        page = await reader.read(place_of(record))
        assert "No preview: LookupError: &lt;b&gt;no table&lt;/b&gt;" in page
        assert ">Approve" in page


async def test_secrets_are_masked_in_previews(settings: Settings) -> None:
    properties: Any = {**REFUND.properties, "note": {"type": "string", "writeOnly": True}}
    secret = {**REFUND.parameters, "properties": properties}
    definition = REFUND.model_copy(update={"parameters": secret})
    async with visit(settings) as reader:
        await reader.wiring.runs.save_definitions([definition])
        args: Any = {**REFUND_ARGS, "note": "hunter22 secret"}
        made = draft(
            shown("mails hunter22 secret to Ann", before=["hunter22 secret"]), definition=definition, args=args
        )
        record = await asked(reader.wiring, made)
        page = await reader.read(place_of(record))
    assert "hunter22" not in page
    assert "to Ann" in page


async def test_previews_over_the_api(world: World) -> None:
    record = await asked(world.wiring, draft(shown([{"rows": 3}], cut=7)))
    place = f"/api/v1/suspensions/{record.id}"
    async with world.client("anna") as client:
        (item,) = (await client.get(place)).json()["items"]
        assert [(made["content"], made["cut"], made["error"], made["args"]) for made in item["previews"]] == [
            ([{"rows": 3}], 7, None, None)
        ]
        answer = await client.post(f"{place}/items/i1/preview", json={"args": EDIT})
        assert answer.status_code == 200, answer.text
        asked_for = answer.json()["items"][0]["preview_request"]
        assert (asked_for["by"]["id"], asked_for["args"]["amount"]) == ("anna", 120)
        plain = await asked(world.wiring, make_ask())
        refused = await client.post(f"/api/v1/suspensions/{plain.id}/items/i1/preview", json={})
        assert (refused.status_code, "No worker can preview" in refused.text) == (409, True)


async def test_cards_lead_to_the_page_of_an_item_with_a_preview(world: World) -> None:
    record = await asked(world.wiring, draft(shown("x" * 900)))
    card = build_card(record, record.items[0], REFUND, "https://desk.example")
    (line,) = [fact.text for fact in card.facts if fact.label == "What it would do"]
    assert line.startswith("x" * 290)
    assert line.endswith("(in full on the item's page, where it is approved)")
    assert card.answers == ("deny",)
