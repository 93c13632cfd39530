"""Form fields from a JSON schema, and JSON from a submitted form, with objects, lists and alternatives inside.

A nested field with the key `f3` submits `f3.?`, whether it is given. A list also submits `f3.#`, the number of its
entries, with `f3.0.@`, the place of the original of its first entry; alternatives submit `f3.~`, the chosen one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.text.language import _
from sayso.core.text.summaries import write_pretty
from sayso.errors import InvalidInput
from service.forms.controls import ABSENT, NESTED, Absent, Field, Post, make_field, normalize, read_leaf, shape_of_value
from service.forms.schemas import Shape, entries_of, is_alike, properties_of, shape_of, variants_of

MANY_PROPERTIES = 40
MANY_ENTRIES = 50
MANY_INSIDE = 150  # the most fields of a form of stored values. What would exceed it is edited as JSON.
_MANY_SUBMITTED = 400
_DEEPEST = 6
_DEEPEST_TABS = 3
_NO_POST: Post = {}
_STEPS = {"add", "remove", "up", "down", "give", "omit"}


class _TooMany(Exception):
    """The value has more fields inside than a form may have."""


class _Unfolding:
    """One walk through a value: what was submitted, and how many fields may still follow."""

    def __init__(self, post: Post, room: int) -> None:
        self.post = post
        self.room = room

    def unfold(self, field: Field, depth: int = 0, tabs: int = 0) -> Field:
        """Return the field with the fields inside; unchanged if it is edited as one text."""
        self.room -= 1
        if self.room < 0:
            raise _TooMany
        if field.shape.kind != "json" or depth >= _DEEPEST:
            return field
        for make in (self._unfold_object, self._unfold_list, self._unfold_variants):
            nested = make(field, depth, tabs)
            if nested is not None:
                return nested
        return field

    def _unfold_object(self, field: Field, depth: int, tabs: int) -> Field | None:
        known = properties_of(field.shape.node, MANY_PROPERTIES, field.shape.root)
        original = {} if isinstance(field.original, Absent) else field.original
        if not known or not isinstance(original, dict):
            return None
        names = {name for name, _, _ in known}
        rest = [(name, shape_of_value(value), False) for name, value in original.items() if name not in names]
        if not self._is_present(field):
            return _nest(field, "object", present=False)
        children = [
            self._child(field, place, shape, original.get(name, ABSENT), name, required=required)
            for place, (name, shape, required) in enumerate([*known, *rest])
        ]
        return _nest(field, "object", [self.unfold(child, depth + 1, tabs) for child in children])

    def _unfold_list(self, field: Field, depth: int, tabs: int) -> Field | None:
        shape = entries_of(field.shape)
        original = [] if isinstance(field.original, Absent) else field.original
        if shape is None or not isinstance(original, list) or len(original) > MANY_ENTRIES or not _has_controls(shape):
            return None
        if not self._is_present(field):
            return _nest(field, "list", present=False)
        stated = _read_number(self.post.get(f"{field.key}.#", ""))
        count = len(original) if stated is None else stated
        if count > MANY_ENTRIES:
            raise InvalidInput(_("A list in a form has at most %(count)s entries.", count=MANY_ENTRIES))
        children = []
        for place in range(count):
            origin = _read_number(self.post.get(f"{field.key}.{place}.@", str(place)))
            if origin is not None and origin >= len(original):
                origin = None
            value = ABSENT if origin is None else original[origin]
            child = self._child(field, place, shape, value, None, required=True)
            children.append(replace(self.unfold(child, depth + 1, tabs), origin="" if origin is None else str(origin)))
        return _nest(field, "list", children)

    def _unfold_variants(self, field: Field, depth: int, tabs: int) -> Field | None:
        shapes = variants_of(field.shape)
        if not shapes or tabs >= _DEEPEST_TABS:
            return None
        original = field.original
        fitting: list[int] = []
        if not isinstance(original, Absent):
            fitting = [place for place, shape in enumerate(shapes) if is_alike(shape, original)]
            if not fitting:
                return None
        if not self._is_present(field):
            return _nest(field, "variants", present=False)
        own = fitting[0] if fitting else -1
        children = [
            self._child(field, place, shape, original if place == own else ABSENT, None, required=True)
            for place, shape in enumerate(shapes)
        ]
        stated = self.post.get(f"{field.key}.~", "")
        chosen = int(stated) if stated in map(str, range(len(shapes))) else max(own, 0)
        return _nest(field, "variants", [self.unfold(child, depth + 1, tabs + 1) for child in children], chosen=chosen)

    def _child(
        self, field: Field, place: int, shape: Shape, original: JsonValue | Absent, name: str | None, *, required: bool
    ) -> Field:
        shape = replace(shape, secret=shape.secret or field.shape.secret)
        made = make_field(f"{field.key}.{place}", name, shape, required=required, original=original)
        fresh = isinstance(original, Absent) and (field.requested or isinstance(field.original, Absent) or name is None)
        only = shape.options[0] if shape.kind == "choice" and len(shape.options) == 1 and required else None
        text = only if fresh and isinstance(only, str) else None
        return replace(made, requested=fresh, text=f'"{text}"' if text is not None and text.isalnum() else made.text)

    def _is_present(self, field: Field) -> bool:
        default = not isinstance(field.original, Absent) or (field.requested and field.required)
        return self.post.get(f"{field.key}.?", "1" if default else "0") == "1"


def unfold_all(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return the fields of stored or requested values with the fields inside, where their schemas describe them."""
    room = MANY_INSIDE
    unfolded: list[Field] = []
    for field in fields:
        walk = _Unfolding(_NO_POST, room)
        try:
            unfolded.append(walk.unfold(field))
            room = walk.room
        except _TooMany:
            unfolded.append(field)
    return tuple(unfolded)


