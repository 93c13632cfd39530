"""Base classes of request bodies and views, their timestamps, and how a client reads views.

The desk builds its views strictly. It may be older or newer than the client, which checks the types alone: it ignores
fields that it does not know, keeps values that its enumerations do not have as text, checks no bounds, and accepts
that an older desk leaves out what is null or `Later`.
"""

from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeVar, overload

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import SchemaValidator


@overload
def moment(at_ms: int) -> datetime: ...
@overload
def moment(at_ms: int | None) -> datetime | None: ...
def moment(at_ms: int | None) -> datetime | None:
    """Return a time in milliseconds since 1970 as a moment in UTC."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)


Timestamp = Annotated[  # of milliseconds since 1970 or RFC 3339; written as RFC 3339 in UTC
    datetime,
    PlainSerializer(lambda at: f"{at.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z", return_type=str),
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


def read_time(at_ms: int) -> int | None:
    """Return a time of which 0 means none."""
    return at_ms or None


class _Later:
    """The mark of `Later`."""


Later = Annotated[T, _Later]
"""A field that came after the first version: of a desk that leaves it out, the client reads an empty value."""


class Empty(View):
    """A response without a body."""


_BOUNDS = frozenset(("pattern", "min_length", "max_length", "gt", "ge", "lt", "le", "multiple_of", "strict"))
_PLAIN = frozenset(("str", "int", "float", "bool", "list", "tuple", "dict", "datetime"))
_DATA = frozenset(("default", "metadata", "serialization", "config", "members", "expected", "cls", "function"))
_EPOCH = datetime.fromtimestamp(0, UTC)
_EMPTY: dict[str, Any] = {"str": "", "bool": False, "int": 0, "tuple": (), "dict": {}, "datetime": _EPOCH}
_ANY: tuple[Any, ...] = (JsonValue,)


def read_view(model: type[ViewT], body: bytes) -> ViewT:
    """Return the view that a desk sent; raises `ValidationError` for anything else."""
    view: ViewT = _build_reader(model).validate_json(body)
    return view


@cache
def _build_reader(model: type[BaseModel]) -> SchemaValidator:
    model.model_rebuild()
    return SchemaValidator(_loosen(model.__pydantic_core_schema__))


def _loosen(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(map(_loosen, schema))
    if not isinstance(schema, dict):
        return schema
    kind, ref = schema.get("type"), {"ref": schema["ref"]} if "ref" in schema else {}
    if kind in {"function-before", "function-after", "function-wrap"}:
        return _loosen(schema["schema"]) | ref
    if kind == "model":
        return _read_by_name(schema) | ref
    if kind in {"enum", "literal"}:
        known = {name: value for name, value in schema.items() if name != "ref"}
        return {"type": "union", "choices": [known, {"type": "str"}], "mode": "left_to_right", **ref}
    dropped = _BOUNDS if kind in _PLAIN else ()
    return {name: value if name in _DATA else _loosen(value) for name, value in schema.items() if name not in dropped}


def _read_by_name(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that reads a model by the names of its fields, as the desk writes them."""
    model, inner = schema["cls"], schema["schema"]
    while inner["type"] != "model-fields":
        inner = inner["schema"]
    fields = {name: _read_field(model, name, field) for name, field in inner["fields"].items()}
    return {
        "type": "function-after",
        "function": {"type": "no-info", "function": lambda values: model.model_construct(**values)},
        "schema": {"type": "typed-dict", "fields": fields, "extra_behavior": "ignore"},
    }


def _read_field(model: type[BaseModel], name: str, field: dict[str, Any]) -> dict[str, Any]:
    value = _loosen(field["schema"])
    if value["type"] == "nullable" or model.model_fields[name].annotation in _ANY:
        value = {"type": "default", "schema": value, "default": None}
    elif _Later in model.model_fields[name].metadata:
        value = {"type": "default", "schema": value, "default": _EMPTY[value["type"]], "copy_default": True}
    alias = field.get("serialization_alias")
    return {
        "type": "typed-dict-field",
        "schema": value,
        "required": value["type"] != "default",
        **({"validation_alias": alias} if alias else {}),
    }
