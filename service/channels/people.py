"""The reviewers behind addresses on channels."""

from sayso.core.records.decisions import Actor
from sayso.core.sentences.deliveries import LINKED
from sayso.errors import InvalidInput
from service.channels.base import Channel
from service.wiring import Wiring


async def find_actor(parts: Wiring, channel: Channel, address: str) -> Actor | None:
    """Return the active reviewer who linked this address of the channel, with their groups; or None."""
    person = await parts.contacts.find_person(channel.name, address)
    if person is None:
        return None
    made = await parts.contacts.find_made(channel.name, address)
    return await parts.reviewers.find_actor(person, channel.name, made)


async def link_address(parts: Wiring, channel: Channel, code: str, address: str, label: str) -> str:
    """Link an address to the creator of the code, and return the sentence for them; raises what redeeming raises.

    A repeated message of somebody who is linked already has the same answer, although its code is used up.
    """
    try:
        await parts.contacts.redeem_code(channel.name, code, address, label)
    except InvalidInput:
        if await parts.contacts.find_person(channel.name, address) is None:
            raise
    return LINKED.format(await parts.contacts.find_person(channel.name, address))
