"""Form controls for JSON schemas. Schemas are untrusted, and an unsupported one is edited as JSON."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.text.redaction import is_secret

_KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}
_MAX_OPTIONS = 100
_EXACT_DIGITS = re.compile(r"\^(\[0-9\]|\\d)\{([0-9]{1,4})\}\$")
_DIGITS = re.compile(r"\^(\[0-9\]|\\d)(\+|\{[0-9]+(,[0-9]*)?\})\$")


@dataclass(frozen=True)
class Shape:
    """A control's kind (text, integer, number, boolean, choice or json), with its description.

    A `secret` value is typed unseen. `digits` are all that a text may contain, `exact_digits` of them if not 0. `node`
    is the schema with its references resolved inside `root`.
    """

    kind: str
    nullable: bool = False
    options: tuple[JsonValue, ...] = ()
    title: str = ""
    description: str = ""
    secret: bool = False
    digits: bool = False
    exact_digits: int = 0
    date: bool = False
    unit: str = ""
    node: JsonObject = field(default_factory=dict, compare=False, repr=False)
    root: JsonObject = field(default_factory=dict, compare=False, repr=False)


def properties_of(schema: JsonObject, limit: int, root: JsonObject | None = None) -> list[tuple[str, Shape, bool]]:
    """Return name, shape and required flag of each property; none for more than `limit` properties."""
    root = schema if root is None else root
    node, _ = _resolve(schema, root)
    properties = node.get("properties")
    if not isinstance(properties, dict) or len(properties) > limit or node.get("type", "object") != "object":
        return []
    required = node.get("required")
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return [(name, shape_of(child, root), name in needed) for name, child in properties.items()]


def shape_of(schema: JsonValue, root: JsonObject) -> Shape:
    """Return the shape of one value; references resolve inside `root` only."""
    node, nullable = _resolve(schema, root)
    kind, options = _kind_of(node)
    pattern = _text(node.get("pattern"))
    exact = _EXACT_DIGITS.fullmatch(pattern)
    return Shape(
        kind=kind,
        nullable=nullable or None in options,
        options=options,
        title=_text(node.get("title")),
        description=_text(node.get("description")),
        secret=is_secret(node),
        digits=_DIGITS.fullmatch(pattern) is not None,
        exact_digits=int(exact[2]) if exact is not None else 0,
        date=node.get("format") == "date",
        unit=_text(node.get("unit")) or _text(node.get("x-unit")),
        node=node,
        root=root,
    )


def entries_of(shape: Shape) -> Shape | None:
    """Return the shape of the entries of a list; None if it is no list of one known shape."""
    items = shape.node.get("items")
    plain = shape.node.get("type") == "array" and isinstance(items, dict) and "prefixItems" not in shape.node
    return shape_of(items, shape.root) if plain else None


def variants_of(shape: Shape) -> list[Shape]:
    """Return the shapes of the alternatives of `oneOf` or `anyOf`, without null."""
    listed = shape.node.get("oneOf", shape.node.get("anyOf"))
    if not isinstance(listed, list) or "properties" in shape.node:
        return []
    others = [option for option in listed if option != {"type": "null"}]
    return [shape_of(option, shape.root) for option in others] if 2 <= len(others) <= 8 else []


def find_shape(schema: JsonObject, steps: Sequence[str | int]) -> Shape | None:
    """Return the shape of a value inside the value of a schema, by its keys and places; None if it is not described."""
    shape: Shape | None = shape_of(schema, schema)
    for step in steps:
        if shape is None:
            return None
        properties = shape.node.get("properties")
        if isinstance(step, int):
            shape = entries_of(shape)
        else:
            shape = (
                shape_of(properties[step], shape.root) if isinstance(properties, dict) and step in properties else None
            )
    return shape


def is_alike(shape: Shape, value: JsonValue) -> bool:
    """Return whether a value has the form of a shape: its type, and the properties and constants of an object."""
    node = shape.node
    if shape.kind == "choice":
        return any(type(option) is type(value) and option == value for option in shape.options)
    kinds: dict[str, Any] = {"object": dict, "array": list, "text": str, "integer": int, "number": int | float}
    wanted = "object" if "properties" in node else _text(node.get("type")) if shape.kind == "json" else shape.kind
    if wanted == "boolean" or isinstance(value, bool):
        return wanted == "boolean" and isinstance(value, bool)
    if wanted not in kinds or not isinstance(value, kinds[wanted]):
        return False
    if not isinstance(value, dict):
        return True
    known = {name: (child, needed) for name, child, needed in properties_of(node, _MAX_OPTIONS, shape.root)}
    return all(
        is_alike(child, value[name]) if name in value and child.kind == "choice" else name in value or not needed
        for name, (child, needed) in known.items()
    ) and all(name in known for name in value)


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
    for _ in range(8):
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
        types = [kind for kind in node["type"] if kind != "null"]
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
