"""The link of an invitation, and the mails to people outside."""

from hashlib import sha256

from sayso.core.clock import iso_utc
from sayso.core.records.items import Item
from sayso.core.records.proofs import Invitation
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.invisible import write_signs
from service.channels.base import DeliveryFailed
from service.channels.mail import LONGEST_SUBJECT_CHARS, MailBody, MailChannel, one_line, render_body
from service.core.wiring import Wiring

PATH = "/outside/{suspension_id}/{item_id}/{token}"


def hash_secret(*secrets: str) -> str:
    """Return the SHA-256 of a token, a proof, or a code beside the token of its link."""
    return sha256(" ".join(secrets).encode(errors="replace")).hexdigest()


def derive_token(wiring: Wiring, suspension_id: str, item_id: str, invitation: Invitation) -> str:
    """Return the token of a link: signed for one address and one version of one item, and never stored."""
    facts = (suspension_id, item_id, invitation.id, invitation.digest, invitation.address, invitation.nonce)
    return wiring.contacts.derive_token(wiring.tenant, *facts)


async def mail_invitation(
    wiring: Wiring, channel: MailChannel, record: SuspensionRecord, item: Item, invitation: Invitation
) -> str:
    """Mail the link of an invitation; raises `DeliveryFailed`."""
    token = derive_token(wiring, record.id, item.item_id, invitation)
    if hash_secret(token) != invitation.token_hash:
        raise DeliveryFailed(
            "The channels file has changed since. Revoke the invitation and invite again.", permanent=True
        )
    link = wiring.settings.public_url + PATH.format(suspension_id=record.id, item_id=item.item_id, token=token)
    context = {
        "by": _write(invitation.by),
        "agent": _write(record.run.agent),
        "note": _write(invitation.note),
        "until": iso_utc(invitation.until_ms)[:16].replace("T", " ") + " UTC",
        "link": link,
    }
    subject = one_line(f"{context['by']} asks for your decision", LONGEST_SUBJECT_CHARS)
    return await channel.send_body(invitation.address, render_body("invitation", subject, context), invitation.id)


async def mail_code(channel: MailChannel, invitation: Invitation, code: str) -> None:
    """Mail a code; raises `DeliveryFailed`."""
    body: MailBody = render_body("invited_code", "Your code", {"by": _write(invitation.by), "code": code})
    await channel.send_body(invitation.address, body, f"{invitation.id} {invitation.codes}")


def _write(text: str) -> str:
    return one_line(write_signs(text), 2 * len(text) + 100)
