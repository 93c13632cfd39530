"""A mail server as a small program: strict about messages, with STARTTLS and a login, refusing on request."""

import email
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.service.channels.conformance import Shown

LOGIN = ("desk", "open sesame")
_ONCE = ("From", "To", "Subject", "Date", "Message-ID")


@dataclass
class MailServer:
    """The mails that arrived, and how the next ones are refused: at `MAIL`, `RCPT` or `DATA`."""

    port: int
    mails: list[EmailMessage] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self.refusals.get("MAIL", "250 OK")

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.gone:
            return "550 5.1.1 No such user"
        envelope.rcpt_tos.append(address)
        return self.refusals.get("RCPT", "250 OK")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        raw = envelope.original_content or b""
        message: Any = email.message_from_bytes(raw, policy=default)
        faults = [name for name in _ONCE if len(message.get_all(name, [])) != 1]
        if faults or re.search(rb"(?<!\r)\n|\r(?!\n)", raw) or max(map(len, raw.split(b"\r\n"))) > 998:
            return "554 5.6.0 Malformed message"
        if message["To"].addresses[0].addr_spec not in envelope.rcpt_tos or message.defects:
            return "554 5.6.0 Malformed message"
        if refusal := self.refusals.get("DATA"):
            return refusal
        self.mails.append(message)
        return "250 OK"

    def to(self, address: str) -> list[EmailMessage]:
        """Return the mails to an address, in order."""
        return [one for one in self.mails if one["To"] == address]

    def cards(self, address: str) -> list[Shown]:
        """Return the mails as their reader sees them."""
        return [
            Shown(text_of(one) + html_of(one), bool(re.search("<(form|button|input)", html_of(one))))
            for one in self.to(address)
        ]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        """Refuse as a mail server does: for good, for a while, or not at all."""
        refusals = {
            0: {},
            503: {"MAIL": "421 4.3.0 Service not available"},
            429: {"RCPT": f"450 4.7.1 Greylisted, try again in {retry_after_s} seconds"},
        }
        self.refusals = refusals[status]

    def remove(self, address: str) -> None:
        self.gone.add(address)


def text_of(mail: EmailMessage) -> str:
    """Return the text part."""
    return _part(mail, "plain")


def html_of(mail: EmailMessage) -> str:
    """Return the HTML part."""
    return _part(mail, "html")


def links_of(mail: EmailMessage) -> list[str]:
    """Return every address that a scanner finds in a mail."""
    return sorted({link.rstrip(".") for link in re.findall(r"https?://[^\s\"'<>]+", text_of(mail) + html_of(mail))})


@contextmanager
def serving_mail(
    certificate: Path | None = None, *, implicit_tls: bool = False, login: tuple[str, str] | None = None
) -> Iterator[MailServer]:
    """Serve mail in a thread; with a certificate only over TLS, and with a login only after it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    trust = None
    if certificate is not None:
        trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        trust.load_cert_chain(certificate)
    server = MailServer(port)

    def authenticate(smtp: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword) -> Any:
        known = login is not None and (data.login.decode(), data.password.decode()) == login
        return AuthResult(success=known, handled=False)

    controller = Controller(
        server,
        hostname="127.0.0.1",
        port=port,
        server_hostname="localhost",
        ssl_context=trust if implicit_tls else None,
        tls_context=None if implicit_tls else trust,
        require_starttls=trust is not None and not implicit_tls,
        auth_required=login is not None,
        auth_require_tls=not implicit_tls,
        authenticator=authenticate,
    )
    controller.start()
    try:
        yield server
    finally:
        controller.stop()


def _part(mail: EmailMessage, subtype: str) -> str:
    part = mail.get_body((subtype,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""
