"""Routes of checkpoints: list them, and compare a sink's file with the store."""

from typing import Annotated

from fastapi import APIRouter, Query

from sayso.core.clock import now_ms
from sayso.errors import InvalidInput
from sayso.features.evidence.checkpoints import find_public_key, read_checkpoint
from sayso.wire.evidence import CheckpointPage, CheckpointView, EvidenceView, HeadsChecked, HeadsToCheck, SinkView
from sayso.wire.models import SentTimestamp
from service.edge.api.dependencies import Limit, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.evidence.checking import check_heads
from service.features.evidence.exporting import make_file
from service.features.evidence.keeping import find_keys
from service.features.evidence.sinks import Sink
from service.features.evidence.store import CheckpointStore

exports = APIRouter(prefix="/evidence", tags=["evidence"], route_class=SignedInRoute)
router = APIRouter(prefix="/checkpoints", tags=["evidence"], route_class=SignedInRoute)


@router.get("", operation_id="listCheckpoints", responses=problems(401, 403))
async def list_checkpoints(
    _caller: Person,
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
        checkpoints=[CheckpointView.model_validate(checkpoint) for checkpoint in made],
        last=(await store.read_last()).number,
        sinks=[SinkView(name=sink.name, number=delivered.get(sink.id, 0)) for sink in sinks],
        keys={key.id: find_public_key(key) for key in find_keys(parts.settings.key_file)},
    )


@router.post("/check", operation_id="checkCheckpoints", responses=problems(400, 401, 403, 415))
async def check_checkpoints(_caller: Person, parts: Parts, body: HeadsToCheck) -> HeadsChecked:
    """Compare heads that a sink has with the chains in the store. `sayso checkpoints verify` sends them."""
    return await check_heads(parts, body.heads)


@exports.get("", operation_id="exportEvidence", responses=problems(400, 401, 403, 404))
async def export_evidence(
    caller: Person,
    parts: Parts,
    run: Annotated[str, Query(max_length=60, description="A run's id; empty with `from`.")] = "",
    begin: Annotated[SentTimestamp | None, Query(alias="from", description="Runs that began from this time.")] = None,
    end: Annotated[SentTimestamp | None, Query(alias="to", description="Runs that began before this time.")] = None,
) -> EvidenceView:
    """Return what was asked, shown and decided in runs as one signed file, with the proofs that it is unaltered."""
    if bool(run) is (begin is not None):
        raise InvalidInput("Evidence is of one run, or of a time. Give either run or from.", parameter="run")
    if begin is None:
        return EvidenceView(text=await make_file(parts, [run], caller.name))
    end_ms = now_ms() if end is None else round(end.timestamp() * 1000)
    run_ids = await parts.part(CheckpointStore).list_runs(round(begin.timestamp() * 1000), end_ms)
    return EvidenceView(text=await make_file(parts, run_ids, caller.name))
