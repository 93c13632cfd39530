"""Routes of saved views: people save searches of the inbox under a name."""

from typing import Annotated

from fastapi import APIRouter, Path

from sayso.wire.people import SavedViewList, SavedViewView
from service.edge.api.dependencies import Parts
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.people.api import Member
from service.features.saved_views.store import SavedView, ViewStore

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