def read_field(field: Field, post: Post) -> tuple[JsonValue | Absent, Field]:
    """Return the submitted value of a field, nested or not, and the field with its texts and problems."""
    if field.shape.kind in NESTED:
        flat = replace(field, shape=replace(field.shape, kind="json"), children=(), present=True)
        if f"{field.key}.?" not in post and field.key in post:
            return read_field(flat, post)  # the whole value as JSON
        try:
            part, shown = _read_inside(_Unfolding(post, _MANY_SUBMITTED).unfold(flat), post)
            return part, replace(shown, text=_write(part, shown))
        except _TooMany:
            problem = f"A form has at most {_MANY_SUBMITTED} fields for one argument."
            return ABSENT, replace(field, problem=problem)
        except InvalidInput as error:
            return ABSENT, replace(field, problem=error.message)
    typed = normalize(post.get(field.key, ""))
    shown = replace(field, text="" if field.masked else typed)
    try:
        return read_leaf(field, typed), shown
    except InvalidInput as error:
        return ABSENT, replace(shown, problem=error.message)


def clear_problems(field: Field) -> Field:
    """Return the field without its problems and those inside."""
    return replace(field, problem="", children=tuple(map(clear_problems, field.children)))


def change_form(post: Post, step: str) -> Post:
    """Return the submitted fields after a step such as `add:f3` or `remove:f3.1`; texts move with their entries."""
    action, _, key = step.partition(":")
    changed = dict(post)
    if action in ("give", "omit"):
        changed[f"{key}.?"] = "1" if action == "give" else "0"
    elif action == "add":
        count = _read_number(changed.get(f"{key}.#", "0"))
        changed |= {f"{key}.#": str(count + 1), f"{key}.{count}.@": ""} if count is not None else {}
    elif action in ("remove", "up", "down"):
        _move(changed, action, *_split(key))
    return changed


def is_change(step: str) -> bool:
    """Return whether a step changes the form of a nested value."""
    return step.partition(":")[0] in _STEPS and ":" in step


