"""Cards of items whose rules name no channel reach the browsers that people turned notifications on in."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sayso.core.records.decisions import ForwardRequest
from sayso.core.records.deliveries import CardDelivery
from sayso.core.records.terms import RuleTerms
from sayso.wire.people import Preferences
from service.channels.base import DeliveryFailed, Recipient
from service.channels.cards import Card
from service.channels.kinds import Channels, open_channels
from service.channels.push import PushChannel
from service.core.settings import Settings
from service.core.store.channels import ChannelNotes, Subscription, Subscriptions
from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending, person
from tests.channels import Book, MemoryChannel
from tests.workers.notify.test_interruptions import QUIET
from workers.notify.attempts import Gate
from workers.notify.built_in import BuiltIn, keep_built_in

BOOK = Book({"anna": ("A1",), "ben": ("B1", "B2")})


@dataclass
class Phones(MemoryChannel):
    """A channel that says when it has sent a card."""

    name: str = "push"
    sent: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        self.sent.set()
        return await super().send(to, card, event_id)


@pytest.fixture
def channel() -> Phones:
    return Phones()


def open_built_in(wiring: Wiring, channel: Phones, book: Book = BOOK) -> BuiltIn:
    return BuiltIn(wiring, channel, book, Gate(wiring.attempts))


async def test_card_is_sent_once_and_closed_with_its_item(wiring: Wiring, channel: Phones) -> None:
    record = await make_pending(wiring)
    await open_built_in(wiring, channel).send({record.id})
    assert sorted(channel.calls) == [("send", "A1"), ("send", "B1"), ("send", "B2")]
    await open_built_in(wiring, channel).send({record.id})  # as after a restart
    assert len(channel.calls) == 3
    await approve(wiring, record)
    await open_built_in(wiring, channel).send({record.id})
    assert sorted(channel.calls[3:]) == [("update", "A1"), ("update", "B1"), ("update", "B2")]
    assert not any(card.live for card in channel.cards.values())


async def test_card_is_sent_to_reviewers_of_the_rule_alone(wiring: Wiring, channel: Phones) -> None:
    record = await make_pending(wiring, ask(terms=RuleTerms(reviewers=("anna",))))
    await open_built_in(wiring, channel).send({record.id})
    assert channel.calls == [("send", "A1")]


async def test_forward_reminds_its_recipient_alone(wiring: Wiring, channel: Phones) -> None:
    record = await make_pending(wiring)
    await open_built_in(wiring, channel).send({record.id})
    channel.calls.clear()
    request = ForwardRequest(to="ben", digest=record.items[0].digest)
    await wiring.desk.forward(record.id, "i1", request, (person("ben"),), person("anna"))
    for _ in range(2):
        await open_built_in(wiring, channel).send({record.id})
    reminded = [("remind", "B1"), ("remind", "B2")]
    assert sorted(channel.calls) == [*reminded, ("update", "B1"), ("update", "B2")]


async def test_rule_with_channels_is_left_to_them(wiring: Wiring, channel: Phones) -> None:
    record = await make_pending(wiring, ask(terms=RuleTerms(channels=("ops",))))
    await open_built_in(wiring, channel).send({record.id, "sus_gone"})
    assert channel.calls == []


async def test_item_that_was_decided_before_is_not_sent(wiring: Wiring, channel: Phones) -> None:
    record = await make_pending(wiring)
    await approve(wiring, record)
    await open_built_in(wiring, channel).send({record.id})
    assert channel.calls == []


async def test_quiet_hours_hold_a_card(wiring: Wiring, channel: Phones) -> None:
    book = Book({"anna": ("A1",)}, preferences={"anna": QUIET})
    record = await make_pending(wiring, ask(terms=RuleTerms(timeout_s=86_400)))
    built_in = open_built_in(wiring, channel, book)
    await built_in.send({record.id})
    assert (channel.calls, built_in.later) == ([], {record.id})
    book.preferences["anna"] = Preferences()
    await built_in.send(built_in.later)
    assert channel.calls == []  # until the hours are over


async def test_failed_card_is_tried_again_when_it_is_due(wiring: Wiring, channel: Phones) -> None:
    channel.failure = DeliveryFailed("away")
    record = await make_pending(wiring, ask(terms=RuleTerms(reviewers=("anna",))))
    built_in = open_built_in(wiring, channel)
    await built_in.send({record.id})
    assert built_in.later == {record.id}
    channel.failure = None
    await built_in.send({record.id})
    assert channel.calls == [("send", "A1")]
    notes, name = wiring.part(ChannelNotes), f"card {record.id} i1 anna"
    delivery = CardDelivery.model_validate_json(await notes.read("push", name) or "")
    await notes.save("push", name, delivery.model_copy(update={"next_try_at_ms": 1}).model_dump_json(), 60_000)
    await built_in.send({record.id})
    assert channel.calls == [("send", "A1")] * 2
    assert built_in.later == set()


async def test_old_item_is_not_sent_to_a_new_browser(wiring: Wiring, channel: Phones) -> None:
    record = await make_pending(wiring)
    built_in = open_built_in(wiring, channel)
    await built_in.send({record.id}, since_ms=record.created_at_ms + 1)
    assert channel.calls == []
    await built_in.send({record.id}, since_ms=record.created_at_ms)
    assert len(channel.calls) == 3


@pytest.mark.parametrize("first", ["item", "browser"])
async def test_subscribed_browser_hears_of_each_item(wiring: Wiring, channel: Phones, first: str) -> None:
    stopping = asyncio.Event()
    if first == "item":
        await make_pending(wiring)
    await wiring.part(Subscriptions).save(Subscription(endpoint="https://push.example/1", p256dh="k", auth="a"))
    await wiring.reviewers.add("anna", "correct horse battery", ("reviewer",))
    code = await wiring.contacts.create_code("anna", "push")
    await wiring.contacts.redeem_code("push", code.code, "A1", "Phone")
    following = asyncio.create_task(keep_built_in(wiring, Channels({"push": channel}, built_in=channel), stopping))
    if first == "browser":
        await make_pending(wiring)
    await asyncio.wait_for(channel.sent.wait(), 30)
    assert channel.calls == [("send", "A1")]
    stopping.set()
    await following


async def test_channel_is_built_in_unless_the_file_has_one(tmp_path: Path) -> None:
    opened = open_channels(Settings(public_url="https://desk.example"))
    assert isinstance(opened.built_in, PushChannel)
    assert opened.built_in is opened.find("push")
    assert opened.built_in.config.contact == "https://desk.example"
    assert isinstance(local := open_channels(Settings()).built_in, PushChannel)
    assert local.config.contact.startswith("mailto:sayso@")
    (tmp_path / "channels.yaml").write_text("channels:\n  phone: {kind: push, contact: 'mailto:a@b.example'}\n")
    assert open_channels(Settings(channels=tmp_path / "channels.yaml")).built_in is None


async def test_process_without_the_channel_ends_at_once(wiring: Wiring) -> None:
    await asyncio.wait_for(keep_built_in(wiring, Channels(), asyncio.Event()), 5)
