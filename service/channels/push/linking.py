"""Subscriptions of people's browsers: each is one contact, named after its push service."""

from service.channels.push.outbound import PushChannel, check_subscription, forget_browser
from service.store.channels.subscriptions import Subscriptions
from service.store.directory.contacts import Contact
from service.wiring import Wiring


async def subscribe(
    parts: Wiring, channel: PushChannel, person: str, sent: tuple[str, str, str], label: str
) -> Contact:
    """Save a browser's endpoint, key and secret for a person; raises `InvalidInput`.

    A browser that someone else used before changes hands: only the person at the browser knows its endpoint.
    """
    subscription = check_subscription(*sent, loopback=parts.settings.aap_allow_loopback)
    await forget_browser(parts, channel.name, subscription.address, by=person)
    await parts.part(Subscriptions).save(subscription)
    made = await parts.contacts.create_code(person, channel.name)
    return await parts.contacts.redeem_code(channel.name, made.code, subscription.address, label)
