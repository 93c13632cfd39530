"""The languages of the pages: English, and the catalogues in `templates/languages`.

A person's choice in a cookie wins over what the browser prefers (RFC 9110, section 12.5.4). Scripts have their messages
from the page; see `templates/static/words.js`. They also say in a cookie in which time zone the browser is.
"""

import json
from datetime import UTC, tzinfo
from functools import cache
from gettext import NullTranslations
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

from babel import Locale, negotiate_locale
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from fastapi import Request, Response

from sayso.core.calendar import check_time_zone
from sayso.core.sentences.deadlines import use_zone
from sayso.core.text.language import ENGLISH, Catalogue, Numbers, speak
from service.core.settings import CHECKOUT, Settings
from service.edge.http.assets import STATIC

CATALOGUES = CHECKOUT / "templates" / "languages"
DEFAULT = "en"
COOKIE = "sayso_language"
ZONE_COOKIE = "sayso_zone"
_ZONE_KEPT_S = 365 * 86_400

Message = str | tuple[str, str]  # a message of a script, or its forms for one and for many
_KEYWORDS = {"_": None, "ngettext": (1, 2)}


@cache
def list_languages() -> dict[str, str]:
    """Return each language's code and its own name."""
    codes = [DEFAULT, *sorted(path.stem for path in CATALOGUES.glob("*.po"))]
    return {code: str(Locale(code).get_display_name(code)).capitalize() for code in codes}


def choose_language(request: Request) -> str:
    """Return the code of the language that the visitor chose or whose browser prefers."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in list_languages():
        return chosen
    preferred: list[tuple[float, str]] = []
    for part in request.headers.get("accept-language", "")[:200].split(","):
        code, _, weight = part.partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if quality > 0:
            preferred.append((-quality, code.strip().replace("-", "_")))
    codes = [code for _, code in sorted(preferred, key=lambda entry: entry[0])]
    return negotiate_locale(codes, [*list_languages()]) or DEFAULT


async def speak_language(request: Request) -> None:
    """Use the visitor's language and time zone for the rest of the request."""
    speak(load_catalogue(choose_language(request)))
    use_zone(choose_zone(request))


def choose_zone(request: Request) -> tzinfo:
    """Return the time zone of the visitor's browser, or UTC."""
    try:
        return ZoneInfo(check_time_zone(request.cookies.get(ZONE_COOKIE, "UTC")))
    except ValueError:
        return UTC


def set_zone(response: Response, settings: Settings, name: str) -> None:
    """Keep a person's time zone for pages without scripts; with scripts, that of the browser replaces it."""
    response.set_cookie(ZONE_COOKIE, name, _ZONE_KEPT_S, path="/", secure=settings.secure_cookies, samesite="lax")


@cache
def load_catalogue(code: str) -> NullTranslations:
    """Return the catalogue of a language in `list_languages`."""
    return ENGLISH if code == DEFAULT else compile_catalogue(CATALOGUES / f"{code}.po")


def compile_catalogue(path: Path) -> NullTranslations:
    """Return the messages of a catalogue's file; raises `PoFileError` for a broken one."""
    compiled = BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, locale=path.stem, abort_invalid=True))
    compiled.seek(0)
    catalogue = Catalogue(compiled)
    catalogue.numbers = find_numbers(Locale.parse(path.stem))
    return catalogue


def find_numbers(locale: Locale) -> Numbers:
    """Return how a language writes numbers, from Unicode's data (CLDR)."""
    symbols = locale.number_symbols["latn"]
    pattern = str(locale.currency_formats["standard"].pattern)
    return Numbers(symbols["decimal"], symbols["group"], pattern.startswith("¤"))


@cache
def list_script_messages() -> tuple[Message, ...]:
    """Return every message of the scripts."""
    messages: dict[Message, None] = {}
    for path in sorted(STATIC.glob("*.js")):
        for _line, message, *_rest in extract_from_file("javascript", path, _KEYWORDS, options={"jsx": False}):
            messages[message if isinstance(message, str) else (message[0], message[1])] = None
    return tuple(messages)


@cache
def write_script_words(code: str) -> str:
    """Return the messages of the scripts with their translations as JSON; those with two forms by the first of them."""
    catalogue = load_catalogue(code)
    words: dict[str, str | list[str]] = {}
    for message in list_script_messages():
        if isinstance(message, str):
            words[message] = catalogue.gettext(message)
        else:
            words[message[0]] = [catalogue.ngettext(*message, count) for count in (1, 2)]
    return json.dumps(words, ensure_ascii=False, separators=(",", ":"))
