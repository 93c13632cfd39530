"""A card is a pure function of the item, and holds no secret."""

from dataclasses import replace
from typing import Any

from sayso.records.items import ItemTool, Prompt
from sayso.records.suspensions import SuspensionRecord
from sayso.records.tool_calls import ToolDefinition
from sayso.text.redaction import MASK
from sayso.transitions.deciding import cancel, decide
from service.channels.base import CardAction, allowed_actions
from service.channels.cards import Card, build_card
from tests.sayso.samples import T0, ask, draft, pending, person, word

URL = "https://sayso.example"
CANARY = "s3cret-canary-7c1f"
ALL = frozenset(CardAction)


def card_of(record: SuspensionRecord, definition: ToolDefinition | None = None) -> Card:
    return build_card(record, record.items[0], definition, URL)


def with_args(args: dict[str, Any], **fields: Any) -> SuspensionRecord:
    one = ask(secrets=("token",))
    return pending(one.model_copy(update={"tool": ItemTool(name="refund", args=args, definition="d" * 64), **fields}))


def test_card_shows_arguments_facts_and_link() -> None:
    card = card_of(pending())
    assert card.headline == "refund(order: A-0, amount: 250.5)"
    assert card.args == {"order": "A-0", "amount": 250.5}
    assert card.link == f"{URL}/items/sus_1/i1"
    facts = dict(card.facts)
    assert facts["Agent"] == "support"
    assert facts["Requested by"] == "bot"
    assert facts["Rule"] == "refunds"
    assert dict(card.claims) == {"Task": "Refund A-1"}
    assert (card.live, card.closing, card.masked) == (True, "", False)


def test_card_masks_secrets_everywhere() -> None:
    prompt = Prompt(title=f"Send {CANARY}?", body=f"token={CANARY}", reason=CANARY)
    record = with_args({"token": CANARY, "to": f"has {CANARY} inside"}, prompt=prompt)
    record = record.model_copy(
        update={"run": record.run.model_copy(update={"title": CANARY, "claimed": {"k": CANARY}})}
    )
    card = card_of(record)
    assert card.masked
    assert card.args["token"] == MASK
    shown = repr(replace(card, args={}))
    assert CANARY not in shown


def test_card_masks_what_the_tools_schema_marks() -> None:
    parameters: Any = {"type": "object", "properties": {"order": {"type": "string", "x-secret": True}}}
    card = card_of(pending(), ToolDefinition(name="refund", parameters=parameters))
    assert card.args == {"order": MASK, "amount": 250.5}


def test_card_of_a_decided_item_says_who_decided_where_and_when() -> None:
    record = pending()
    closed = decide(record, word(record), T0 + 5).record
    card = card_of(closed)
    assert not card.live
    assert card.closing == "ada approved this over api at 2023-11-14T22:13:20.005Z."
    assert card.version != card_of(record).version


def test_card_of_a_withdrawn_item_says_that_nothing_ran() -> None:
    record = cancel(pending(), person("bot"), None, T0 + 5).record
    assert card_of(record).closing == "Withdrawn at 2023-11-14T22:13:20.005Z: the run was cancelled. Nothing ran."


def test_card_counts_invisible_characters() -> None:
    card = card_of(with_args({"to": "a\u200bb"}))
    assert card.warnings == ("1 invisible character is shown by a sign such as ⟨U+200B⟩.",)
    assert "\u200b" not in card.args_text


def test_allowed_actions_need_a_complete_card() -> None:
    card = card_of(pending())
    assert allowed_actions(card, complete=True, decides=ALL) == {"open", "approve", "edit", "deny"}
    assert allowed_actions(card, complete=False, decides=ALL) == {"open", "deny"}
    assert allowed_actions(card, complete=True, decides=frozenset()) == {"open"}
    assert allowed_actions(replace(card, live=False), complete=True, decides=ALL) == {"open"}


def test_card_of_a_quorum_lists_its_decisions() -> None:
    record = pending(ask(quorum={"approve": 2, "deny": 1}))
    once = decide(record, word(record), T0 + 5).record
    assert card_of(once).decisions == ("ada approved",)
    assert dict(card_of(once).facts)["Quorum"] == "1 of 2 approvals, 0 of 1 denials"
    assert draft().id == once.id


def test_card_of_a_numbered_item_offers_no_approval_and_no_number() -> None:
    record = pending(ask(match_number=True).model_copy(update={"secret_number": CANARY}))
    card = card_of(record)
    assert card.answers == ("deny",)
    assert dict(card.facts)["Number"] == "Ask bot for the two digits of this item, and type them on its page."
    assert allowed_actions(card, complete=True, decides=ALL) == {CardAction.OPEN, CardAction.DENY}
    assert CANARY not in repr(card)
