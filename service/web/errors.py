"""Show what went wrong as a page: the same sentences that the API sends as problems."""

from collections.abc import Callable
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from sayso.problems import Problem
from service.web.pages import render

_TOLD = frozenset({"Retry-After", "Allow"})

Again = Callable[[Problem], Response]
"""How a page with a form shows itself again, with the problem and all that was typed."""


def show_again(request: Request, again: Again) -> None:
    """Let the error that is about to be raised show as this page, under its own status."""
    request.state.again = again


def render_problem(request: Request, problem: Problem) -> Response:
    """Return the page for an error outside of the API: the form again, the way to sign in, or a plain page."""
    again: Again | None = getattr(request.state, "again", None)
    if again is None and problem.status == 401:
        return RedirectResponse(_sign_in_from(request), 303)
    response = again(problem) if again is not None else _show(request, problem)
    for name in _TOLD.intersection(problem.headers):
        response.headers[name] = problem.headers[name]
    return response


def _show(request: Request, problem: Problem) -> Response:
    visitor = getattr(request.state, "visitor", None)
    return render(
        request, "pages/problem.html", title=problem.title, code=problem.status, visitor=visitor, problem=problem
    )


def _sign_in_from(request: Request) -> str:
    place = request.url.path + (f"?{request.url.query}" if request.url.query and request.method == "GET" else "")
    return "/sign-in" if place == "/" else f"/sign-in?next={quote(place, safe='/')}"
