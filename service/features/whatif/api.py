"""Routes of replays, of candidates in shadow, and of the trial of one call, which says why each rule decides or not."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import ConfigDict, Field, model_validator

from sayso.errors import InvalidInput, NotFound
from sayso.features.whatif.explaining import TrialCall
from sayso.features.whatif.text import describe_explanation
from sayso.wire.administration import Explained
from sayso.wire.models import ListFiles, RequestBody, SentTimestamp, moment
from sayso.wire.rulebook import (
    CellView,
    MissingView,
    ReplayList,
    ReplayView,
    ReviewTimeView,
    RuleChangeView,
    ShadowsView,
    ShadowView,
    VersionText,
)
from service.core.operations.known_names import read_manifests
from service.edge.api.dependencies import Parts, Person, Wait
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.features.rulebook.api import view_text
from service.features.rulebook.versions import read_version
from service.features.whatif import shadows as shadowing
from service.features.whatif.replays import ReplayRequest, RuleReplays
from service.features.whatif.store import Replay, ReplayStore
from service.features.whatif.trials import read_past, try_call

replays = APIRouter(prefix="/policy/replays", tags=["policy"], route_class=SignedInRoute)

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


@replays.post("", operation_id="startReplay", status_code=202, responses=WRITES | problems(403, 429))
async def start_replay(body: StartReplay, caller: Person, replays: Replays, response: Response) -> ReplayView:
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


@replays.get("", operation_id="listReplays", responses=problems(401, 403))
async def list_replays(_caller: Person, parts: Parts) -> ReplayList:
    """List the replays of the last day."""
    replays = await parts.part(ReplayStore).list_all(await parts.schedule.now_ms())
    return ReplayList(replays=[view_replay(replay) for replay in replays])


@replays.get("/{replay_id}", operation_id="getReplay", responses=problems(400, 401, 403, 404))
async def read_replay(replay_id: ReplayId, _caller: Person, replays: Replays, wait: Wait) -> ReplayView:
    """Return a replay, and with `wait` when it has ended or the time is over."""
    return view_replay(await replays.wait(replay_id, wait))


@replays.delete("/{replay_id}", operation_id="deleteReplay", status_code=204, responses=problems(401, 403, 404))
async def delete_replay(replay_id: ReplayId, _caller: Person, replays: Replays) -> None:
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
        since=moment(replay.from_ms),
        until=moment(replay.to_ms),
        started_at=moment(replay.started_at_ms),
        ended_at=moment(replay.ended_at_ms),
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


shadows = APIRouter(prefix="/policy/shadow", tags=["policy"], route_class=SignedInRoute)

Version = Annotated[str, Path(min_length=1, max_length=100, examples=["0f3a9c1b2d4e5f60"])]


class BeginShadow(RequestBody):
    """A version that is kept, or the exact text of a file of rules; one of both."""

    version: str | None = Field(default=None, max_length=100, examples=["0f3a9c1b2d4e5f60"])
    text: str | None = Field(default=None, examples=["version: 1\ndefault: deny\nrules: []\n"])
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.version is None) == (self.text is None):
            raise ValueError("send either the version or the text of the candidate")
        return self


class ReportShadow(RequestBody):
    """The candidate to report on."""

    version: str | None = Field(default=None, max_length=100, description="By default that in shadow, else the last.")
    sum: str | None = Field(
        default=None,
        max_length=200,
        description="The argument to sum, such as `args.amount`; by default the first that the rules compare.",
    )


class PromoteShadow(RequestBody):
    """The version that is in force, so that none is replaced unseen."""

    replaces: str = Field(max_length=100, examples=["1f3a9c1b2d4e5f60"])


@shadows.get("", operation_id="getShadow", responses=problems(401, 403))
async def read_shadow(_caller: Person, parts: Parts) -> ShadowsView:
    """Return the candidate in shadow, and those before it."""
    state = await shadowing.read_shadows(parts)
    return ShadowsView(
        current=ShadowView.model_validate(state.current) if state.current is not None else None,
        ended=[ShadowView.model_validate(shadow) for shadow in state.ended],
    )


@shadows.post("", operation_id="beginShadow", responses=WRITES | problems(404, 422, 429))
async def begin(body: BeginShadow, caller: Person, parts: Parts) -> VersionText:
    """Put a candidate in shadow: it judges every new call beside the rules in force, without effect."""
    if body.text is not None:
        return view_text(await shadowing.begin_file_shadow(parts, body.text, body.file, caller.name, body.lists), parts)
    version = body.version or ""
    await shadowing.begin_shadow(parts, version, caller.name)
    return view_text(await read_version(parts, version), parts)


@shadows.post("/report", operation_id="reportShadow", status_code=202, responses=WRITES | problems(403, 404, 429))
async def report(body: ReportShadow, caller: Person, parts: Parts, replays: Replays, response: Response) -> ReplayView:
    """Count what a candidate would have done beside what was done and what people decided; read it as a replay."""
    replay = await shadowing.report_shadow(parts, replays, caller.name, body.version, body.sum)
    response.headers["Location"] = f"/api/v1/policy/replays/{replay.id}"
    return view_replay(replay)


@shadows.post("/{version}/end", operation_id="endShadow", status_code=204, responses=WRITES | problems(403))
async def end(version: Version, caller: Person, parts: Parts) -> None:
    """End the candidate in shadow. What it said stays in the audit trail."""
    await shadowing.end_shadow(parts, version, caller.name)


@shadows.post("/{version}/promote", operation_id="promoteShadow", responses=WRITES | problems(404, 422))
async def promote(version: Version, body: PromoteShadow, caller: Person, parts: Parts) -> VersionText:
    """Put the candidate in force, if enough people attest its bytes; the version it replaces is withdrawn."""
    await shadowing.promote_shadow(parts, version, caller.name, body.replaces)
    return view_text(await read_version(parts, version), parts)


trials = APIRouter(tags=["health"], route_class=SignedInRoute)


class TrialRequest(RequestBody):
    """A call, an item whose call to try, or both: the call with the facts about the item's run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"call": {"tool": "refund", "args": {"amount": 250}}}]})

    call: TrialCall | None = None
    item: str | None = Field(default=None, max_length=200, description="A suspension's id, or `suspension/item`.")


@trials.post("/policy/explain", operation_id="explainCall", responses=problems(400, 401, 403, 404, 415))
async def explain_call(body: TrialRequest, _caller: Person, parts: Parts) -> Explained:
    """Say which rule in force decides a call, and why the others do not. Nothing runs or is recorded."""
    if body.call is None and body.item is None:
        raise InvalidInput("There is nothing to try. Send a call, an item, or both.")
    past = await read_past(parts, body.item) if body.item is not None else None
    call = body.call
    if call is None:
        assert past is not None  # noqa: S101  checked above
        call = TrialCall(tool=past.item.tool.name, agent=past.record.run.agent, args=past.args)
    explanation, scrub = await try_call(parts, await read_manifests(parts), call, past)
    return Explained.model_validate(describe_explanation(explanation, scrub))
