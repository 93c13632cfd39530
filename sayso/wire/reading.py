"""How a client reads a response of a desk that may be older or newer than itself.

The desk builds its views strictly. A client checks the types alone: it ignores fields that it does not know, keeps
values that its enumerations do not have as text, checks no bounds, and accepts that an older desk leaves out what is
null or `Later`.
"""

from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from pydantic import BaseModel, JsonValue
from pydantic_core import SchemaValidator

from sayso.wire.models import Later, ViewT

_BOUNDS = frozenset(("pattern", "min_length", "max_length", "gt", "ge", "lt", "le", "multiple_of", "strict"))
_PLAIN = frozenset(("str", "int", "float", "bool", "list", "tuple", "dict", "datetime"))
_DATA = frozenset(("default", "metadata", "serialization", "config", "members", "expected", "cls", "function"))
_EPOCH = datetime.fromtimestamp(0, UTC)
_EMPTY: dict[str, Any] = {"str": "", "bool": False, "int": 0, "tuple": (), "dict": {}, "datetime": _EPOCH}
_ANY: tuple[Any, ...] = (JsonValue,)
_LATER = Later.__metadata__[0]


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
        "function": {"type": "no-info", "function": partial(_construct, model)},
        "schema": {"type": "typed-dict", "fields": fields, "extra_behavior": "ignore"},
    }


def _construct(model: type[BaseModel], values: dict[str, Any]) -> BaseModel:
    return model.model_construct(**values)


def _read_field(model: type[BaseModel], name: str, field: dict[str, Any]) -> dict[str, Any]:
    value = _loosen(field["schema"])
    if value["type"] == "nullable" or model.model_fields[name].annotation in _ANY:
        value = {"type": "default", "schema": value, "default": None}
    elif _LATER in model.model_fields[name].metadata:
        value = {"type": "default", "schema": value, "default": _EMPTY[value["type"]], "copy_default": True}
    alias = field.get("serialization_alias")
    return {
        "type": "typed-dict-field",
        "schema": value,
        "required": value["type"] != "default",
        **({"validation_alias": alias} if alias else {}),
    }
