"""A call tried on the rules in force."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sayso.core.canonical_json import JsonObject
from service.core.settings import Settings
from service.features.whatif.trial_pages import sketch_args
from tests.browser import PHONE
from tests.builders import register_agent
from tests.service.edge.web.sites import CSRF, Site, settings_for, visit
from tests.service.edge.web.stories import REFUND, asked, make_ask
from tests.service.edge.web.test_gallery import check_page
from tests.service.features.rulebook.test_rules import RULES
from tests.service.worlds import read_store

TRY = "/rules/-/try"
CASES = """\
  - id: prod
    priority: 300
    when: has(context.env) && context.env == "prod"
    action: deny
  - {id: late, tool: wait, when: step > 3, action: deny}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with rules of every kind."""
    return settings_for(clean_store_url, tmp_path, RULES + CASES)


async def test_trial_names_the_deciding_rule_and_why_not_the_others(settings: Settings) -> None:
    async with visit(settings) as anna:
        before = await read_store(settings.store_url)
        page = await anna.send(TRY, 200, tool="refund_payment", agent="", args='{"amount": 250}')
        for words in (
            '<a href="/rules/refunds-over-100">refunds-over-100</a> decides',
            "It would wait 2 h for anna or ben; then it is denied.",
            "Here amount is 250.",
            "4 other rules",
            "It is for sync.",
        ):
            assert words in page
        page = await anna.send(TRY, 200, tool="refund_payment", agent="", args='{"amount": 5}')
        assert "No rule matches" in page
        assert "Its condition is false. Here amount is 5." in page
        page = await anna.send(TRY, 200, tool="refund_payment", agent="", args="")
        assert "A reviewer decides" in page
        assert "Cannot be evaluated" in page
        page = await anna.send(TRY, 200, tool="wait", agent="", args="{}", step="4")
        assert "late</a> decides" in page
        after = await read_store(settings.store_url)
        assert {key for key in after if before.get(key) != after[key]} <= {key for key in after if b":rules" in key}


async def test_trial_of_a_past_item_has_its_facts_and_masks_secrets(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"secrets": ["amount"]}))
        item = f"{record.id}/i1"
        page = await anna.read(f"{TRY}?item={item}")
        assert "[secret]" in page
        assert "refund_payment" in page
        args = json.dumps({**record.items[0].tool.args, "amount": "[secret]"})
        page = await anna.send(TRY, 200, tool="refund_payment", agent="support", item=item, args=args)
        assert "refunds-over-100</a> decides" in page, "judged by the stored amount"
        assert "Here amount is &#34;[secret]&#34;." in page
        assert not re.search(r"\b250\b", page.partition('<h2 id="call-h">')[0])
        page = await anna.send(TRY, 200, tool="refund_payment", agent="support", item=item, args='{"amount": 3}')
        assert "Its condition is false. Here amount is &#34;[secret]&#34;." in page
        await anna.read(f"{TRY}?item=sus_none/i1", 404)


async def test_trial_fills_in_the_schema_and_the_context_of_an_agent(settings: Settings) -> None:
    async with visit(settings) as anna:
        await register_agent(anna.wiring, context={"env": "prod"})
        page = await anna.read(f"{TRY}?tool=refund&agent=demo")
        assert "&#34;amount&#34;: 0" in page
        page = await anna.send(TRY, 200, tool="refund", agent="demo", fill="schema", args="")
        assert "&#34;amount&#34;: 0" in page
        page = await anna.send(TRY, 200, tool="refund", agent="demo", args="{}")
        assert "prod</a> decides" in page
        page = await anna.send(TRY, 200, tool="refund", agent="", args="{}")
        assert "No rule matches" in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tool": ""}, "Enter the name of a tool."),
        ({"args": "{"}, "The text of the arguments is not JSON"),
        ({"args": "[1]"}, "The arguments are no JSON object."),
        ({"step": "two"}, "Enter the step as a number from 1."),
    ],
)
async def test_trial_explains_a_faulty_form(settings: Settings, fields: dict[str, str], words: str) -> None:
    async with visit(settings) as anna:
        given = {"tool": "<b>", "agent": "", "args": "{}", **fields}
        page = await anna.client.post(TRY, data={"csrf": CSRF, **given}, headers={"Sec-Fetch-Site": "same-origin"})
        assert page.status_code in (400, 422)
        assert words in page.text
        assert "<b>" not in page.text


def test_sketch_args_uses_defaults_choices_and_blanks() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"enum": [2, 3]},
            "c": {"type": "object", "properties": {"d": {"type": "boolean"}}},
            "e": {"type": "array"},
            "f": {"const": 7},
            "g": True,
            "h": {"examples": ["p"]},
        },
    }
    assert sketch_args(schema) == {"a": "x", "b": 2, "c": {"d": False}, "e": [], "f": 7, "g": None, "h": "p"}
    assert sketch_args({}) == {}
    assert sketch_args(REFUND.parameters)["currency"] == "CHF"


def test_trial_works_on_a_phone_without_scripts(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(f"/rules/-/try?item={record.id}/i1", viewport=PHONE, java_script_enabled=False)
    page.get_by_role("button", name="Try the call").click()
    expect(page.get_by_role("heading", name="refunds-over-100 decides")).to_be_visible()
    page = open_as("/rules/-/try", name="carla", viewport=PHONE)
    page.get_by_label("Tool").fill("legacy")
    page.get_by_role("button", name="Try the call").click()
    expect(page.get_by_role("heading", name="No rule matches")).to_be_visible()
    page.get_by_text("other rules").click()
    check_page(page, "trial")
