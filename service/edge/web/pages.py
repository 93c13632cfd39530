"""Pages from templates: everything is escaped, and a missing name is an error. Errors are pages, too.

What a person chose for one browser is kept in cookies. Here are also the pages to which every page links.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from functools import partial
from math import inf
from typing import Any
from urllib.parse import quote

from babel.dates import format_date
from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sayso.core.clock import iso_utc, now_ms
from sayso.core.problems import PROBLEM_TYPES, Problem
from sayso.core.rendering.money import lacking_decimals, place_currency
from sayso.core.sentences import deadlines, join_words
from sayso.core.sentences.items import DENIAL_PRESETS, DOUBT_CHOICES, describe_characters
from sayso.core.sentences.outcomes import describe_state
from sayso.core.text.invisible import UNCHECKED, write_signs
from sayso.core.text.language import _, find_numbers, mark, speaking, translate, translate_count
from sayso.core.text.numbers import write_number
from sayso.core.text.summaries import list_values, write_pretty
from sayso.core.transitions.freezing import describe_scope
from sayso.errors import NotFound, SaysoError
from service.core.auth.doors import PAGES, opens
from service.core.auth.roles import NO_RIGHTS, REVIEWER, ROLES, Rights
from service.core.operations.open_items import count_mine, show_count
from service.core.operations.queries import LONGEST_SEARCH
from service.core.settings import Settings
from service.edge.http.assets import STATIC, asset, compress
from service.edge.web.content.blocks import FIRST_ROWS, make_blocks
from service.edge.web.content.texts import write_text
from service.edge.web.content.trees import group_digits, make_tree, reads_backwards
from service.edge.web.languages import COOKIE as LANGUAGE_COOKIE
from service.edge.web.languages import DEFAULT, choose_language, list_languages, load_catalogue, write_script_words
from service.edge.web.sessions import (
    Post,
    Visitor,
    check_session,
    delete_cookie,
    describe_refusal,
    read_form,
    set_cookie,
    wiring_of,
)


@dataclass(frozen=True)
class Place:
    """A page in the navigation; `g` and its key lead there."""

    path: str
    name: str
    key: str = ""


MAIN = (
    Place("/", mark("Inbox"), "i"),
    Place("/history", mark("History"), "h"),
    Place("/me", mark("Me"), "m"),
)
OTHERS = (
    Place("/runs", mark("Runs"), "r"),
    Place("/rules", mark("Rules"), "u"),
    Place("/insights", mark("Insights"), "s"),
    Place("/operate", mark("Operate")),
    Place("/grants", mark("Grants")),
    Place("/second-looks", mark("Second looks")),
    Place("/undo", mark("Undo")),
    Place("/groups", mark("Groups")),
    Place("/who", mark("Who is asked")),
    Place("/people", mark("People")),
    Place("/keys", mark("Keys")),
    Place("/channels", mark("Channels")),
    Place("/activity", mark("Activity")),
    Place("/drills", mark("Drills")),
    Place("/webhooks", mark("Webhooks")),
    Place("/welcome", mark("First steps")),
)
FREEZE = "/operate"  # where an admin freezes, one press away on every page


def list_others(rights: Rights) -> list[Place]:
    """Return the pages that stand under Admin, or on Me for people without that menu, as they may open them."""
    return [place for place in OTHERS if opens(rights, place.path)]


def has_menu(rights: Rights) -> bool:
    """Return whether a person may open pages that a reviewer may not."""
    return any(PAGES[f"GET {place.path}"] not in ROLES[REVIEWER] for place in list_others(rights))


DISPLAY_COOKIE = "sayso_display"
THEMES = ("system", "light", "dark")
DENSITIES = ("normal", "compact")
KEYS = ("on", "off")
_CHOICE_KEPT_S = 365 * 86_400


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
    return make_display(*request.cookies.get(DISPLAY_COOKIE, "").split(".")[:3])


def set_display(response: Response, settings: Settings, display: Display) -> None:
    """Keep the choices in this browser for a year."""
    set_cookie(response, settings, DISPLAY_COOKIE, ".".join(astuple(display)), _CHOICE_KEPT_S)


def set_language(response: Response, settings: Settings, code: str) -> None:
    """Keep the language of the pages in this browser for a year; an empty code follows the browser's preference."""
    if code in list_languages():
        set_cookie(response, settings, LANGUAGE_COOKIE, code, _CHOICE_KEPT_S)
    else:
        delete_cookie(response, settings, LANGUAGE_COOKIE)


