"""Notices to one person about their account, over every channel that they have linked."""

import asyncio

import structlog

from sayso.core.clock import iso_utc, new_id
from service.channels.base import Recipient
from service.channels.cards import Card, Line
from service.channels.kinds import Channels
from service.channels.previews import build_plain_card, send_card
from service.core.wiring import Wiring

_CLOSING = "This is a notice about your account. Nothing waits for a decision."
_LOG = structlog.get_logger(__name__)


async def reset_password(parts: Wiring, channels: Channels, name: str, password: str, by: str) -> None:
    """Set a person's password and tell them over every channel that they have linked; raises `NotFound`.

    The notices are sent in the background, so that no slow provider holds the reset.
    """
    await parts.reviewers.set_password(name, password, by)
    if by != name:
        text = f"{by} set your Sayso password. If you did not ask for that, tell another admin."
        channels.notices.later(send_notices(parts, channels, name, text))


def build_notice(text: str, at_ms: int, public_url: str) -> Card:
    """Return a card that says something about an account and has no control but the link to it."""
    return build_plain_card("notice", text, (Line("At", iso_utc(at_ms)),), _CLOSING, f"{public_url}/me")


async def send_notices(parts: Wiring, channels: Channels, person: str, text: str) -> None:
    """Send a notice to every address of a person; failures are logged, and stop no other."""
    contacts = await parts.contacts.list_of(person)
    card = build_notice(text, await parts.schedule.now_ms(), parts.settings.public_url)
    linked = [(contact, channel) for contact in contacts if (channel := channels.find(contact.channel)) is not None]
    sending = (
        send_card(parts, channel, Recipient(person, contact.address), card, new_id("ntc"))
        for contact, channel in linked
    )
    answers = await asyncio.gather(*sending, return_exceptions=True)
    for (contact, _), answer in zip(linked, answers, strict=True):
        accepted = not isinstance(answer, BaseException) and answer.accepted
        why = "" if accepted else str(answer) if isinstance(answer, BaseException) else answer.text
        _LOG.info("account_notice", person=person, channel=contact.channel, accepted=accepted, why=why)
