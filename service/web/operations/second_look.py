"""The page of second looks: calls drawn by chance after they were allowed or decided, and the form to judge each."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.core.transitions.second_look import Opinion
from sayso.errors import InvalidInput, SaysoError
from service.operations.insights.second_look import list_second_look
from service.store.insights.recents import Recents
from service.web.errors import show_page_again
from service.web.form_posts import RecordedRoute, check_session, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of

_PAGE = "pages/second-looks.html"
_OPINIONS = {"agree": True, "disagree": False}
VERDICTS = {
    "allowed": mark("allowed by the rules"),
    "approved": mark("approved"),
    "answered": mark("answered"),
    "denied": mark("denied"),
}

router = APIRouter(route_class=RecordedRoute)


@router.get("/second-looks")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the calls that wait for a second look."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor))


@router.post("/second-looks")
async def take(request: Request, visitor: SignedIn) -> Response:
    """Take the second look of the form."""
    post = await read_form(request)
    try:
        check_session(post, visitor)
        agrees, seq = _OPINIONS.get(post.get("opinion", "")), post.get("seq", "")
        if agrees is None or not (seq.isascii() and seq.isdigit()):
            raise InvalidInput(_("Choose one of the buttons on this page."))
        wiring = wiring_of(request)
        opinion, by = Opinion(agrees, post.get("reason", "")), visitor.principal.reviewer("web")
        await wiring.desk.take_second_look(
            post.get("run", ""), int(seq), opinion, by, wiring.part(Recents).second_look.waits
        )
    except SaysoError as error:
        context = {**await _gather(request, visitor), "sentence": describe_refusal(error)}
        show_page_again(request, _PAGE, visitor=visitor, **context)
        raise
    return RedirectResponse("/second-looks", 303)


async def _gather(request: Request, visitor: Visitor) -> dict[str, Any]:
    wiring = wiring_of(request)
    calls = await list_second_look(wiring, visitor.principal.reviewer("web"))
    return {
        "title": _("Second looks"),
        "sentence": "",
        "now_ms": await wiring.schedule.now_ms(),
        "mine": [call for call in calls if not call.refusal],
        "elsewhere": [call for call in calls if call.refusal],
        "verdicts": VERDICTS,
    }
