"""Addresses of people: each is linked by a code that was mailed to it and is entered on the account's page."""

from sayso.errors import InvalidInput
from service.auth.contacts import CODE_VALID_MS
from service.channels.mail.outbound import MailChannel, check_address
from service.store.attempts import Allowance
from service.store.channels.mail_codes import MailedCode, MailedCodes
from service.store.directory.contacts import Contact
from service.store.people import Made
from service.wiring import Wiring

MAILS = Allowance("mail-codes", most=3, window_s=3600)
"""Codes that are mailed to one address, so that nobody floods a stranger's mailbox."""

ENTRIES = Allowance("mail-code-entries", most=10, window_s=600)
"""Codes that one person may enter."""


async def mail_code(parts: Wiring, channel: MailChannel, person: str, address: str, page: str, made: Made) -> None:
    """Mail a code to an address; raises `InvalidInput`, `TooManyRequests` or `DeliveryFailed`."""
    check_address(address)
    await parts.attempts.count(MAILS, f"{parts.tenant} {address.lower()}")
    created = await parts.contacts.create_code(person, channel.name, made)
    mailed = MailedCode(person=person, address=address)
    await parts.part(MailedCodes).save(
        parts.contacts.hash_code(f"mailed {channel.name}", created.code), mailed, CODE_VALID_MS
    )
    await channel.send_code(address, person, created.code, page)


async def enter_code(parts: Wiring, channel: MailChannel, person: str, code: str) -> Contact:
    """Link the address that the code was mailed to; raises `InvalidInput` or `TooManyRequests`."""
    await parts.attempts.count(ENTRIES, f"{parts.tenant} {person}")
    mailed = await parts.part(MailedCodes).find(parts.contacts.hash_code(f"mailed {channel.name}", code))
    if mailed is None or mailed.person != person:
        raise InvalidInput("This code is not valid. Enter the newest one, or have another one mailed.")
    contact = await parts.contacts.redeem_code(channel.name, code, mailed.address, mailed.address)
    await parts.attempts.forget(ENTRIES, f"{parts.tenant} {person}")
    return contact