def find_changed(step: str) -> str:
    """Return the key of the field whose form a step changes."""
    action, _, key = step.partition(":")
    return _split(key)[0] if action in ("remove", "up", "down") else key


def _read_inside(field: Field, post: Post) -> tuple[JsonValue | Absent, Field]:
    if field.shape.kind not in NESTED:
        return read_field(field, post)
    if not field.present:
        problem = "Enter a value." if field.required and field.requested else ""
        return ABSENT, replace(field, problem=problem)
    readings = [
        _read_inside(child, post)
        for child in field.children
        if field.shape.kind != "variants" or child.key == field.children[field.chosen].key
    ]
    read = {shown.key: shown for _, shown in readings}
    children = tuple(read.get(child.key) or clear_problems(_read_inside(child, post)[1]) for child in field.children)
    children = tuple(replace(child, origin=old.origin) for child, old in zip(children, field.children, strict=True))
    return _join(field, [part for part, _ in readings]), replace(field, children=children)


def _write(part: JsonValue | Absent, shown: Field) -> str:
    """Return a submitted value as JSON, or all of its texts while one of them is invalid."""
    if shown.faulty:
        return "\n".join(text for key, text in shown.inputs if key[-1:].isdecimal())
    return "" if isinstance(part, Absent) else write_pretty(part)


def _join(field: Field, parts: Sequence[JsonValue | Absent]) -> JsonValue | Absent:
    if field.shape.kind == "variants":
        return parts[0]
    if field.shape.kind == "list":
        return [part for part in parts if not isinstance(part, Absent)]
    pairs = zip(field.children, parts, strict=True)
    return {child.name: part for child, part in pairs if child.name is not None and not isinstance(part, Absent)}


def _nest(field: Field, kind: str, children: Sequence[Field] = (), *, present: bool = True, chosen: int = 0) -> Field:
    shape = replace(field.shape, kind=kind)
    return replace(field, shape=shape, children=tuple(children), present=present, chosen=chosen)


def _has_controls(shape: Shape) -> bool:
    if shape.kind != "json":
        return True
    return bool(properties_of(shape.node, MANY_PROPERTIES, shape.root) or entries_of(shape) or variants_of(shape))


def _split(key: str) -> tuple[str, int]:
    parent, _, text = key.rpartition(".")
    place = _read_number(text)
    return (key, 0) if place is None else (parent, place)


def _read_number(text: str) -> int | None:
    """Return a number of entries or a place among them; None for any other text, and for more than three digits."""
    return int(text) if text.isdecimal() and len(text) < 4 else None


def _move(post: dict[str, str], action: str, parent: str, place: int) -> None:
    order = [*range(min(_read_number(post.get(f"{parent}.#", "")) or 0, MANY_ENTRIES))]
    target = {"up": place - 1, "down": place + 1}.get(action, place)
    if place not in order or target not in order:
        return
    if action == "remove":
        order.remove(place)
    else:
        order[place], order[target] = order[target], order[place]
    prefix = f"{parent}."
    entries: dict[str, list[tuple[str, str]]] = {}
    for key in [key for key in post if key.startswith(prefix) and key.removeprefix(prefix)[:1].isdigit()]:
        entry, _, rest = key.removeprefix(prefix).partition(".")
        entries.setdefault(entry, []).append((rest, post.pop(key)))
    for new, old in enumerate(order):
        for rest, text in entries.get(str(old), ()):
            post[f"{prefix}{new}.{rest}" if rest else f"{prefix}{new}"] = text
    post[f"{parent}.#"] = str(len(order))


MANY_FIELDS = 40  # arguments with more fields are edited as one JSON text

_PATTERN = " does not match "  # the validator quotes the input and a regular expression


class Reading(NamedTuple):
    """The submitted value, and the fields with any problems."""

    value: JsonValue
    fields: tuple[Field, ...]

    @property
    def valid(self) -> bool:
        return not any(field.faulty for field in self.fields)


