"""Mail: threads of text and HTML with one link, over TLS and with a login, and refusals as the server means them."""

from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.transitions.deciding import decide
from sayso.errors import InvalidInput
from service.channels.base import DeliveryFailed, Recipient
from service.channels.mail import (
    LARGEST_HTML_BYTES,
    LONGEST_SUBJECT_CHARS,
    RETRY_S,
    MailChannel,
    MailConfig,
    check_address,
    render_card,
)
from tests.fakes.smtp import LOGIN, MailServer, html_of, links_of, serving_mail, text_of
from tests.sayso.samples import T0, word
from tests.service.channels.conformance import ARGS, URL, DigestConformance, card_of, record_of

ANNA = Recipient("anna", "anna@example.com")
BASIC = {"name": "mail", "kind": "mail", "host": "localhost", "sender": "desk@sayso.example"}
LONG = "\U0001f600" * 30_000


def open_channel(server: MailServer, **fields: Any) -> MailChannel:
    return MailChannel(MailConfig.model_validate({**BASIC, "port": server.port, "security": "none", **fields}))


@pytest.fixture
def provider() -> Iterator[MailServer]:
    with serving_mail() as server:
        yield server


@pytest.fixture
def channel(provider: MailServer) -> MailChannel:
    return open_channel(provider)


@pytest.fixture
def recipient() -> Recipient:
    return ANNA


class TestMailConformance(DigestConformance):
    decides = False

    def check_limits(self, body: Any) -> None:
        assert len(body.html.encode()) <= LARGEST_HTML_BYTES
        assert len(body.subject) <= LONGEST_SUBJECT_CHARS
        assert body.subject.splitlines() == [body.subject]
        EmailMessage()["Subject"] = body.subject


async def test_thread_keeps_subject_and_refers_to_the_first_mail(provider: MailServer, channel: MailChannel) -> None:
    record = record_of(ARGS["small"])
    reference = await channel.send(ANNA, card_of(record), "e1")
    await channel.remind(ANNA, reference, card_of(record), "e2")
    closed = decide(record, word(record), T0 + 5).record
    await channel.update(ANNA, reference, card_of(closed))
    first, *later = provider.mails
    assert first["Message-ID"] == reference
    assert [one["In-Reply-To"] for one in later] == [one["References"] for one in later] == [reference] * 2
    assert {one["Subject"] for one in later} == {f"Re: {first['Subject']}"}
    assert len({one["Message-ID"] for one in provider.mails}) == 3


async def test_same_event_has_the_same_message_id(provider: MailServer, channel: MailChannel) -> None:
    record = record_of(ARGS["small"])
    closed = card_of(decide(record, word(record), T0 + 5).record)
    for _ in range(2):
        reference = await channel.send(ANNA, card_of(record), "e1")
        await channel.update(ANNA, reference, closed)
    assert len(provider.mails) == 4
    assert len({one["Message-ID"] for one in provider.mails}) == 2


async def test_headers_mark_the_mail_as_automatic(provider: MailServer, channel: MailChannel) -> None:
    await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    (mail,) = provider.mails
    assert (mail["Auto-Submitted"], mail["List-Id"]) == ("auto-generated", "<mail.sayso.sayso.example>")
    assert (mail["From"], mail["To"]) == ("Sayso <desk@sayso.example>", "anna@example.com")


async def test_only_link_of_a_mail_is_the_items_page(provider: MailServer, channel: MailChannel) -> None:
    await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert links_of(provider.mails[0]) == [f"{URL}/items/sus_1/i1"]


async def test_open_item_with_another_version_gets_no_mail(provider: MailServer, channel: MailChannel) -> None:
    await channel.update(ANNA, "<a@b>", card_of(record_of(ARGS["small"])))
    assert provider.mails == []


def test_arguments_that_do_not_fit_are_left_out_as_a_whole() -> None:
    rendered = render_card(card_of(record_of({"body": LONG})))
    assert not rendered.complete
    assert LONG[:200] not in rendered.text + rendered.body.html
    for part in (rendered.text, rendered.body.html):
        assert "characters do not fit into a mail" in part


def test_markup_of_arguments_is_escaped_in_html() -> None:
    body = render_card(card_of(record_of({"text": "<script>x</script>\"'&"}))).body
    assert "<script" not in body.html
    assert "&lt;script&gt;x" in body.html
    assert "<script>x</script>" in body.text


def test_line_break_in_a_tool_name_stays_out_of_the_subject() -> None:
    record = record_of(ARGS["small"])
    tool = record.items[0].tool.model_copy(update={"name": "refund\r\nBcc: eve@example.com"})
    record = record.model_copy(update={"items": (record.items[0].model_copy(update={"tool": tool}),)})
    assert len(render_card(card_of(record)).body.subject.splitlines()) == 1


