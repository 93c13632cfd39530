"""The route that says who is asked when under a rule."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.api.routing.dependencies import OpenChannels, Parts, Person
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, SentTimestamp, Timestamp, View
from service.channels.previews import SampleCall
from service.channels.who import plan
from service.http.openapi import WRITES

router = APIRouter(prefix="/who", tags=["duty"], route_class=SignedInRoute)


class WhoRequest(RequestBody):
    """A rule, the time at which an item begins to wait, and a sample call."""

    rule: str = Field(min_length=1, max_length=200, examples=["refunds"])
    at: SentTimestamp = Field(examples=["2026-12-24T18:00:00Z"])
    call: SampleCall | None = Field(default=None, description="The call, with its owner; a refund by default.")


class AskedView(View):
    """A person who is asked in a step, over a channel."""

    step: int = Field(description="0 for the rule's reviewers, then the steps of escalate.")
    at: Timestamp = Field(validation_alias="at_ms")
    reviewer: str = Field(description="The name or group in the rule; empty for everybody.")
    person: str = Field(description="A reviewer or their delegate; empty for the channel's own destination.")
    channel: str
    sent_at: Timestamp | None = Field(validation_alias="sent_at_ms", description="Null if no card is sent.")
    reason: str


class WhoView(BaseModel):
    """Everybody who is asked, and the effect of the deadline."""

    asked: list[AskedView]
    deadline_at: Timestamp
    end: str


@router.post("", operation_id="showWho", responses=WRITES)
async def show_who(body: WhoRequest, caller: Person, parts: Parts, channels: OpenChannels) -> WhoView:
    """Say who would be asked when about a call under a rule, and what happens at its deadline. Nothing is sent."""
    call = body.call or SampleCall(tool="refund")
    forecast = await plan(parts, channels, parts.rules.policy(), body.rule, call, int(body.at.timestamp() * 1000))
    asked = [AskedView.model_validate(row) for row in forecast.asked]
    return WhoView(asked=asked, deadline_at=forecast.deadline_at_ms, end=forecast.end)
