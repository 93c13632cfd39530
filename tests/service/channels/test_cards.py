"""A card is a pure function of the item, and holds no secret."""

from dataclasses import replace
from typing import Any

import pytest

from sayso.core.records.decisions import EarlierDenial
from sayso.core.records.items import ItemKind, ItemTool, Prompt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.redaction import MASK
from sayso.core.transitions.deciding import cancel, decide
from sayso.core.transitions.due import tick
from sayso.core.transitions.inquiring import claim, release_claim
from service.channels.base import CardAction, allowed_actions, name_action
from service.channels.cards import Card, build_card, build_digest, describe_closing
from service.channels.deciding import describe_result
from tests.sayso.samples import T0, ask, draft, pending, person, word
from tests.service.channels.conformance import offer_of

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


def test_card_of_an_edited_item_masks_the_earlier_secret_too() -> None:
    record = with_args({"token": CANARY, "to": "ops"}, prompt=Prompt(title=f"Send {CANARY}?"))
    edited = word(record, args={"token": "new-canary", "to": "ops"}, message="instead new-canary")
    closed = decide(record, edited, T0 + 5).record
    card = card_of(closed)
    assert card.args["token"] == MASK
    assert CANARY not in repr(card)
    assert "new-canary" not in repr(card)
    assert describe_closing(closed, closed.items[0]).endswith(f"Reason: instead {MASK}")


def test_card_masks_the_secrets_of_other_items() -> None:
    login = ask(1, secrets=("password",)).model_copy(
        update={"tool": ItemTool(name="log_in", args={"password": CANARY}, definition="e" * 64)}
    )
    quoting = ask().model_copy(update={"tool": ItemTool(name="mail", args={"text": CANARY}, definition="d" * 64)})
    card = card_of(pending(quoting, login))
    assert CANARY not in repr(card)
    assert card.masked


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
    assert card.warnings == ("1 hidden character has no place here. A sign such as ⟨U+200B⟩ stands for it.",)
    assert "\u200b" not in card.args_text


def test_allowed_actions_need_a_complete_card() -> None:
    card = card_of(pending())
    assert allowed_actions(card, complete=True, decides=ALL) == {"open", "approve", "edit", "deny", "changes", "ask"}
    assert allowed_actions(card, complete=False, decides=ALL) == {"open", "deny", "changes", "ask"}
    assert allowed_actions(card, complete=True, decides=frozenset()) == {"open"}
    assert allowed_actions(replace(card, live=False), complete=True, decides=ALL) == {"open"}


@pytest.mark.parametrize("fields", [{"rounds": 0}, {"kind": ItemKind.INPUT}])
def test_changes_are_offered_where_the_item_takes_them(fields: dict[str, Any]) -> None:
    assert CardAction.CHANGES not in allowed_actions(card_of(pending(ask(**fields))), complete=True, decides=ALL)


def test_acting_user_cannot_request_changes_on_a_card() -> None:
    card = card_of(pending()).for_confirmation("ann")
    assert CardAction.CHANGES not in allowed_actions(card, complete=True, decides=ALL)


def test_offer_names_the_call_that_ran() -> None:
    record = offer_of({"order": "A-1", "amount": 5})
    card = card_of(record)
    assert (card.headline, card.tool) == ("Undo refund(order: A-1, amount: 5)?", "refund")
    assert (card.title, replace(card, live=False).title) == ("support ran refund. Undo it?", "support ran refund.")
    assert build_digest([card], 1_000, lambda entry: 1).entries[0].text == (
        f"support ran refund(order: A-1, amount: 5), which can be undone until {card.deadline}"
    )
    late = tick(record, (), T0 + 300_000).record
    assert card_of(late).ended == "Stays as it is from 2023-11-14T22:18:20.000Z on."


def test_digest_counts_calls_that_can_be_undone_apart() -> None:
    item, offer = card_of(pending()), card_of(offer_of({}))
    titles = [build_digest(cards, 1_000, lambda entry: 1).title for cards in ([offer], [item, offer, offer], [item])]
    assert titles == [
        "1 call can be undone",
        "1 item waits for a decision and 2 calls can be undone",
        "1 item waits for a decision",
    ]


def test_card_of_an_undo_asks_nobody() -> None:
    assert CardAction.ASK not in allowed_actions(card_of(offer_of({})), complete=True, decides=ALL)


def test_decision_on_an_offer_can_be_taken_back() -> None:
    record = offer_of({"order": "A-1"})
    terms = record.items[0].terms.model_copy(update={"undo_s": 5})
    record = record.with_item(record.items[0].model_copy(update={"terms": terms}))
    held = decide(record, word(record), T0).record
    assert name_action(card_of(held), CardAction.UNDO) == "Take it back"
    assert describe_result(held, held.items[0]).endswith("Until then, you can take it back.")


def test_card_of_a_quorum_lists_its_decisions() -> None:
    record = pending(ask(quorum={"approve": 2, "deny": 1}))
    once = decide(record, word(record), T0 + 5).record
    assert card_of(once).decisions == ("ada approved",)
    assert dict(card_of(once).facts)["Quorum"] == "1 of 2 have approved; 1 denial is enough"
    assert draft().id == once.id


def test_card_of_a_claimed_item_says_who_handles_it() -> None:
    record = pending()
    claimed = claim(record, "i1", person("ada"), T0).record
    assert dict(card_of(claimed).facts)["Claimed"] == "ada handles this until 2023-11-14T22:28:00.000Z"
    released = release_claim(claimed, "i1", person("ada"), T0 + 1).record
    assert card_of(released).version == card_of(record).version != card_of(claimed).version
    renewed = [claim(claimed, "i1", person("ada"), T0 + after_ms).record for after_ms in (1, 60_000)]
    versions = [card_of(one).version for one in renewed]
    assert versions[0] == card_of(claimed).version != versions[1], "one update a minute"
    closed = decide(claimed, word(claimed), T0 + 5).record
    assert "Claimed" not in dict(card_of(closed).facts)


def test_card_of_a_numbered_item_offers_no_approval_and_no_number() -> None:
    record = pending(ask(match_number=True).model_copy(update={"secret_number": CANARY}))
    card = card_of(record)
    assert card.answers == ("deny",)
    assert dict(card.facts)["Number"] == "Ask bot for the two digits of this item, and type them on its page."
    assert allowed_actions(card, complete=True, decides=ALL) == {"open", "deny", "changes", "ask"}
    assert CANARY not in repr(card)


def test_card_leads_with_the_last_denial_of_the_same_call() -> None:
    record = with_args({"token": CANARY})
    denied = EarlierDenial(by="anna", at_ms=T0, message=f"never, {CANARY}", run_id=record.run.id)
    card = build_card(record, record.items[0], None, URL, denied)
    assert card.warnings[0].startswith("anna denied this call at 20")
    assert ", in the same run: never, " in card.warnings[0]
    assert CANARY not in card.warnings[0]