def _choose(choice: str, choices: tuple[str, ...]) -> str:
    return choice if choice in choices else choices[0]


async def show(
    request: Request,
    visitor: Visitor,
    template: str,
    *,
    title: str,
    code: int = 200,
    since_ms: float = inf,
    **context: object,
) -> Response:
    """Return a page for a signed-in person, with the store's time and the number of items that they can decide.

    A count that was read after the monotonic time `since_ms` counts.
    """
    wiring = wiring_of(request)
    context.setdefault("now_ms", await wiring.schedule.now_ms())
    pending = await count_mine(wiring, visitor.principal.reviewer("web"), since_ms)
    await asyncio.gather(wiring.freezes.known(), wiring.roles.list_emergencies())
    fill = partial(render, request, template, title=title, code=code, visitor=visitor, pending=pending, **context)
    return await asyncio.to_thread(fill)  # 250 kB of arguments take most of a second


def render(
    request: Request,
    template: str,
    *,
    title: str,
    code: int = 200,
    visitor: Visitor | None = None,
    pending: int | None = None,
    **context: object,
) -> Response:
    """Return the page; `pending` is None if it was not counted."""
    language, rights = choose_language(request), visitor.rights if visitor is not None else NO_RIGHTS
    frame: dict[str, object] = {
        "search": "",
        "sentence": "",
        "faults": [],
        "done": "",
        "language": language,
        "script_words": "" if language == DEFAULT else write_script_words(language),
        "title": write_signs(title),
        "visitor": visitor,
        "pending": pending,
        "path": request.url.path,
        "may": rights.has,
        "screen": read_display(request),
        "release": request.app.version,
        "weak_durability": getattr(request.app.state, "weak_durability", None),
        "now_ms": now_ms(),
        "run_id": None,
        "run_seen": "",
        "frozen": wiring_of(request).freezes.last_known() if visitor is not None else [],
        "emergencies": wiring_of(request).roles.list_known_emergencies() if visitor is not None else [],
    }
    frame["main_places"] = [place for place in MAIN if opens(rights, place.path)]
    frame["others"], frame["has_menu"] = list_others(rights), has_menu(rights)
    with speaking(load_catalogue(language)):
        html = _ENVIRONMENT.get_template(template).render({**frame, **context})
    # Browsers send a form's origin only under this policy; check_origin needs it.
    return compress(request, HTMLResponse(html, code, headers={"Referrer-Policy": "same-origin"}))


def draw(template: str, **context: object) -> str:
    """Return a template that is no page, in English."""
    with speaking(load_catalogue(DEFAULT)):
        return _ENVIRONMENT.get_template(template).render(context)


def _part_fraction(digits: str) -> tuple[str, str, str]:
    """Return what stands before the point of a number, the point, and its decimals; no point in any other text."""
    whole, point, rest = digits.partition(".")
    return (whole, point, rest) if rest.isdecimal() else (digits, "", "")


