"""The reviewers behind addresses on channels."""

from sayso.records.decisions import Actor, ActorKind
from service.channels.base import Channel
from service.wiring import Wiring


async def find_actor(parts: Wiring, channel: Channel, address: str) -> Actor | None:
    """Return the active reviewer who linked this address of the channel, with their groups; or None."""
    person = await parts.contacts.find_person(channel.name, address)
    if person is None:
        return None
    groups = await parts.reviewers.list_groups(person)
    return Actor(id=person, kind=ActorKind.HUMAN, channel=channel.name, groups=groups)