@pytest.mark.parametrize(
    "address",
    [
        "",
        "anna",
        "anna@",
        "@example.com",
        "anna@example.com\nBcc: eve@example.com",
        "anna@example.com\r\n",
        "anna@example.com\x00",
        "Anna <anna@example.com>",
        "anna@example.com, eve@example.com",
        "anna@exa mple.com",
        '"a b"@example.com',
        "änna@example.com",
        "anna@-example.com",
        f"{'a' * 64}@{'b' * 190}.com",
    ],
)
async def test_text_that_is_no_address_is_refused(provider: MailServer, channel: MailChannel, address: str) -> None:
    with pytest.raises(InvalidInput):
        check_address(address)
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(Recipient("anna", address), card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent
    assert provider.mails == []


@pytest.mark.parametrize("reference", ["<a@b>\r\nBcc: eve@example.com", "<a@b>\nX: y"])
async def test_line_break_in_a_reference_adds_no_header(
    provider: MailServer, channel: MailChannel, reference: str
) -> None:
    await channel.remind(ANNA, reference, card_of(record_of(ARGS["small"])), "e1")
    assert provider.mails[0]["Bcc"] is None
    assert provider.mails[0]["X"] is None


@pytest.mark.parametrize(
    ("stage", "answer", "permanent", "wait_s"),
    [
        ("MAIL", "421 Too busy", False, RETRY_S),
        ("RCPT", "450 4.2.0 Greylisted", False, RETRY_S),
        ("RCPT", "451 4.7.1 Come back in 5 minutes", False, 300),
        ("RCPT", "452 4.2.2 Mailbox full", False, RETRY_S),
        ("RCPT", "550 5.1.1 No such user", True, 0),
        ("RCPT", "553 5.1.3 Bad address", True, 0),
        ("MAIL", "553 5.7.1 Not your address", True, 0),
        ("DATA", "451 4.3.0 Try again in 90 s", False, 90),
        ("DATA", "554 5.7.1 Spam", True, 0),
    ],
)
async def test_refusal_is_repeated_if_it_is_temporary(
    provider: MailServer, channel: MailChannel, stage: str, answer: str, permanent: bool, wait_s: float
) -> None:
    provider.refusals = {stage: answer}
    with pytest.raises(DeliveryFailed) as failed:
        await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert (failed.value.permanent, failed.value.retry_after_s) == (permanent, wait_s)
    assert answer[:3] in failed.value.reason
    assert answer[9:] not in failed.value.reason


async def test_server_that_is_away_is_tried_again(channel: MailChannel) -> None:
    gone = MailChannel(channel.config.model_copy(update={"port": 1}))
    with pytest.raises(DeliveryFailed) as failed:
        await gone.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert (failed.value.permanent, failed.value.reason) == (False, "The mail server cannot be reached.")


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_mail_travels_over_tls_with_a_login(certificate: Path, security: str) -> None:
    login = dict(zip(("username", "password"), LOGIN, strict=True))
    with serving_mail(certificate, implicit_tls=security == "tls", login=LOGIN) as server:
        channel = open_channel(server, security=security, ca_file=certificate.parent / "authority.pem", **login)
        await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
        assert "refund" in text_of(server.mails[0])
        assert "refund" in html_of(server.mails[0])
        wrong = open_channel(
            server, security=security, ca_file=certificate.parent / "authority.pem", **{**login, "password": "no"}
        )
        with pytest.raises(DeliveryFailed) as failed:
            await wrong.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert (failed.value.permanent, failed.value.reason) == (True, "The mail server refused the login (535).")


async def test_unknown_certificate_gets_no_mail(certificate: Path, tmp_path: Path) -> None:
    from tests.receivers import make_certificate

    _, other = make_certificate(tmp_path)
    with serving_mail(certificate) as server:
        channel = open_channel(server, security="starttls", ca_file=other)
        with pytest.raises(DeliveryFailed) as failed:
            await channel.send(ANNA, card_of(record_of(ARGS["small"])), "e1")
        assert server.mails == []
    assert "certificate" in failed.value.reason


async def test_server_without_tls_gets_no_mail(provider: MailServer) -> None:
    with pytest.raises(DeliveryFailed) as failed:
        await open_channel(provider, security="starttls").send(ANNA, card_of(record_of(ARGS["small"])), "e1")
    assert failed.value.permanent
    assert provider.mails == []


async def test_code_is_mailed_with_the_page_where_it_counts(provider: MailServer, channel: MailChannel) -> None:
    await channel.send_code("anna@example.com", "anna", "K7M2P9QR", f"{URL}/me/notifications")
    (mail,) = provider.mails
    for part in (text_of(mail), html_of(mail)):
        assert "K7M2P9QR" in part
        assert f"{URL}/me/notifications" in part


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"username": "desk"}, "username and password"),
        ({"username": "desk", "password": "x", "security": "none"}, "unencrypted"),
        ({"sender": "desk\r\nBcc: eve@example.com"}, "not a mail address"),
        ({"sender_name": "Sayso\r\nBcc: eve@example.com"}, "pattern"),
        ({"security": "ssl"}, "starttls"),
        ({"servers": "x"}, "Extra"),
    ],
)
def test_faulty_fields_are_refused(fields: dict[str, str], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        MailConfig.model_validate({**BASIC, **fields})


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_port_follows_from_the_security(security: str, port: int) -> None:
    assert MailConfig.model_validate({**BASIC, "security": security}).server_port == port
