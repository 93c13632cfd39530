"""Frozen models of previews: what a call would do, as a function of its tool says without running it."""

from collections.abc import Iterable

from pydantic import Field, JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Actor

MAX_FAULT_CHARS = 500


class Preview(Immutable):
    """What a call would do when a worker asked its tool. Its content is the tool's, and is shown but never followed.

    `digest` is that of the whole content, of which at most the beginning is kept. `args` are the arguments of an edit;
    those of the item are null. `before` is what was approved earlier, if the call is asked again because it changed.
    """

    content: JsonValue = Field(None, description="A text, a list of rows or an object; null without one.")
    cut: int = Field(0, description="How many characters or rows there were, if they are not all kept.")
    error: str | None = Field(None, max_length=MAX_FAULT_CHARS, description="Why there is no preview.")
    digest: str = Field(description="The SHA-256 of the whole content.")
    at_ms: int
    args: JsonObject | None = None
    before: JsonValue = None


class PreviewRequest(Immutable):
    """A request to the workers for a preview of the item's arguments, or of edited `args`."""

    by: Actor | None = None  # the person who asked; null if the desk did
    at_ms: int
    args: JsonObject | None = None


def find_preview(previews: Iterable[Preview], args: JsonObject | None = None) -> Preview | None:
    """Return the preview of edited arguments, or without any of the item's own."""
    return next((preview for preview in previews if same_args(preview.args, args)), None)


def same_args(before: JsonObject | None, after: JsonObject | None) -> bool:
    """Return whether both are the same arguments; null stands for those of the item."""
    if before is None or after is None:
        return before is after
    return canonical_json(before) == canonical_json(after)


def put_preview(previews: Iterable[Preview], preview: Preview) -> tuple[Preview, ...]:
    """Return the previews with one added: at most that of the item's arguments, and that of one edit."""
    kept = (other for other in previews if (other.args is None) is not (preview.args is None))
    return tuple(sorted((*kept, preview), key=lambda each: each.args is not None))


def describe_previews(previews: Iterable[Preview]) -> JsonObject:
    """Return what the digest of an item says of its previews."""
    return {"previews": [[preview.args, preview.digest] for preview in previews]}
