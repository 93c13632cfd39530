"""Cards in Slack: complete or without Approve, literal, within the limits."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import Prompt
from sayso.core.text.invisible import UNCHECKED, write_signs
from sayso.core.text.summaries import list_values
from service.channels.base import CardAction
from service.channels.slack.card import DECIDES, render_card
from tests.fakes.slack_blocks import find_message_faults, list_buttons, read_screen
from tests.service.channels.conformance import ARGS, card_of, record_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def buttons_of(args: JsonObject, **fields: Any) -> list[str]:
    body = render_card(card_of(record_of(args, **fields))).body
    return [one["action_id"] for one in list_buttons(body["blocks"])]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=8))
def test_any_arguments_are_shown_whole_or_without_approve(args: dict[str, Any]) -> None:
    rendered = render_card(card_of(record_of(args)))
    assert find_message_faults(rendered.body) == []
    screen = read_screen(rendered.body["blocks"]).replace("\n", "")
    if rendered.complete:
        for leaf in list_values(args):
            assert write_signs(leaf.text).replace("\n", "") in screen
            assert write_signs(leaf.path) in screen
    else:
        assert not rendered.actions & {CardAction.APPROVE, CardAction.EDIT, CardAction.VALUE}


@pytest.mark.parametrize(("length", "complete"), [(2_900, True), (2_993, True), (2_994, False), (10_000, False)])
def test_long_value_is_whole_up_to_the_limit_of_its_block(length: int, complete: bool) -> None:
    rendered = render_card(card_of(record_of({"body": "x" * length})))
    assert rendered.complete is complete
    assert (CardAction.APPROVE in rendered.actions) is complete
    assert ("Not all arguments fit here" in rendered.text) is not complete


@pytest.mark.parametrize(("count", "complete"), [(200, True), (900, False)])
def test_many_arguments_keep_the_limit_of_a_message(count: int, complete: bool) -> None:
    rendered = render_card(card_of(record_of({f"field_{n}": f"value {n}" for n in range(count)})))
    assert find_message_faults(rendered.body) == []
    assert rendered.complete is complete


def test_card_with_everything_at_its_longest_keeps_the_limits() -> None:
    prompt = Prompt(title="t" * 200, body="\U0001f600" * 10_000, reason="r" * 2000)
    card = card_of(record_of({"a": "\U0001f600" * 3_000}, prompt=prompt))
    crowded = replace(card, decisions=("d" * 2000,) * 40, closing="c" * 9_000, claims=card.claims * 9)
    assert find_message_faults(render_card(crowded).body) == []
    assert find_message_faults(render_card(replace(crowded, live=False)).body) == []


def test_markup_stays_literal() -> None:
    hostile = "<!channel> *b* <https://x|y> `c` :smile: &lt;"
    record = record_of({"a": hostile}, prompt=Prompt(title=hostile, body=hostile))
    rendered = render_card(card_of(record.model_copy(update={"run": record.run.model_copy(update={"title": hostile})})))
    assert "<" not in rendered.body["text"]
    assert "&lt;!channel&gt;" in rendered.body["text"]
    kinds = {part["type"] for part in _walk(rendered.body["blocks"])}
    assert not kinds & {"mrkdwn", "link", "user", "usergroup", "broadcast", "emoji"}
    assert read_screen(rendered.body["blocks"]).count(hostile) >= 3


def test_claims_stand_in_a_quotation_under_their_mark() -> None:
    record = record_of({"a": 1})
    record = record.model_copy(update={"run": record.run.model_copy(update={"title": "trust me"})})
    blocks = render_card(card_of(record)).body["blocks"]
    place = next(n for n, one in enumerate(blocks) if one["type"] == "context")
    assert blocks[place]["elements"][0]["text"] == UNCHECKED
    assert blocks[place - 1]["type"] == "divider"
    (told,) = blocks[place + 1]["elements"]
    assert told["type"] == "rich_text_quote"
    assert "trust me" in read_screen([blocks[place + 1]])


def test_buttons_follow_the_items_answers() -> None:
    always = ["sayso:deny", "sayso:changes", "sayso:ask", "sayso:open"]
    assert buttons_of({"a": 1}) == ["sayso:approve", "sayso:edit", *always]
    assert buttons_of({"a": "x" * 2_990}) == ["sayso:approve", *always]
    assert buttons_of({"token": "abcdef"}) == always


def test_notice_channel_has_only_the_link() -> None:
    rendered = render_card(card_of(record_of({"a": 1})), frozenset())
    assert rendered.actions == {CardAction.OPEN}
    assert [one["action_id"] for one in list_buttons(rendered.body["blocks"])] == ["sayso:open"]
    assert set(CardAction) - {CardAction.OPEN} == DECIDES


@pytest.mark.parametrize("name", ARGS)
def test_closed_card_is_valid_and_says_how_it_ended(name: str) -> None:
    card = replace(card_of(record_of(ARGS[name])), live=False, closing="ada approved this over ops.")
    rendered = render_card(card)
    assert find_message_faults(rendered.body) == []
    assert "Closed: ada approved this over ops." in rendered.text
    assert "ada approved this" in rendered.body["text"]


def _walk(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, list):
        return [found for one in part for found in _walk(one)]
    if not isinstance(part, dict):
        return []
    own = [part] if "type" in part else []
    return [*own, *(found for value in part.values() for found in _walk(value))]
