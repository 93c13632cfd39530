"""Errors as pages, with the sentences that the API sends as problems."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.problems import PROBLEM_TYPES, Problem
from sayso.core.text.language import _, mark, speaking
from sayso.errors import NotFound
from service.edge.web.languages import choose_language, load_catalogue
from service.edge.web.pages import render

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


def render_problem(request: Request, problem: Problem) -> Response:
    """Return the page of an error: the form again, a redirect to the sign-in, or a plain page."""
    again: Again | None = getattr(request.state, "again", None)
    if again is None and problem.status == 401:
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
