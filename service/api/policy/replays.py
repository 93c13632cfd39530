"""Routes of replays: all recorded calls of a range judged again by other rules."""

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, Field

from sayso.core.canonical_json import JsonObject
from sayso.errors import NotFound
from sayso.features.whatif.matrix import Past
from sayso.features.whatif.replays import Effect
from service.api.routing.dependencies import Admin, Parts, Wait
from service.api.routing.routes import SignedInRoute
from service.api.views.base import ListFiles, RequestBody, SentTimestamp, Timestamp, View
from service.http.openapi import WRITES, problems
from service.operations.rulebook.replays import ReplayRequest, RuleReplays
from service.store.rulebook.replays import Replay, ReplayStatus

router = APIRouter(prefix="/policy/replays", tags=["policy"], route_class=SignedInRoute)

ReplayId = Annotated[str, Path(min_length=1, max_length=100, examples=["rpl_019aa4a2f0d1b3c45d6e7f8091a2b3c4"])]


async def replays_of(request: Request) -> RuleReplays:
    """Return the replays of this process."""
    replays: RuleReplays = request.app.state.rule_replays
    return replays


Replays = Annotated[RuleReplays, Depends(replays_of)]


class StartReplay(RequestBody):
    """The rules to try on the recorded calls of a range."""

    text: str = Field(examples=["version: 1\ndefault: deny\nrules: []\n"], description="A whole file of rules.")
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    since: SentTimestamp = Field(alias="from", description="Only calls that were judged since then.")
    until: SentTimestamp = Field(alias="to", description="Only calls that were judged before then.")
    sum: str | None = Field(
        default=None,
        max_length=200,
        description="The argument to sum, such as `args.amount`; by default the first that the rules compare.",
    )
    base: str | None = Field(
        default=None, description="Rules to compare with, instead of what was done at the time; a whole file."
    )
    lists: ListFiles = Field(default_factory=dict)


class ListedView(View):
    """A call that would change, with secrets masked; long arguments are left out."""

    run_id: str
    suspension_id: str = Field(description="Empty for a call that became no item.")
    item_id: str
    at: Timestamp = Field(validation_alias="at_ms")
    tool: str
    agent: str
    args: JsonObject
    before: str = Field(description="The rule that decided it; empty for the default.")
    now: str = Field(description="The rule that would decide it now; empty for the default.")
    reason: str


class CellView(View):
    """Calls with the same past and the same effects."""

    past: Past = Field(
        description="`allowed` or `refused` by the rules; `approved` or `denied` by a person; or `undecided`: it was "
        "asked about, and no person decided."
    )
    was: Effect = Field(description="What the rules did, or those to compare with would have done.")
    now: Effect
    count: int
    sums: dict[str, Decimal] = Field(description="By currency; an empty one where the calls name none.")
    listed: list[ListedView] = Field(description="The newest of them, if their effect changes.")


class RuleChangeView(BaseModel):
    """How many calls move from one rule to another; null is the default."""

    before: str | None
    after: str | None
    was: Effect
    now: Effect
    count: int


class MissingView(BaseModel):
    """Calls that cannot be judged again, by what is missing."""

    fact: str
    count: int


class ReviewTimeView(BaseModel):
    """An estimate of the reviewers' time."""

    measured: int = Field(description="Decisions of the range whose look was measured.")
    typical_ms: int | None = Field(description="The median of these looks; it stands for the others.")
    saved_ms: int = Field(description="Looks before calls that would no longer be asked about.")
    added_ms: int = Field(description="Looks before calls that would be asked about, and were not.")


class ReplayView(BaseModel):
    """A replay, its progress, and what it has counted so far."""

    id: str
    by: str
    status: ReplayStatus
    error: str
    file: str
    version: str
    compares: bool = Field(description="Whether `was` is of the rules in `base`.")
    shadow: bool = Field(description="Whether `now` is what a candidate said in shadow; nothing was judged again.")
    sum: str | None
    since: Timestamp = Field(serialization_alias="from")
    until: Timestamp = Field(serialization_alias="to")
    started_at: Timestamp
    ended_at: Timestamp | None
    runs: int = Field(description="Runs that were read.")
    of_runs: int = Field(description="About how many there are.")
    calls: int = Field(description="Recorded calls in the range, also those that cannot be judged again.")
    changed: int
    cells: list[CellView]
    changes: list[RuleChangeView]
    missing: list[MissingView]
    gaps: list[str] = Field(description="What of the range is no longer recorded.")
    review_time: ReviewTimeView


class ReplayList(BaseModel):
    """The replays of the last day, the newest first."""

    replays: list[ReplayView]


@router.post("", operation_id="startReplay", status_code=202, responses=WRITES | problems(403, 429))
async def start_replay(body: StartReplay, caller: Admin, replays: Replays, response: Response) -> ReplayView:
    """Judge the recorded calls of a range again by these rules. It runs beside requests; read it for its progress."""
    asked = ReplayRequest(
        text=body.text,
        file=body.file,
        from_ms=round(body.since.timestamp() * 1000),
        to_ms=round(body.until.timestamp() * 1000),
        path=body.sum,
        base=body.base,
        lists=body.lists,
    )
    replay = await replays.start(asked, caller.name)
    response.headers["Location"] = f"/api/v1/policy/replays/{replay.id}"
    return view_replay(replay)


@router.get("", operation_id="listReplays", responses=problems(401, 403))
async def list_replays(_caller: Admin, parts: Parts) -> ReplayList:
    """List the replays of the last day."""
    replays = await parts.rules.history.replays.list_all(await parts.schedule.now_ms())
    return ReplayList(replays=[view_replay(replay) for replay in replays])


@router.get("/{replay_id}", operation_id="getReplay", responses=problems(400, 401, 403, 404))
async def read_replay(replay_id: ReplayId, _caller: Admin, replays: Replays, wait: Wait) -> ReplayView:
    """Return a replay, and with `wait` when it has ended or the time is over."""
    return view_replay(await replays.wait(replay_id, wait))


@router.delete("/{replay_id}", operation_id="deleteReplay", status_code=204, responses=problems(401, 403, 404))
async def delete_replay(replay_id: ReplayId, _caller: Admin, replays: Replays) -> None:
    """End a replay and delete what it counted."""
    if not await replays.delete(replay_id):
        raise NotFound(f"There is no replay {replay_id!r}.")


def view_replay(replay: Replay) -> ReplayView:
    """Return the view of a replay."""
    tally = replay.result
    return ReplayView(
        id=replay.id,
        by=replay.by,
        status=replay.status,
        error=replay.error,
        file=replay.file,
        version=replay.version,
        compares=replay.compares,
        shadow=replay.shadow,
        sum=replay.path,
        since=replay.from_ms,
        until=replay.to_ms,
        started_at=replay.started_at_ms,
        ended_at=replay.ended_at_ms,
        runs=replay.runs,
        of_runs=replay.of_runs,
        calls=tally.count,
        changed=tally.changed,
        cells=[CellView.model_validate(cell) for cell in tally.list_cells()],
        changes=[RuleChangeView(**change.model_dump(), count=count) for change, count in tally.list_rule_changes()],
        missing=[MissingView(fact=fact, count=count) for fact, count in tally.missing.most_common()],
        gaps=list(replay.gaps),
        review_time=ReviewTimeView(
            measured=tally.look_times.total(),
            typical_ms=tally.find_typical_look_ms(),
            saved_ms=tally.estimate_saved_ms(),
            added_ms=tally.estimate_added_ms(),
        ),
    )
