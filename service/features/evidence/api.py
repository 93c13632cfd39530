"""Routes of checkpoints: list them, and compare a sink's file with the store."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from sayso.features.evidence.checkpoints import find_public_key, read_checkpoint
from sayso.wire.evidence import CheckpointPage, CheckpointView, HeadsChecked, HeadsToCheck, SinkView
from service.core.auth.credentials import Principal
from service.core.auth.reviewers import require_log_reader
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.evidence.checking import check_heads
from service.features.evidence.keeping import find_keys
from service.features.evidence.sinks import Sink
from service.features.evidence.store import CheckpointStore

router = APIRouter(prefix="/checkpoints", tags=["evidence"], route_class=SignedInRoute)


async def reader_of(person: Person) -> Principal:
    """Return the calling admin or auditor; raises `NotAllowed` for others."""
    require_log_reader(person.roles)
    return person


Reader = Annotated[Principal, Depends(reader_of)]


@router.get("", operation_id="listCheckpoints", responses=problems(401, 403))
async def list_checkpoints(
    _caller: Reader,
    parts: Parts,
    after: Annotated[int, Query(ge=0, le=10**9, description="Only checkpoints with a higher number.")] = 0,
    limit: Limit = 50,
) -> CheckpointPage:
    """List signed checkpoints of all audit trails, the activity log and the rules, the oldest first."""
    store = parts.part(CheckpointStore)
    made = [read_checkpoint(line) for line in await store.list_lines(after, limit)]
    delivered = await store.read_delivered()
    sinks = map(Sink, parts.settings.checkpoints)
    return CheckpointPage(
        checkpoints=[CheckpointView.model_validate(one) for one in made],
        last=(await store.read_last()).number,
        sinks=[SinkView(name=sink.name, number=delivered.get(sink.id, 0)) for sink in sinks],
        keys={key.id: find_public_key(key) for key in find_keys(parts.settings.key_file)},
    )


@router.post("/check", operation_id="checkCheckpoints", responses=problems(400, 401, 403, 415))
async def check_checkpoints(_caller: Reader, parts: Parts, body: HeadsToCheck) -> HeadsChecked:
    """Compare heads that a sink has with the chains in the store. `sayso checkpoints verify` sends them."""
    return await check_heads(parts, body.heads)
