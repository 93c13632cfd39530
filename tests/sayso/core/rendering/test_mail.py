"""Mails show every recipient first, and flag those that others do not see."""

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.renderers import render_call

MAIL: JsonObject = {"to": ["ann@example.com", "ben@example.com"], "subject": "Offer", "body": "Dear Ann,\n\nbye\n"}


def test_mail_shows_recipients_first_and_the_body_as_prose() -> None:
    view = render_call("send_email", {**MAIL, "attachments": [{"name": "a.pdf"}]})
    assert view.headline == "Mail to ann@example.com and 1 more: “Offer”"
    assert [row.path for row in view.notable] == ["to[0]", "to[1]"]
    assert [(row.path, row.style) for row in view.body] == [
        ("subject", "value"),
        ("body", "prose"),
        ("attachments[0].name", "value"),
    ]
    assert view.body[1].text == "Dear Ann,\n\nbye\n"
    assert not view.flags


def test_more_than_six_recipients_stay_complete() -> None:
    view = render_call("send_email", {**MAIL, "to": [f"p{place}@example.com" for place in range(9)]})
    assert len(view.notable) == 6
    assert [row.path for row in view.rest] == ["to[6]", "to[7]", "to[8]"]


@pytest.mark.parametrize(
    ("changed", "words", "severe"),
    [
        ({"bcc": "eve@example.com"}, "Bcc: eve@example.com gets a copy", False),
        ({"bcc": ["eve@example.com", "ida@example.com"]}, "Bcc: eve@example.com and 1 more gets a copy", False),
        ({"subject": "Hi\nBcc: eve@example.com"}, "A line break in subject", True),
        ({"to": '"boss@example.com" <eve@example.org>'}, "the mail goes to eve@example.org", True),
    ],
)
def test_mail_flags_hidden_recipients(changed: JsonObject, words: str, severe: bool) -> None:
    view = render_call("send_email", {**MAIL, **changed})
    assert any(words in flag.sentence for flag in view.flags)
    assert view.severe is severe


def test_message_without_an_address_is_no_mail() -> None:
    assert render_call("chat", {"to": "Ann", "message": "hi"}).renderer == "tree"
