"""Views of previews: what a call would do, as its tool says without running it."""

from pydantic import Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor
from sayso.wire.models import Timestamp, View


class PreviewView(View):
    """What a call would do, as its tool says without running it. Its digest is part of the item's."""

    content: JsonValue = Field(description="A text, a list of rows or an object; null without a preview.")
    cut: int = Field(description="How many characters or rows there were, if they are not all here; 0 if they are.")
    error: str | None = Field(description="Why there is no preview.")
    digest: str = Field(description="The SHA-256 of the whole content.")
    at: Timestamp = Field(validation_alias="at_ms")
    args: JsonObject | None = Field(description="The edited arguments that it is of; null for those of the item.")
    before: JsonValue = Field(description="What was approved earlier, if the call is asked again because it changed.")


class PreviewRequestView(View):
    """A preview that a worker was asked for."""

    by: Actor | None = Field(description="Who asked; null if the desk did.")
    at: Timestamp = Field(validation_alias="at_ms")
    args: JsonObject | None = Field(description="The edited arguments; null for those of the item.")
