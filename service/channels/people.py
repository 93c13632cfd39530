"""The reviewers behind addresses on channels."""

from sayso.records.decisions import Actor
from service.channels.base import Channel
from service.wiring import Wiring


async def find_actor(parts: Wiring, channel: Channel, address: str) -> Actor | None:
    """Return the active reviewer who linked this address of the channel, with their groups; or None."""
    person = await parts.contacts.find_person(channel.name, address)
    if person is None:
        return None
    return await parts.reviewers.find_actor(person, channel.name)
