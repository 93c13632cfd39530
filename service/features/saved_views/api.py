"""Routes and page forms of saved views: people save searches of the inbox under a name."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from sayso.errors import InvalidInput
from sayso.wire.people import SavedViewList, SavedViewView
from service.core.wiring import Wiring
from service.edge.api.dependencies import Parts
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.edge.web.sessions import RecordedRoute, SignedIn, read_post, wiring_of
from service.features.people.api import Member
from service.features.saved_views.store import LONGEST_NAME, MOST_VIEWS, SavedView, ViewStore

account = APIRouter(prefix="/account/views", tags=["views"], route_class=SignedInRoute)

ViewId = Annotated[str, Path(min_length=1, max_length=100, examples=["view_3f1c0a5b7d9e2f4a6b8c0d1e2f3a4b5c"])]


@account.get("", operation_id="listOwnViews", responses=problems(401, 403))
async def list_own_views(caller: Member, parts: Parts) -> SavedViewList:
    """List your saved views."""
    views = await parts.part(ViewStore).list_of(caller.name)
    return SavedViewList(views=[SavedViewView.model_validate(view) for view in views])


@account.post("", status_code=201, operation_id="saveOwnView", responses=WRITES)
async def save_own_view(body: SavedView, caller: Member, parts: Parts) -> SavedViewView:
    """Save a search of the inbox. It replaces your view with the same name."""
    return SavedViewView.model_validate(await parts.part(ViewStore).save(caller.name, body))


@account.delete("/{view_id}", status_code=204, operation_id="deleteOwnView", responses=problems(401, 403, 404))
async def delete_own_view(view_id: ViewId, caller: Member, parts: Parts) -> None:
    """Delete one of your saved views."""
    await parts.part(ViewStore).delete(caller.name, view_id)


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
