"""Updates of the bot API: the fields that are used. Telegram adds others at any time, so they are ignored."""

from pydantic import BaseModel, ConfigDict, Field


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Chat(_Sent):
    """A chat; `private` for one person and the bot."""

    id: int
    type: str


class Sender(_Sent):
    """An account of Telegram."""

    id: int
    is_bot: bool = False
    username: str = ""
    first_name: str = ""

    @property
    def label(self) -> str:
        """The account as a person knows it."""
        return f"@{self.username}" if self.username else self.first_name


class RepliedTo(_Sent):
    """The message that a message replies to."""

    message_id: int


class Message(_Sent):
    """A message to the bot, or the message of a pressed button."""

    message_id: int
    chat: Chat
    sender: Sender | None = Field(default=None, alias="from")
    text: str = ""
    reply_to_message: RepliedTo | None = None

    def is_private(self, sender: Sender | None) -> bool:
        """Return whether the message is in the sender's own chat with the bot."""
        return self.chat.type == "private" and sender is not None and not sender.is_bot and sender.id == self.chat.id


class Press(_Sent):
    """The press of a button."""

    id: str
    sender: Sender = Field(alias="from")
    message: Message | None = None
    data: str = ""


class Update(_Sent):
    """One update."""

    update_id: int
    message: Message | None = None
    callback_query: Press | None = None
