"""Tests that every channel passes. A test module of a channel subclasses `ChannelConformance`."""

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pytest
import structlog
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.items import MOST_INQUIRIES, Answer, Doubt, Forward, Inquiry, ItemTool, Prompt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import Quorum
from sayso.core.records.undoing import Reversal
from sayso.core.text.invisible import UNCHECKED, write_signs
from sayso.core.text.summaries import list_values
from sayso.core.transitions.deciding import decide
from service.channels.base import CardAction, Channel, DeliveryFailed, Recipient, SendsDigests
from service.channels.cards import Card, build_card, item_link
from tests.sayso.samples import T0, ask, pending, word

URL = "https://sayso.example"
CANARY = "s3cret-canary-7c1f"
APPROVING = {CardAction.APPROVE, CardAction.EDIT, CardAction.VALUE}

ARGS: dict[str, JsonObject] = {
    "small": {"order": "A-1", "amount": 250.5},
    "empty": {},
    "nested": {"to": {"name": "Ann", "tags": ["a", {"b": None}]}, "ok": True},
    "long": {"body": "lorem ipsum " * 900},
    "many": {f"field_{number}": f"value {number}" for number in range(200)},
    "right_to_left": {"to": "\u05e9\u05dc\u05d5\u05dd \u202eevil\u202c", "note": "\u0645\u0631\u062d\u0628\u0627"},
    "emoji": {"text": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea ok"},
    "markup": {"text": "*bold* <b>x</b> <@U1> [a](http://x) `code` ```fence``` & \\ | _i_ ~s~ @here {{x}}"},
    "breaks": {"text": "a\r\nb\tc\u2028d\u0000e"},
}
DOUBT = Doubt(begun_at_ms=T0, holder="worker", attempt=1, idempotency_key="key")
LONG_PROMPT = Prompt(title="What? " * 33, body="Because of this. " * 1000, reason="Over the limit. " * 120)


@dataclass(frozen=True)
class Shown:
    """A card as the provider holds it: its readable text, and whether it has a control that decides."""

    text: str
    decides: bool


class Provider(Protocol):
    """The other side of a channel, as a program under test control."""

    def cards(self, address: str) -> list[Shown]:
        """Return the cards at an address, the newest last, each in its current form."""

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        """Refuse every request with this HTTP status, or its counterpart; 0 accepts again."""

    def remove(self, address: str) -> None:
        """Forget an address: deliveries to it fail for good."""


def record_of(args: JsonObject, **fields: Any) -> SuspensionRecord:
    tool = ItemTool(name="refund", args=args, definition="d" * 64)
    return pending(ask(secrets=("token",)).model_copy(update={"tool": tool, **fields}))


def offer_of(args: JsonObject, result: JsonValue = "ok") -> SuspensionRecord:
    """Return an offer to undo a refund with these arguments."""
    call = Reversal(run_id="run_0", suspension_id="sus_0", tool="refund", call_id="c0", index=0, at_ms=T0)
    tool = ItemTool(name="refund:undo", args={"arguments": args, "result": result}, definition="d" * 64)
    fields = {"tool": tool, "reverses": call, "allowed": (Answer.APPROVE, Answer.DENY)}
    return pending(ask(rounds=0).model_copy(update=fields))


def card_of(record: SuspensionRecord) -> Card:
    return build_card(record, record.items[0], None, URL)


class ChannelConformance(ABC):
    """The contract of a channel. A subclass has the fixtures `channel`, `provider` and `recipient`.

    `decides` says whether its cards have controls that decide, and `explains_refusals` whether the channel learns why
    its provider refused a card. `check_limits` raises if a body breaks the provider's own limits, judged by the
    provider's own library where there is one.
    """

    decides = True
    explains_refusals = True

    @abstractmethod
    def check_limits(self, body: Any) -> None:
        """Raise if the provider would refuse the body."""

    @pytest.mark.parametrize("name", ARGS)
    def test_complete_card_shows_every_value(self, channel: Channel, name: str) -> None:
        card = card_of(record_of(ARGS[name]))
        rendered = channel.render(card)
        assert CardAction.OPEN in rendered.actions
        if rendered.complete:
            for leaf in list_values(ARGS[name]):
                plain = write_signs(leaf.text).replace("\n", "")
                quoted = write_signs(json.dumps(leaf.text, ensure_ascii=False)[1:-1])
                shown = rendered.text.replace("\n", "")
                assert plain in shown or quoted in shown, leaf.path
        else:
            assert not rendered.actions & APPROVING

    @pytest.mark.parametrize("name", ARGS)
    def test_body_keeps_the_providers_limits(self, channel: Channel, name: str) -> None:
        for one in (
            card_of(record_of(ARGS[name])),
            replace(card_of(record_of(ARGS[name])), live=False, closing="Over."),
        ):
            self.check_limits(channel.render(one).body)

    def test_longest_texts_and_questions_keep_the_providers_limits(self, channel: Channel) -> None:
        record = record_of({"token": "x\u200b" * 80}, prompt=LONG_PROMPT, resembles=("refund_all", "refund_one"))
        run = record.run.model_copy(update={"title": "t" * 200, "owner": "o" * 64, "claimed": {"note": "c" * 2000}})
        asked = tuple(
            Inquiry(
                id=f"q{place}",
                by=Actor(id="r" * 64, kind=ActorKind.HUMAN, channel="web"),
                text="Which order? " * 150,
                at_ms=T0,
                answer="The one of May. " * 120 if place < MOST_INQUIRIES - 1 else None,
            )
            for place in range(MOST_INQUIRIES)
        )
        names = tuple(f"{place}{'r' * 62}" for place in range(10))
        terms = record.items[0].terms.model_copy(
            update={"reviewers": names, "quorum": Quorum(approve=9, deny=9), "match_number": True, "urgent": True}
        )
        actors = [Actor(id=name, kind=ActorKind.HUMAN, channel="web", for_person="p" * 64) for name in names[:8]]
        decisions = tuple(word(record).model_copy(update={"id": one.id, "by": one}) for one in actors)
        given = Forward(id="f", by=actors[0], to=f"group:{'g' * 64}", note="Why? " * 100, at_ms=T0)
        changed = {"inquiries": asked, "forwards": (given,), "terms": terms, "decisions": decisions, "doubt": DOUBT}
        item = record.items[0].model_copy(update=changed)
        card = card_of(record.model_copy(update={"run": run, "items": (item,)}))
        for one in (card, replace(card, live=False, closing="Over. " * 400)):
            self.check_limits(channel.render(one).body)

    def test_render_is_pure(self, channel: Channel) -> None:
        card = card_of(record_of(ARGS["small"]))
        assert channel.render(card) == channel.render(card)

    def test_small_card_offers_what_the_channel_decides(self, channel: Channel) -> None:
        rendered = channel.render(card_of(record_of(ARGS["small"])))
        assert (CardAction.APPROVE in rendered.actions) == self.decides
        assert rendered.complete or not self.decides

    def test_masked_value_has_no_approve(self, channel: Channel) -> None:
        record = record_of({"token": CANARY, "to": f"x {CANARY}"}, prompt=Prompt(title=CANARY, body=CANARY))
        rendered = channel.render(card_of(record))
        assert not rendered.complete
        assert not rendered.actions & APPROVING
        assert CANARY not in json.dumps(rendered.body, default=repr) + rendered.text

    def test_claims_are_marked_as_unchecked(self, channel: Channel) -> None:
        record = record_of(ARGS["small"])
        record = record.model_copy(update={"run": record.run.model_copy(update={"title": "claimed words"})})
        text = channel.render(card_of(record)).text
        if "claimed words" in text:
            assert 0 <= text.index(UNCHECKED) < text.index("claimed words")
        assert text.index("refund") < text.find("claimed words") or "claimed words" not in text

    def test_closed_card_has_only_the_link(self, channel: Channel) -> None:
        record = record_of(ARGS["small"])
        closed = decide(record, word(record), T0 + 5).record
        rendered = channel.render(card_of(closed))
        assert rendered.actions == {CardAction.OPEN}
        assert "ada approved this over api" in rendered.text

    def test_card_of_a_call_that_ran_names_undo_and_keep(self, channel: Channel) -> None:
        record = offer_of(ARGS["small"])
        rendered = channel.render(card_of(record))
        assert iso_utc(record.items[0].terms.deadline_at_ms) in rendered.text
        assert "it stays as it is" in rendered.text
        body = json.dumps(rendered.body, ensure_ascii=False, default=repr)
        assert "Approve" not in body
        assert "Deny" not in body
        assert rendered.actions - {CardAction.APPROVE, CardAction.DENY} == {CardAction.OPEN}
        assert not self.decides or all(f'"{name}"' in body for name in ("Undo", "Keep…"))
        for action, ended in (("approve", "ada chose to undo it"), ("deny", "ada chose to keep it")):
            closed = decide(record, word(record, action=action), T0 + 5).record
            assert ended in channel.render(card_of(closed)).text

    def test_card_offers_at_most_undo_before_a_decision_takes_effect(self, channel: Channel) -> None:
        record = record_of(ARGS["small"])
        terms = record.items[0].terms.model_copy(update={"undo_s": 5})
        record = record.with_item(record.items[0].model_copy(update={"terms": terms}))
        rendered = channel.render(card_of(decide(record, word(record), T0).record))
        assert rendered.actions - {CardAction.UNDO} == {CardAction.OPEN}
        assert not self.decides or f"by ada, from {iso_utc(T0 + 5_000)} on, unless ada takes it back" in rendered.text

    async def test_sent_card_loses_its_buttons_when_it_closes(
        self, channel: Channel, provider: Provider, recipient: Recipient
    ) -> None:
        record = record_of(ARGS["small"])
        reference = await channel.send(recipient, card_of(record), "e1")
        assert [one.decides for one in provider.cards(recipient.address)] == [self.decides]
        closed = decide(record, word(record), T0 + 5).record
        await channel.update(recipient, reference, card_of(closed))
        cards = provider.cards(recipient.address)
        assert "ada approved this" in cards[-1].text
        assert not cards[-1].decides

    async def test_reminder_reaches_the_recipient(
        self, channel: Channel, provider: Provider, recipient: Recipient
    ) -> None:
        card = card_of(record_of(ARGS["small"]))
        reference = await channel.send(recipient, card, "e1")
        before = len(provider.cards(recipient.address))
        await channel.remind(recipient, reference, card, "e2")
        assert len(provider.cards(recipient.address)) > before

    async def test_refusal_is_a_failure_to_repeat(
        self, channel: Channel, provider: Provider, recipient: Recipient
    ) -> None:
        provider.refuse(503)
        with pytest.raises(DeliveryFailed) as failed:
            await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
        assert not failed.value.permanent
        provider.refuse(0)
        await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")

    async def test_rate_limit_says_when_to_repeat(
        self, channel: Channel, provider: Provider, recipient: Recipient
    ) -> None:
        provider.refuse(429, retry_after_s=7)
        with pytest.raises(DeliveryFailed) as failed:
            await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
        assert (failed.value.permanent, failed.value.retry_after_s) == (False, 7 if self.explains_refusals else 0)

    async def test_unknown_address_is_a_final_failure(
        self, channel: Channel, provider: Provider, recipient: Recipient
    ) -> None:
        provider.remove(recipient.address)
        with pytest.raises(DeliveryFailed) as failed:
            await channel.send(recipient, card_of(record_of(ARGS["small"])), "e1")
        assert failed.value.permanent == self.explains_refusals

    async def test_secret_reaches_neither_provider_nor_log(
        self, channel: Channel, provider: Provider, recipient: Recipient
    ) -> None:
        with structlog.testing.capture_logs() as logs:
            await channel.send(recipient, card_of(record_of({"token": CANARY})), "e1")
            provider.refuse(503)
            with pytest.raises(DeliveryFailed) as failed:
                await channel.send(recipient, card_of(record_of({"token": CANARY})), "e2")
        shown = " ".join(one.text for one in provider.cards(recipient.address))
        assert CANARY not in shown + repr(logs) + failed.value.reason


class DigestConformance(ChannelConformance):
    """The contract of a channel with digests. `links_items` is false where a message opens one page, the inbox."""

    links_items = True

    @pytest.fixture
    def digests(self, channel: Channel) -> SendsDigests:
        assert isinstance(channel, SendsDigests)
        return channel

    async def test_digest_lists_every_item_with_its_link_and_no_button(
        self, digests: SendsDigests, provider: Provider, recipient: Recipient
    ) -> None:
        cards = list_cards(2, {"token": CANARY, "order": "A-1 <b>&"})
        await digests.send_digest(recipient, cards, "d1")
        (shown,) = provider.cards(recipient.address)
        assert "2 items wait for a decision" in shown.text
        assert CANARY not in shown.text
        assert not shown.decides
        if self.links_items:
            assert all(shown.text.count(card.link) >= 1 for card in cards)

    @pytest.mark.parametrize("name", ["long", "emoji", "markup", "right_to_left"])
    async def test_digest_counts_the_items_that_do_not_fit(
        self, digests: SendsDigests, provider: Provider, recipient: Recipient, name: str
    ) -> None:
        cards = list_cards(50, ARGS[name])
        await digests.send_digest(recipient, cards, "d1")
        (shown,) = provider.cards(recipient.address)
        found = re.search(r"And (\d+) more, which do not fit here", shown.text)
        left = int(found[1]) if found is not None else 0
        assert left < 50
        if self.links_items:
            assert sum(card.link in shown.text for card in cards) == 50 - left

    async def test_refused_digest_is_a_failure_to_repeat(
        self, digests: SendsDigests, provider: Provider, recipient: Recipient
    ) -> None:
        provider.refuse(503)
        with pytest.raises(DeliveryFailed) as failed:
            await digests.send_digest(recipient, list_cards(2, ARGS["small"]), "d1")
        assert not failed.value.permanent


def list_cards(count: int, args: JsonObject) -> list[Card]:
    """Return the cards of many items with the same arguments."""
    card, ids = card_of(record_of(args)), [f"sus_{number:032x}" for number in range(count)]
    return [replace(card, suspension_id=one, link=item_link(URL, one, "i1")) for one in ids]