def args_fields(schema: JsonObject | None, args: JsonObject) -> tuple[Field, ...]:
    """Return a field for every argument of the tool's schema, and for every further argument of the call."""
    known = properties_of(schema, MANY_FIELDS) if schema is not None else []
    names = {name for name, _, _ in known}
    extra = [(name, shape_of_value(value), False) for name, value in args.items() if name not in names]
    if not known or len(known) + len(extra) > MANY_FIELDS:
        return (make_field("f0", None, Shape("json"), required=True, original=args),)
    return tuple(
        make_field(f"f{place}", name, shape, required=required, original=args.get(name, ABSENT))
        for place, (name, shape, required) in enumerate([*known, *extra])
    )


def value_fields(schema: JsonObject | None, choices: Sequence[JsonValue] | None) -> tuple[Field, ...]:
    """Return the fields of a requested value: one, or one per property of an object."""
    known = properties_of(schema, MANY_FIELDS) if schema is not None and choices is None else []
    if not 0 < len(known) <= MANY_FIELDS:
        return (_requested("v0", None, _requested_shape(schema, choices), required=True),)
    return tuple(
        _requested(f"v{place}", name, shape, required=required) for place, (name, shape, required) in enumerate(known)
    )


def read_fields(fields: Iterable[Field], posted: Post) -> Reading:
    """Return the submitted value, with the types of the fields."""
    value: JsonValue = {}
    shown: list[Field] = []
    for field in fields:
        part, read = read_field(field, posted)
        shown.append(read)
        if read.faulty:
            continue
        if field.name is None:
            value = None if isinstance(part, Absent) else part
        elif not isinstance(part, Absent) and isinstance(value, dict):
            value[field.name] = part
    return Reading(value, tuple(shown))


def note_problems(fields: Iterable[Field], problems: Iterable[str], root: str) -> tuple[Field, ...]:
    """Return the fields with their problems; a problem names its place, such as `args.amount: …`."""
    parsed = [problem.partition(": ") for problem in problems]

    return tuple(_note(field, root if field.name is None else f"{root}.{field.name}", parsed) for field in fields)


def _note(field: Field, place: str, problems: Sequence[tuple[str, str, str]]) -> Field:
    own = [problem for problem in problems if problem[0] == place or problem[0].startswith((f"{place}.", f"{place}["))]
    inside = {child.key: _note(child, where, own) for child, where in _list_places(field, place)}
    field = replace(field, children=tuple(inside.get(child.key, child) for child in field.children))
    texts = [text for path, _, text in own if path == place or not field.faulty]
    if texts and (field.masked or any(_PATTERN in text for text in texts)):
        return replace(field, problem=field.shape.description or _describe_form(field.shape))
    return replace(field, problem=field.problem or "; ".join(texts))


def _describe_form(shape: Shape) -> str:
    if shape.exact_digits:
        return _("%(count)s digits, no spaces.", count=shape.exact_digits)
    return _("Digits only, no spaces.") if shape.digits else _("This does not have the required form.")


def _list_places(field: Field, place: str) -> list[tuple[Field, str]]:
    if field.shape.kind == "variants":
        return [(field.children[field.chosen], place)] if field.children else []
    if field.shape.kind == "list":
        return [(child, f"{place}[{index}]") for index, child in enumerate(field.children)]
    return [(child, f"{place}.{child.name}") for child in field.children]


def _requested_shape(schema: JsonObject | None, choices: Sequence[JsonValue] | None) -> Shape:
    if choices is not None:
        return Shape("choice", options=tuple(choices))
    return shape_of(schema, schema) if schema is not None else Shape("text")


def _requested(key: str, name: str | None, shape: Shape, *, required: bool) -> Field:
    return Field(key, name, shape, required, ABSENT, "", requested=required)
