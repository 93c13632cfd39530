"""Routes of the configured channels: list them, and send a test card over one."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.api.routing.dependencies import Admin, OpenChannels, Parts
from service.api.routing.routes import SignedInRoute
from service.api.views.base import RequestBody, View
from service.channels.config import describe_settings
from service.channels.trials import send_test_card
from service.http.openapi import problems

router = APIRouter(prefix="/channels", tags=["channels"], route_class=SignedInRoute)

ChannelName = Annotated[str, Path(min_length=1, max_length=40, examples=["ops-slack"])]


class SettingView(View):
    """A field of a channel; a secret is shown as `set, hidden`."""

    name: str
    text: str


class ChannelView(View):
    """A configured channel."""

    name: str
    kind: str
    destination: str = Field(description="The provider's host.")
    settings: tuple[SettingView, ...]


class ChannelList(BaseModel):
    """All configured channels by name."""

    channels: list[ChannelView]


class TrialRequest(RequestBody):
    """The receiver of a test card."""

    person: str = Field(
        default="",
        max_length=64,
        description="A reviewer with an address on the channel; empty for the channel's own destination.",
        examples=["anna"],
    )


class AnswerView(View):
    """The provider's answer at one address."""

    accepted: bool
    text: str = Field(description="The provider's id of the message, or the reason of the failure.")


class AnswerList(BaseModel):
    """The provider's answers, one for each address of the person."""

    answers: list[AnswerView]


@router.get("", operation_id="listChannels", responses=problems(401, 403))
async def list_channels(_caller: Admin, channels: OpenChannels) -> ChannelList:
    """List the configured channels, without their secrets."""
    views = []
    for name, channel in sorted(channels.by_name.items()):
        config = channels.configs.get(name)
        shown = describe_settings(config) if config is not None else ()
        settings = tuple(map(SettingView.model_validate, shown))
        views.append(ChannelView(name=name, kind=channel.kind, destination=channel.destination, settings=settings))
    return ChannelList(channels=views)


@router.post("/{channel}/test", operation_id="testChannel", responses=problems(400, 401, 403, 404, 415, 429))
async def send_test(
    channel: ChannelName, body: TrialRequest, caller: Admin, parts: Parts, channels: OpenChannels
) -> AnswerList:
    """Send a test card to a person. It asks nobody and has no control that decides."""
    answers = await send_test_card(parts, channels, channel, body.person, caller.name)
    return AnswerList(answers=[AnswerView.model_validate(answer) for answer in answers])
