"""Messages of the Bot Framework: the fields that are used. Others are added at any time, so they are ignored."""

from pydantic import BaseModel, ConfigDict, Field


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Account(_Sent):
    """A person or bot. The directory's id is the same in every conversation."""

    id: str = ""
    name: str = ""
    directory_id: str = Field(default="", alias="aadObjectId")


class Conversation(_Sent):
    """A conversation; `personal` for one person and the bot."""

    id: str = ""
    type: str = Field(default="", alias="conversationType")
    tenant_id: str = Field(default="", alias="tenantId")


class Tenant(_Sent):
    """A tenant."""

    id: str = ""


class ChannelData(_Sent):
    """What Teams adds."""

    tenant: Tenant = Tenant()


class ActionData(_Sent):
    """What a control carries: the item, the digest that the card showed, and the fields beside the control."""

    suspension_id: str = Field(min_length=1, max_length=100)
    item_id: str = Field(min_length=1, max_length=100)
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    reason: str = Field(default="", max_length=20_000)
    value: str = Field(default="", max_length=100_000)
    question: str = Field(default="", max_length=20_000)


class Action(_Sent):
    """A pressed control."""

    type: str
    verb: str = ""
    data: ActionData


class Invocation(_Sent):
    """The value of a message about a pressed control."""

    action: Action


class Activity(_Sent):
    """One message to the bot. `value` is parsed only for a pressed control."""

    type: str
    id: str = Field(default="", max_length=500)
    name: str = ""
    text: str = ""
    channel_id: str = Field(default="", alias="channelId")
    service_url: str = Field(default="", alias="serviceUrl")
    sender: Account = Field(default=Account(), alias="from")
    conversation: Conversation = Conversation()
    channel_data: ChannelData = Field(default=ChannelData(), alias="channelData")
    value: object = None
