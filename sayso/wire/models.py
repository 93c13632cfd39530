"""Base classes of request bodies and views, and their timestamps."""

from datetime import UTC, datetime
from typing import Annotated, TypeVar, overload

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema


@overload
def moment(at_ms: int) -> datetime: ...
@overload
def moment(at_ms: int | None) -> datetime | None: ...
def moment(at_ms: int | None) -> datetime | None:
    """Return a time in milliseconds since 1970 as a moment in UTC."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)


def _write_moment(at: datetime) -> str:
    return f"{at.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z"


Timestamp = Annotated[  # of milliseconds since 1970 or RFC 3339; written as RFC 3339 in UTC
    datetime,
    PlainSerializer(_write_moment, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T12:03:04.120Z"]}),
]


def _require_text(value: object) -> object:
    """Refuse numbers: they could be seconds or milliseconds."""
    if not isinstance(value, str) or "T" not in value:
        raise ValueError("is not a timestamp; write it as 2026-11-21T12:00:00Z")
    return value


SentTimestamp = Annotated[AwareDatetime, BeforeValidator(_require_text)]  # RFC 3339 with its zone


ListFiles = Annotated[
    dict[str, str],
    Field(max_length=100, description="The texts of the files that the lists of the rules name, by name."),
]


class RequestBody(BaseModel):
    """Base class for request bodies: unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class View(BaseModel):
    """Base class for what the API answers. Fields of records without a view stay internal."""

    model_config = ConfigDict(frozen=True, from_attributes=True, val_temporal_unit="milliseconds", defer_build=True)


ViewT = TypeVar("ViewT", bound=View)
T = TypeVar("T")


class _Later:
    """The mark of `Later`."""


Later = Annotated[T, _Later]
"""A field that came after the first version: of a desk that leaves it out, the client reads an empty value."""


class Empty(View):
    """A response without a body."""
