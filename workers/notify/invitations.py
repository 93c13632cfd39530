"""Delivery of the links that people outside get by mail."""

from functools import partial

from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.outsiders import find_invitation
from service.channels.base import Channel, DeliveryFailed, Recipient
from service.channels.mail import MailChannel
from service.core.outgoing.http import retry_after_ms
from service.core.wiring import Wiring
from service.features.outsiders.mails import mail_invitation
from workers.notify.attempts import Gate, fail


async def send_invitation(
    wiring: Wiring,
    gate: Gate,
    channel: Channel | None,
    record: SuspensionRecord,
    item: Item,
    delivery: CardDelivery,
    now_ms: int,
) -> CardDelivery:
    """Mail the link of an invitation; return the delivery as it is then. Raises `Deferred`."""
    if not isinstance(channel, MailChannel):
        return fail(delivery, f"There is no mail channel named {delivery.channel}.", None)
    if item.drill is not None:  # its page looks like any other, and nobody outside gets a mail about a false call
        return _mark_sent(delivery, now_ms, {})
    invitation = find_invitation(item, delivery.invitation)
    to, first = Recipient("", invitation.address), delivery.state is DeliveryState.QUEUED
    mail = partial(mail_invitation, wiring, channel, record, item, invitation)
    try:
        reference = await gate.run(channel, to, now_ms, mail, first=first)
    except DeliveryFailed as failure:
        wait_ms = retry_after_ms(invitation.id, delivery.tries + 1)
        final = failure.permanent or wait_ms is None
        later_ms = None if final else now_ms + max(wait_ms or 0, int(failure.retry_after_s * 1000))
        return fail(delivery, failure.reason, later_ms)
    return _mark_sent(delivery, now_ms, {invitation.address: reference})


def _mark_sent(delivery: CardDelivery, now_ms: int, references: dict[str, str]) -> CardDelivery:
    sent = {"state": DeliveryState.SENT, "sent_at_ms": now_ms, "references": references}
    return delivery.model_copy(update={**sent, "tries": 0, "reason": None, "next_try_at_ms": None})
