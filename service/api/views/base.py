"""Base classes of request bodies and views, and their timestamps."""

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from sayso.core.clock import iso_utc

Timestamp = Annotated[  # milliseconds since 1970 inside, RFC 3339 in UTC outside
    int,
    PlainSerializer(iso_utc, return_type=str),
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
    """Base class for records as the API shows them. Fields without a view stay internal."""

    model_config = ConfigDict(frozen=True, from_attributes=True)
