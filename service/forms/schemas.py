"""Form controls for JSON schemas. Schemas are untrusted, and an unsupported one is edited as JSON."""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.text.redaction import is_secret

_KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}
_MAX_OPTIONS = 100
_MAX_HOPS = 8
_DIGITS = re.compile(r"\^(\[0-9\]|\\d)(\+|\{[0-9]+(,[0-9]*)?\})\$")


@dataclass(frozen=True)
class Shape:
    """A control's kind (text, integer, number, boolean, choice or json), with its description.

    A `secret` value is typed unseen. `digits` are all that a text may contain.
    """

    kind: str
    nullable: bool = False
    options: tuple[JsonValue, ...] = ()
    title: str = ""
    description: str = ""
    secret: bool = False
    digits: bool = False


def properties_of(schema: JsonObject, limit: int) -> list[tuple[str, Shape, bool]]:
    """Return name, shape and required flag of each property; none for more than `limit` properties."""
    node, _ = _resolve(schema, schema)
    properties = node.get("properties")
    if not isinstance(properties, dict) or len(properties) > limit or node.get("type", "object") != "object":
        return []
    required = node.get("required")
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return [(name, shape_of(child, schema), name in needed) for name, child in properties.items()]


def shape_of(schema: JsonValue, root: JsonObject) -> Shape:
    """Return the shape of one value; references resolve inside `root` only."""
    node, nullable = _resolve(schema, root)
    kind, options = _kind_of(node)
    return Shape(
        kind=kind,
        nullable=nullable or None in options,
        options=options,
        title=_text(node.get("title")),
        description=_text(node.get("description")),
        secret=is_secret(node),
        digits=_DIGITS.fullmatch(_text(node.get("pattern"))) is not None,
    )


def _kind_of(node: dict[str, Any]) -> tuple[str, tuple[JsonValue, ...]]:
    listed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(listed, list) and 0 < len(listed) <= _MAX_OPTIONS:
        plain = all(not isinstance(option, dict | list) for option in listed)
        return ("choice", tuple(listed)) if plain else ("json", ())
    kind = _KINDS.get(node["type"], "json") if isinstance(node.get("type"), str) else "json"
    return kind, (True, False) if kind == "boolean" else ()


def _resolve(schema: JsonValue, root: JsonObject) -> tuple[dict[str, Any], bool]:
    """Follow local references and unwrap 'this or null'; keep the titles and descriptions beside them."""
    texts: dict[str, Any] = {}
    nullable = False
    node: Any = schema
    for _ in range(_MAX_HOPS):
        if not isinstance(node, dict):
            break
        texts = {**{key: node[key] for key in ("title", "description") if key in node}, **texts}
        following, null_too = _follow(node, root)
        nullable = nullable or null_too
        if following is None:
            break
        node = following
    return ({**node, **texts} if isinstance(node, dict) else texts), nullable


def _follow(node: dict[str, Any], root: JsonObject) -> tuple[dict[str, Any] | None, bool]:
    if isinstance(node.get("$ref"), str):
        return _look_up(node["$ref"], root), False
    one_of = node.get("anyOf", node.get("oneOf", node.get("allOf")))
    if isinstance(one_of, list):
        others = [option for option in one_of if option != {"type": "null"}]
        sole = others[0] if len(others) == 1 and isinstance(others[0], dict) else None
        return sole, len(others) < len(one_of)
    if isinstance(node.get("type"), list):
        types = [one for one in node["type"] if one != "null"]
        sole = {**node, "type": types[0]} if len(types) == 1 else None
        return sole, len(types) < len(node["type"])
    return None, False


def _look_up(ref: str, root: JsonObject) -> dict[str, Any]:
    node: Any = root
    for part in ref.removeprefix("#").split("/")[1:] if ref.startswith("#") else ["?"]:
        key = part.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
