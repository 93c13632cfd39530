"""The language of the pages: the visitor's choice, then what the browser prefers, then English."""

from pathlib import Path

import pytest
from babel.messages.pofile import PoFileError

from service.core.settings import Settings
from service.edge.web.languages import COOKIE, compile_catalogue, list_languages
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, decide, place_of
from tests.service.edge.web.test_freezes import make_admin

HEADINGS = {
    "/": "Posteingang",
    "/history": "Verlauf",
    "/runs": "Läufe",
    "/insights": "Einblicke",
    "/rules": "Regeln",
    "/rules/-/try": "Aufruf ausprobieren",
    "/rules/-/draft": "Entwurf ausprobieren",
    "/operate": "Betrieb",
    "/groups": "Gruppen",
    "/who": "Wer gefragt wird",
    "/people": "Personen",
    "/keys": "Schlüssel",
    "/channels": "Kanäle",
    "/webhooks": "Webhooks",
    "/welcome": "Erste Schritte",
    "/me": "Ich",
    "/me/notifications": "Benachrichtigungen",
}


@pytest.mark.parametrize(
    ("header", "language", "heading"),
    [
        ("", "en", "Sign in"),
        ("de", "de", "Anmelden"),
        ("de-CH, en;q=0.5", "de", "Anmelden"),
        ("en, de;q=0.9", "en", "Sign in"),
        ("fr, de;q=0.2", "de", "Anmelden"),
        ("fr", "en", "Sign in"),
        ("de;q=0", "en", "Sign in"),
        ("de;q=rubbish, ;;;, " + "x" * 10_000, "en", "Sign in"),
    ],
)
async def test_page_is_in_the_preferred_language(settings: Settings, header: str, language: str, heading: str) -> None:
    async with visit(settings, None) as guest:
        page = (await guest.client.get("/sign-in", headers={"accept-language": header})).text
    assert f'<html lang="{language}">' in page
    assert f"<h1>{heading}</h1>" in page


@pytest.mark.parametrize(("chosen", "language"), [("de", "de"), ("en", "en"), ("xx", "de"), ("../../etc/passwd", "de")])
async def test_choice_wins_over_the_browser(settings: Settings, chosen: str, language: str) -> None:
    headers = {"accept-language": "de", "cookie": f"{COOKIE}={chosen}"}
    async with visit(settings, None) as guest:
        assert f'<html lang="{language}">' in (await guest.client.get("/sign-in", headers=headers)).text


async def test_pages_speak_the_chosen_language(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await anna.send("/welcome/skip")
        await asked(anna.wiring)
        anna.client.cookies.set(COOKIE, "de")
        for path, heading in HEADINGS.items():
            page = await anna.read(path)
            assert '<html lang="de">' in page
            assert f"<h1>{heading}</h1>" in page
            assert f"{heading} · Sayso</title>" in page


async def test_item_page_speaks_the_chosen_language(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        anna.client.cookies.set(COOKIE, "de")
        page = await anna.read(place_of(record))
        for words in (
            "250,00 EUR genehmigen</button>",
            "Wartet auf eine Entscheidung über refund_payment",
            ">in 4 min",
        ):
            assert words in page
        await decide(anna.wiring, record, "approve")
        assert "ben hat dies genehmigt" in await anna.read(place_of(record))


async def test_values_in_translated_sentences_are_escaped(settings: Settings) -> None:
    async with visit(settings) as anna:
        anna.client.cookies.set(COOKIE, "de")
        page = await anna.read("/?q=%3Cb%3Enone%25s")
        assert "Nichts passt zu <em>&lt;b&gt;none%s</em>." in page


def test_languages_have_their_own_names() -> None:
    assert list_languages() == {"en": "English", "de": "Deutsch"}


def test_broken_catalogue_is_refused(tmp_path: Path) -> None:
    (tmp_path / "de.po").write_text("no catalogue\n", encoding="utf-8")
    with pytest.raises(PoFileError):
        compile_catalogue(tmp_path / "de.po")
