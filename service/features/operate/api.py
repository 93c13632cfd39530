"""Routes of the activity log, the channels, checks of this Sayso and its rules, and the metrics."""

import hmac
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import ConfigDict, Field

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.core.policy.files.findings import Known
from sayso.errors import NotAuthenticated, NotFound
from sayso.wire.administration import FindingList, FindingView, RulesChecked
from sayso.wire.channels import AnswerList, AnswerView, ChannelList, ChannelView, SettingView
from sayso.wire.models import ListFiles, RequestBody, Timestamp, View
from service.channels.previews import send_test_card
from service.core.auth.credentials import Principal
from service.core.auth.reviewers import require_log_reader
from service.core.operations.known_names import find_known
from service.core.settings import variable_of
from service.edge.api.dependencies import Admin, Caller, Limit, OpenChannels, Parts, Person, Skip
from service.edge.api.routes import OpenRoute, SignedInRoute, bearer_token
from service.edge.http.openapi import problems
from service.features.operate.diagnostics import diagnose
from service.features.operate.metrics import Readings, render_metrics

activity = APIRouter(prefix="/activity", tags=["activity"], route_class=SignedInRoute)


async def reader_of(person: Person) -> Principal:
    """Return the calling admin or auditor; raises `NotAllowed` for others."""
    require_log_reader(person.roles)
    return person


class ActivityView(View):
    """One act, or one refusal; `hash` covers it and the hash of the entry before it."""

    seq: int
    at: Timestamp = Field(validation_alias="at_ms")
    act: str = Field(examples=["key_created"])
    by: str = Field(description="Who did it; empty for somebody who has not signed in.")
    door: str = Field(description="How: `web`, `api`, the name of a channel, or `setup`.")
    address: str = Field(description="The address of the client; empty if unknown.")
    target: str = Field(description="What it was done to: the id of a key, the name of a person, and so on.")
    outcome: str = Field(description="`done` or `refused`.")
    times: int = Field(description="Of a refusal: how many of this source there were in the hour.")
    data: JsonObject
    before: str = Field(description="The hash of the entry before; empty for the first.")
    hash: str


class ActivityList(View):
    """Entries, the newest first."""

    activity: list[ActivityView]
    next_skip: int | None = Field(description="`skip` of the next page; null on the last.")
    broken_at: int | None = Field(description="The first entry of this page that does not fit the chain; else null.")


@activity.get("", operation_id="listActivity", responses=problems(401, 403))
async def list_activity(
    caller: Annotated[Principal, Depends(reader_of)], parts: Parts, skip: Skip = 0, limit: Limit = 50
) -> ActivityList:
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
async def list_channels(_caller: Admin, channels: OpenChannels) -> ChannelList:
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
    channel: ChannelName, body: TrialRequest, caller: Admin, parts: Parts, channels: OpenChannels
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
async def diagnose_parts(_caller: Person, parts: Parts, channels: OpenChannels) -> FindingList:
    """Check the store, the clock, the workers, the rules and the channels; for people."""
    kinds = {name: channel.kind for name, channel in channels.by_name.items()}
    return FindingList(findings=[FindingView.model_validate(finding) async for finding in diagnose(parts, kinds)])


@diagnostics.post("/policy/check", operation_id="checkRules", responses=problems(400, 401, 415, 429))
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


metrics = APIRouter(route_class=OpenRoute, include_in_schema=False)


@metrics.get("/metrics")
async def read_metrics(request: Request) -> Response:
    """Return the metrics of this process and of the store to the holder of the token."""
    expected = request.app.state.process.settings.metrics_token
    if expected is None:
        raise NotFound(f"The metrics are closed. Set {variable_of('metrics_token')} to open them.")
    sent, token = bearer_token(request) or "", expected.get_secret_value()
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise NotAuthenticated(f"Send the token of {variable_of('metrics_token')} as 'Authorization: Bearer …'.")
    readings: Readings = request.app.state.readings
    text, media_type = await render_metrics(readings, request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})
