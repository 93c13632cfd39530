"""How a person sees the pages in one browser: theme, density, single keys and language, kept in cookies."""

from dataclasses import astuple, dataclass

from fastapi import Request
from fastapi.responses import Response

from service.core.settings import Settings
from service.edge.web.languages import COOKIE as LANGUAGE
from service.edge.web.languages import list_languages
from service.edge.web.sessions import delete_cookie, set_cookie

COOKIE = "sayso_display"
THEMES = ("system", "light", "dark")
DENSITIES = ("normal", "compact")
KEYS = ("on", "off")
_KEPT_S = 365 * 86_400


@dataclass(frozen=True)
class Display:
    """The choices of one browser. An unknown choice is the first of its kind."""

    theme: str = THEMES[0]
    density: str = DENSITIES[0]
    keys: str = KEYS[0]


def make_display(theme: str = "", density: str = "", keys: str = "") -> Display:
    """Return the choices; an unknown one becomes the default."""
    return Display(_choose(theme, THEMES), _choose(density, DENSITIES), _choose(keys, KEYS))


def read_display(request: Request) -> Display:
    """Return the choices of the browser that sends the request."""
    return make_display(*request.cookies.get(COOKIE, "").split(".")[:3])


def set_display(response: Response, settings: Settings, display: Display) -> None:
    """Keep the choices in this browser for a year."""
    set_cookie(response, settings, COOKIE, ".".join(astuple(display)), _KEPT_S)


def set_language(response: Response, settings: Settings, code: str) -> None:
    """Keep the language of the pages in this browser for a year; an empty code follows the browser's preference."""
    if code in list_languages():
        set_cookie(response, settings, LANGUAGE, code, _KEPT_S)
    else:
        delete_cookie(response, settings, LANGUAGE)


def _choose(choice: str, choices: tuple[str, ...]) -> str:
    return choice if choice in choices else choices[0]
