"""Routes of reviewers' comments on items. Agents cannot read them."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.api.routing.dependencies import IdempotencyKey, ItemId, Parts, Person, RunId, SuspensionId
from service.api.routing.lookups import find_run
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, Timestamp, View
from service.http.openapi import READS, WRITES, problems
from service.operations.discussing.comments import add_comment
from service.store.runs.comments import LONGEST_COMMENT, Comments

router = APIRouter(tags=["comments"], route_class=SignedInRoute)


class CommentRequest(RequestBody):
    """A comment for the other reviewers."""

    text: str = Field(min_length=1, max_length=LONGEST_COMMENT, examples=["The customer called; the order is real."])


class CommentView(View):
    """A comment on an item."""

    id: str
    suspension_id: str
    item_id: str
    author: str = Field(description="The reviewer who wrote it.")
    text: str
    at: Timestamp = Field(validation_alias="at_ms")


class CommentPage(BaseModel):
    """Comments in order, the earliest first."""

    comments: list[CommentView]


@router.post("/suspensions/{suspension_id}/items/{item_id}/comments", operation_id="addComment", responses=WRITES)
async def comment_on_item(
    suspension_id: SuspensionId,
    item_id: ItemId,
    body: CommentRequest,
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
) -> CommentPage:
    """Comment on an item, also after its decision. The answer has all comments on it; the agent reads none."""
    saved = await add_comment(parts, suspension_id, item_id, body.text, caller.name, key)
    run_id = (await parts.desk.suspensions.read(suspension_id)).record.run.id
    comments = await parts.part(Comments).list_all(run_id)
    place = (saved.suspension_id, saved.item_id)
    own = [comment for comment in comments if (comment.suspension_id, comment.item_id) == place]
    return CommentPage(comments=[CommentView.model_validate(comment) for comment in own])


@router.get("/runs/{run_id}/comments", operation_id="listComments", responses=READS | problems(403))
async def list_comments(run_id: RunId, caller: Person, parts: Parts) -> CommentPage:
    """Return the comments on all items of a run. They are kept as long as its trail, also after the run's deletion."""
    if not await parts.retention.keeps_trail(run_id):
        await find_run(parts, caller, run_id)
    comments = await parts.part(Comments).list_all(run_id)
    return CommentPage(comments=[CommentView.model_validate(comment) for comment in comments])
