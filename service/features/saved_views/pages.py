"""Posts that save and delete views of the inbox."""

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from sayso.errors import InvalidInput
from service.core.wiring import Wiring
from service.edge.web.sessions import RecordedRoute, SignedIn, read_post, wiring_of
from service.features.saved_views.store import LONGEST_NAME, MOST_VIEWS, SavedView, ViewStore

router = APIRouter(route_class=RecordedRoute)


@router.post("/views")
async def save(request: Request, visitor: SignedIn) -> Response:
    """Save the search of the inbox that the form comes from, and show it again."""
    post = await read_post(request, visitor)
    search = post.get("q", "")
    try:
        view = SavedView(name=post.get("name", ""), search=search)
    except ValidationError as error:
        problem = f"A view has a search and a name of 1 to {LONGEST_NAME} characters. Change the name."
        raise InvalidInput(problem) from error
    await wiring_of(request).part(ViewStore).save(visitor.name, view)
    return _show_inbox(search)


@router.post("/views/delete")
async def delete(request: Request, visitor: SignedIn) -> Response:
    """Delete the view that the form names, and show the inbox as it was."""
    post = await read_post(request, visitor)
    await wiring_of(request).part(ViewStore).delete(visitor.name, post.get("which", ""))
    return _show_inbox(post.get("q", ""))


async def add_to_inbox(wiring: Wiring, person: str) -> dict[str, object]:
    """Return the person's views."""
    return {"views": await wiring.part(ViewStore).list_of(person), "most_views": MOST_VIEWS}


def _show_inbox(search: str) -> RedirectResponse:
    return RedirectResponse(f"/?{urlencode({'q': search})}" if search else "/", 303)
