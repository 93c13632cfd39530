"""A person is notified over every linked channel that somebody else set their password."""

from typing import Any

from service.channels.base import DeliveryFailed, Recipient
from service.channels.cards import Card
from service.channels.kinds import Channels
from service.channels.previews import reset_password
from tests.builders import make_person
from tests.service.worlds import World


class Recording:
    """A channel that keeps what it was given to send; `fails` says whether it refuses."""

    kind, per_minute, destination, shared_address = "recording", 60, "recording.example", ""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name, self.fails = name, fails
        self.sent: list[tuple[str, str]] = []

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        assert event_id
        if self.fails:
            raise DeliveryFailed("The provider is away.")
        self.sent.append((to.address, card.headline))
        return "m-1"

    async def aclose(self) -> None:
        """Close nothing."""


async def link(world: World, person: str, channel: str, address: str) -> None:
    made = await world.wiring.contacts.create_code(person, channel)
    await world.wiring.contacts.redeem_code(channel, made.code, address)


async def test_reset_is_told_over_every_linked_channel(world: World) -> None:
    await make_person(world.wiring, "ben")
    chat, mail, away = Recording("chat"), Recording("mail"), Recording("away", fails=True)
    by_name: Any = {one.name: one for one in (away, chat, mail)}
    channels = Channels(by_name)
    for channel, address in (("away", "B-0"), ("chat", "B-1"), ("mail", "ben@example.org"), ("gone", "B-9")):
        await link(world, "ben", channel, address)
    await link(world, "anna", "chat", "A-1")
    await reset_password(world.wiring, channels, "ben", "a sentence that root chose", "root")
    await channels.notices.finish()
    text = "root set your Sayso password. If you did not ask for that, tell another admin."
    assert (chat.sent, mail.sent) == ([("B-1", text)], [("ben@example.org", text)])


async def test_own_reset_is_not_told(world: World) -> None:
    chat = Recording("chat")
    by_name: Any = {"chat": chat}
    channels = Channels(by_name)
    await link(world, "root", "chat", "R-1")
    await reset_password(world.wiring, channels, "root", "a sentence of root alone", "root")
    await channels.notices.finish()
    assert chat.sent == []
