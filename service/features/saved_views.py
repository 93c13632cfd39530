"""Saved views: searches of the inbox that people keep under a name; their store, routes and page forms."""

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sayso.core.canonical_json import digest_json
from sayso.core.records.base import Stored
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.wire.people import SavedViewList, SavedViewView
from service.core.operations.queries import LONGEST_SEARCH
from service.core.store.tenants import TenantStore
from service.core.wiring import Wiring
from service.edge.api.dependencies import Parts
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.edge.web.sessions import RecordedRoute, SignedIn, read_post, wiring_of
from service.features.people.api import Member

MOST_VIEWS = 20
LONGEST_NAME = 60


class SavedView(BaseModel):
    """A search of the inbox that a person saved under a name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        min_length=1, max_length=LONGEST_NAME, examples=["Large refunds"]
    )
    search: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        min_length=1, max_length=LONGEST_SEARCH, examples=["is:mine tool:refund amount>1000"]
    )

    @property
    def id(self) -> str:
        return f"view_{digest_json(self.name)[:32]}"


class _Views(Stored):
    views: tuple[SavedView, ...] = ()


class ViewStore:
    """The saved views of one tenant's people."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def list_of(self, person: str) -> tuple[SavedView, ...]:
        raw = await self._redis.hget(self._keys.views, person)
        read = self._readings.read_other(_Views, raw, f"views of {person}") if raw else None
        return read.views if read is not None else ()

    async def save(self, person: str, view: SavedView) -> SavedView:
        """Save a view in place of one with the same name; raises `Conflict` for more than `MOST_VIEWS`."""

        def change(views: tuple[SavedView, ...]) -> tuple[SavedView, ...]:
            others = tuple(other for other in views if other.name != view.name)
            if len(others) >= MOST_VIEWS:
                raise Conflict(f"{MOST_VIEWS} views are saved, the most a person can have. Delete one first.")
            return (*others, view)

        await self._change(person, change)
        return view

    async def delete(self, person: str, view_id: str) -> None:
        """Delete a view; raises `NotFound` for an unknown id."""

        def change(views: tuple[SavedView, ...]) -> tuple[SavedView, ...]:
            others = tuple(view for view in views if view.id != view_id)
            if len(others) == len(views):
                raise NotFound(f"You have no saved view {view_id[:64]!r}. List your views to see their ids.")
            return others

        await self._change(person, change)

    async def _change(self, person: str, change: Callable[[tuple[SavedView, ...]], tuple[SavedView, ...]]) -> None:
        key = self._keys.views

        async def write(pipe: Any) -> None:
            raw = await pipe.hget(key, person)
            known = self._readings.require_other(_Views, raw, f"views of {person}").views if raw else ()
            changed = tuple(sorted(change(known), key=lambda view: view.name.casefold()))
            pipe.multi()
            pipe.hset(key, person, _Views(views=changed).model_dump_json())

        await self._redis.transaction(write, key)


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
