"""Routes of the activity log, the channels, checks of this Sayso and its rules, and the metrics."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from sayso.core.clock import now_ms
from sayso.core.policy.files.findings import Known
from sayso.wire.administration import ActivityList, ActivityView, FindingList, FindingView, RulesChecked
from sayso.wire.channels import AnswerList, AnswerView, ChannelList, ChannelView, SettingView
from sayso.wire.models import ListFiles, RequestBody
from service.channels.previews import send_test_card
from service.core.operations.known_names import find_known
from service.edge.api.dependencies import Caller, Limit, OpenChannels, Parts, Person, Skip, Watcher
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import problems
from service.features.operate.diagnostics import diagnose

activity = APIRouter(prefix="/activity", tags=["activity"], route_class=SignedInRoute)


@activity.get("", operation_id="listActivity", responses=problems(401, 403))
async def list_activity(caller: Person, parts: Parts, skip: Skip = 0, limit: Limit = 50) -> ActivityList:
    """List what people did and what was refused, the newest first: sign-ins, keys, people, freezes, rules and more."""
    page = await parts.activity.read_page(skip, limit + 1)
    more = len(page.entries) > limit
    return ActivityList(
        activity=[ActivityView.model_validate(entry) for entry in page.entries[:limit]],
        next_skip=skip + limit if more else None,
        broken_at=page.broken_at,
    )


channels = APIRouter(prefix="/channels", tags=["channels"], route_class=SignedInRoute)

ChannelName = Annotated[str, Path(min_length=1, max_length=40, examples=["ops-slack"])]


class TrialRequest(RequestBody):
    """The receiver of a test card."""

    person: str = Field(
        default="",
        max_length=64,
        description="A reviewer with an address on the channel; empty for the channel's own destination.",
        examples=["anna"],
    )


@channels.get("", operation_id="listChannels", responses=problems(401, 403))
async def list_channels(_caller: Person, channels: OpenChannels) -> ChannelList:
    """List the configured channels, without their secrets."""
    return ChannelList(
        channels=[
            ChannelView(
                name=name,
                kind=channel.kind,
                destination=channel.destination,
                settings=tuple(map(SettingView.model_validate, settings)),
            )
            for name, channel, settings in channels.list_settings()
        ]
    )


@channels.post("/{channel}/test", operation_id="testChannel", responses=problems(400, 401, 403, 404, 415, 429))
async def send_test(
    channel: ChannelName, body: TrialRequest, caller: Person, parts: Parts, channels: OpenChannels
) -> AnswerList:
    """Send a test card to a person. It asks nobody and has no control that decides."""
    answers = await send_test_card(parts, channels, channel, body.person, caller.name)
    return AnswerList(answers=[AnswerView.model_validate(answer) for answer in answers])


diagnostics = APIRouter(tags=["health"], route_class=SignedInRoute)


class RulesRequest(RequestBody):
    """The text of a rules file."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "version: 1\ndefault: deny\nrules: []\n"}]})

    text: str
    file: str = Field(default="policy.yaml", max_length=200, description="The file name to use in faults.")
    lists: ListFiles = Field(default_factory=dict)


@diagnostics.get("/diagnostics", operation_id="getDiagnostics", responses=problems(401, 403))
async def diagnose_parts(_caller: Watcher, parts: Parts, channels: OpenChannels) -> FindingList:
    """Check the store, the clock, the workers, the rules and the channels; for people and monitoring keys."""
    kinds = {name: channel.kind for name, channel in channels.by_name.items()}
    return FindingList(findings=[FindingView.model_validate(finding) async for finding in diagnose(parts, kinds)])


@diagnostics.post("/policy/check", operation_id="checkRules", responses=problems(400, 401, 403, 415, 429))
async def check_rules(body: RulesRequest, caller: Caller, parts: Parts) -> RulesChecked:
    """Check rules without activating them. People also get warnings about reviewers and registered tools.

    A check that takes too long is stopped.
    """
    known = await find_known(parts) if caller.owner is None else Known(now_ms=now_ms())
    report = await parts.desk.evaluations.check_rules(body.text, body.file, known, lists=body.lists, caller=caller.name)
    return RulesChecked(
        ok=not report.faults,
        rules=report.rules,
        version=report.version,
        faults=list(report.faults),
        warnings=list(report.warnings),
    )