def _make_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(STATIC.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_callables(translate, translate_count, newstyle=True)  # type: ignore[attr-defined]
    environment.policies["ext.i18n.trimmed"] = True
    environment.filters |= {
        "odd": describe_characters,
        "signs": write_signs,
        "ago": deadlines.describe_ago,
        "brief": deadlines.describe_brief,
        "when": deadlines.describe_when,
        "clock": deadlines.describe_clock,
        "due": deadlines.describe_due,
        "hour": deadlines.describe_hour,
        "day": partial(format_date, format="EEE d MMM"),
        "local": deadlines.describe_local,
        "iso": iso_utc,
        "span": deadlines.describe_span,
        "state": describe_state,
        "pairs": list_values,
        "pretty": write_pretty,
        "tree": make_tree,
        "blocks": make_blocks,
        "grouped": group_digits,
        "decimals": lacking_decimals,
        "partition": _part_fraction,
        "written": write_number,
        "priced": place_currency,
        "rtl": reads_backwards,
        "listed": join_words,
        "scope": describe_scope,
        "count": show_count,
    }
    environment.globals |= {"asset": asset, "UNCHECKED": UNCHECKED, "longest_search": LONGEST_SEARCH}
    environment.globals |= {"FIRST_ROWS": FIRST_ROWS, "numbers": find_numbers, "zone_name": deadlines.name_zone}
    environment.globals |= {"freeze": FREEZE, "write_text": write_text}
    environment.globals |= {"doubt_choices": DOUBT_CHOICES, "denial_presets": DENIAL_PRESETS}
    return environment


_ENVIRONMENT = _make_environment()


_PAGE_HEADERS = frozenset({"Retry-After", "Allow"})

_NOT_FOUND = PROBLEM_TYPES[NotFound].slug
_NO_PAGE = mark("There is no page at this address.")
_UNKNOWN = (
    ("/items/", mark("This item does not exist, or is not yours to see.")),
    ("/runs/", mark("This run does not exist, or is not yours to see.")),
)

Again = Callable[[Problem], Response]  # renders the page of a rejected form, with the problem and the input


def show_again(request: Request, again: Again) -> None:
    """Show the next error of this request as this page."""
    request.state.again = again


def show_page_again(request: Request, template: str, **context: Any) -> None:
    """Show the next error of this request as this page, under the error's status."""
    show_again(request, lambda problem: render(request, template, code=problem.status, **context))


@asynccontextmanager
async def receive(
    request: Request,
    visitor: Visitor,
    template: str,
    gather: Callable[[Post], Awaitable[Mapping[str, Any]]],
) -> AsyncIterator[Post]:
    """Yield a form of this session; if it is refused, show its page again with the reason and the faults."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        yield post
    except SaysoError as error:
        errors = error.facts.get("errors")
        faults = [str(fault["message"]) for fault in errors] if isinstance(errors, list) else []
        context = {**await gather(post), "sentence": describe_refusal(error), "faults": faults}
        show_page_again(request, template, visitor=visitor, **context)
        raise


def render_problem(request: Request, problem: Problem) -> Response:
    """Return the page of an error: the form again, a redirect to the sign-in, or a plain page."""
    again: Again | None = getattr(request.state, "again", None)
    is_stream = "text/event-stream" in request.headers.get("accept", "")  # it cannot show a sign-in page
    if again is None and problem.status == 401 and not is_stream:
        path = request.url.path + (f"?{request.url.query}" if request.url.query and request.method == "GET" else "")
        return RedirectResponse("/sign-in" if path == "/" else f"/sign-in?next={quote(path, safe='/')}", 303)
    response = again(problem) if again is not None else _render_plain(request, problem)
    for name in _PAGE_HEADERS.intersection(problem.headers):
        response.headers[name] = problem.headers[name]
    return response


def _render_plain(request: Request, problem: Problem) -> Response:
    visitor = getattr(request.state, "visitor", None)
    unknown = next((text for path, text in _UNKNOWN if request.url.path.startswith(path)), "")
    title, detail = problem.title, unknown if unknown and problem.slug == _NOT_FOUND else problem.detail
    if problem.status == 404 and "endpoint" not in request.scope:  # no route has this path
        title, detail = mark("Not found"), _NO_PAGE
    with speaking(load_catalogue(choose_language(request))):  # an error may come before the language is known
        title, detail = _(title), _(detail)
    page = "pages/problem.html"
    return render(request, page, title=title, code=problem.status, visitor=visitor, problem=problem, detail=detail)
