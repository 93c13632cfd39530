"""Mails over SMTP: each item is one thread, with one link to its page, which requires a sign-in.

The same event always has the same Message-ID. A person's address is linked by a code that was mailed to it.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

import aiosmtplib
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import escape
from pydantic import AfterValidator, Field, model_validator

from sayso.core.clock import now_ms
from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.language import cut
from sayso.errors import InvalidInput
from service.channels.base import ConfiguredChannel, DeliveryFailed, Recipient, Rendered, allowed_actions
from service.channels.cards import Card, Line, build_digest
from service.channels.config import ChannelConfig
from service.core.auth.contacts import CODE_VALID_MS
from service.core.settings import CHECKOUT
from service.core.settings.receivers import Secret
from service.core.store.attempts import Allowance
from service.core.store.channels import MailedCode, MailedCodes
from service.core.store.directory import Contact
from service.core.store.people import Made
from service.core.wiring import Wiring

LARGEST_HTML_BYTES = 100_000  # some mail programs clip a message at 102 kB
DIGEST_BYTES = 80_000  # the largest entries of a digest, without the frame of the mail
LONGEST_LINE_CHARS = 1_000
LONGEST_SUBJECT_CHARS = 150


class MailBody(NamedTuple):
    """The parts of a mail. The subject is the same for all mails of an item, because threads depend on it."""

    subject: str
    text: str
    html: str


def render_card(card: Card) -> Rendered:
    """Return the card as a mail. Arguments that do not fit are left out as a whole, and both parts say so."""
    body, complete = _fill(card, card.args_text), not card.masked
    if len(body.html.encode()) > LARGEST_HTML_BYTES:
        body, complete = _fill(card, ""), False
    return Rendered(body, body.text, complete, allowed_actions(card, complete=complete, decides=frozenset()))


def render_code(person: str, code: str, page: str) -> MailBody:
    """Return the mail with the code that links its address to a person."""
    return render_body("code", "Sayso: your code", {"person": person, "code": code, "page": page})


def render_digest(cards: Sequence[Card]) -> MailBody:
    """Return the mail about many open items."""
    tags = 400
    digest = build_digest(
        cards, DIGEST_BYTES, lambda entry: len(str(escape(f"{entry.text}{entry.link}")).encode()) + tags
    )
    return render_body("digest", one_line(f"[Sayso] {digest.title}", LONGEST_SUBJECT_CHARS), {"digest": digest})


def one_line(text: str, limit: int) -> str:
    """Return the text on one line, for a header."""
    return cut(" ".join(text.split()), limit)


def _fill(card: Card, args_text: str) -> MailBody:
    what = f"Undo {card.tool}" if card.reverses else card.tool
    context = {
        "card": card,
        "facts": [Line(label, _shorten(text)) for label, text in card.facts],
        "claims": [Line(label, _shorten(text)) for label, text in card.claims],
        "args_text": args_text,
        "omitted": len(card.args_text) if not args_text else 0,
        "UNCHECKED": UNCHECKED,
    }
    return render_body("card", one_line(f"[Sayso] {what} for {card.agent}", LONGEST_SUBJECT_CHARS), context)


def render_body(template: str, subject: str, context: Mapping[str, object]) -> MailBody:
    """Return a mail from its two templates, of which the second escapes everything."""
    parts = (_ENVIRONMENT.get_template(f"mail/{template}.{part}").render(context) for part in ("txt", "html"))
    return MailBody(subject, *parts)


def _shorten(text: str) -> str:
    """Return a text without its end where it is too long, and say so."""
    if len(text) <= LONGEST_LINE_CHARS:
        return text
    rest = len(text) - LONGEST_LINE_CHARS
    return f"{text[:LONGEST_LINE_CHARS]}… ({rest} more characters are on the page)"


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(CHECKOUT / "templates"),
    autoescape=select_autoescape(("html",)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


ATTEMPT_S = 12.0
RETRY_S = 60.0  # the wait after a temporary refusal, unless the server states another
LONGEST_RETRY_S = 3_600.0
LONGEST_ADDRESS = 254

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_WAIT = re.compile(r"\bin (\d{1,5}) ?(s|sec|seconds?|m|min|minutes?)\b", re.IGNORECASE)


def check_address(address: str) -> str:
    """Return a mail address; raises `InvalidInput` for anything else, and so for line breaks."""
    if len(address) > LONGEST_ADDRESS or not _ADDRESS.fullmatch(address):
        raise InvalidInput("This is not a mail address. Write one such as anna@example.com.")
    return address


def _check_sender(address: str) -> str:
    try:
        return check_address(address)
    except InvalidInput as error:
        raise ValueError(error.message) from None


class MailConfig(ChannelConfig):
    """The fields of a mail channel. Without `port` it is 587 for STARTTLS, 465 for TLS, and 25 without either."""

    kind: Literal["mail"]
    host: str = Field(min_length=1, max_length=253)
    port: int = Field(default=0, ge=0, le=65_535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str = Field(default="", max_length=320)
    password: Secret | None = None
    sender: Annotated[str, AfterValidator(_check_sender)]
    sender_name: str = Field(default="Sayso", max_length=100, pattern=r"^[^\r\n\x00]*$")
    ca_file: Path | None = Field(default=None, description="Authorities to trust instead of the system's.")

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if bool(self.username) != (self.password is not None):
            raise ValueError("a login needs both username and password")
        if self.username and self.security == "none":
            raise ValueError("a password must not travel unencrypted; set security to starttls or tls")
        return self

    @property
    def server_port(self) -> int:
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]


class MailChannel(ConfiguredChannel[MailConfig]):
    """One mail account that sends cards, each over a connection of its own."""

    def __init__(self, config: MailConfig) -> None:
        super().__init__(config)
        self.destination = f"{config.host}:{config.server_port}"
        self._trust: ssl.SSLContext | None = None

    def render(self, card: Card) -> Rendered:
        return render_card(card)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Send the first mail of an item's thread; return its Message-ID."""
        return await self._send(to, await self.write(card), event_id)

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Reply in the thread once the item is closed. A mail cannot be replaced, so nothing less is worth one."""
        if not card.live:
            await self._send(to, await self.write(card), f"{reference} {card.version}", reference)

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        await self._send(to, await self.write(card), event_id, reference)

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        """Send one mail about open items, in a thread of its own."""
        await self._send(to, await asyncio.to_thread(render_digest, cards), event_id)

    async def send_code(self, address: str, person: str, code: str, page: str) -> None:
        """Mail a code that links the address to a person; raises `DeliveryFailed`."""
        await self._send(Recipient(person, address), render_code(person, code, page), f"{address} {code}")

    async def send_body(self, address: str, body: MailBody, event_id: str) -> str:
        """Send a mail to an address that is no person's; return its Message-ID. Raises `DeliveryFailed`."""
        return await self._send(Recipient("", address), body, event_id)

    async def _send(self, to: Recipient, body: MailBody, event_id: str, reference: str = "") -> str:
        message, config = self._compose(to, body, event_id, reference), self.config
        if self._trust is None and config.security != "none":
            self._trust = ssl.create_default_context(cafile=config.ca_file)
        try:
            await aiosmtplib.send(
                message,
                sender=config.sender,
                recipients=[to.address],
                hostname=config.host,
                port=config.server_port,
                username=config.username or None,
                password=config.password.get_secret_value() if config.password is not None else None,
                use_tls=config.security == "tls",
                start_tls=config.security == "starttls",
                tls_context=self._trust,
                timeout=ATTEMPT_S,
            )
        except (aiosmtplib.SMTPException, OSError) as error:
            raise explain_failure(error) from error
        return str(message["Message-ID"])

    def _compose(self, to: Recipient, body: MailBody, event_id: str, reference: str) -> EmailMessage:
        """Return the message; raises `DeliveryFailed` for an address that is none."""
        try:
            address = check_address(to.address)
        except InvalidInput as error:
            raise DeliveryFailed(error.message, permanent=True) from None
        config, domain = self.config, self.config.sender.rpartition("@")[2]
        message = EmailMessage(policy=SMTP)
        message["From"] = formataddr((config.sender_name, config.sender))
        message["To"] = address
        message["Subject"] = f"Re: {body.subject}" if reference else body.subject
        message["Date"] = format_datetime(datetime.fromtimestamp(now_ms() // 1000, UTC))
        digest = sha256(f"{config.name} {event_id}".encode()).hexdigest()[:40]
        message["Message-ID"] = f"<{digest}@{domain}>"
        if reference:
            thread = one_line(reference, 300)
            message["In-Reply-To"] = thread
            message["References"] = thread
        message["List-Id"] = f"<{config.name}.sayso.{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message["X-Auto-Response-Suppress"] = "All"
        message.set_content(body.text)
        message.add_alternative(body.html, subtype="html")
        return message


def explain_failure(error: Exception) -> DeliveryFailed:
    """Return why a mail was not accepted, without the server's own text, which may quote anything."""
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        error = error.recipients[0]
    if isinstance(error, aiosmtplib.SMTPResponseException):
        permanent = error.code >= 500
        match = _WAIT.search(error.message)
        wait_s = RETRY_S if match is None else float(match[1]) * (1 if match[2].lower().startswith("s") else 60)
        wait_s = min(wait_s, LONGEST_RETRY_S)
        reason = f"The mail server refused {_REFUSED.get(type(error), 'the mail')} ({error.code})."
        return DeliveryFailed(reason, permanent=permanent, retry_after_s=0.0 if permanent else wait_s)
    if isinstance(error, aiosmtplib.SMTPNotSupported) or type(error) is aiosmtplib.SMTPException:
        return DeliveryFailed("The mail server does not offer what the channel is set to use.", permanent=True)
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return DeliveryFailed("The TLS connection to the mail server failed; check its certificate.")
    return DeliveryFailed("The mail server cannot be reached.")


_REFUSED: dict[type[Exception], str] = {
    aiosmtplib.SMTPRecipientRefused: "the recipient",
    aiosmtplib.SMTPSenderRefused: "the sender",
    aiosmtplib.SMTPAuthenticationError: "the login",
}


MAILS = Allowance("mail-codes", most=3, window_s=3600)
"""Codes that are mailed to one address, so that nobody floods a stranger's mailbox."""

ENTRIES = Allowance("mail-code-entries", most=10, window_s=600)  # codes that one person may enter


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
