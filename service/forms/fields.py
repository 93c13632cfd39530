"""Form fields from a JSON schema, and JSON from a submitted form.

An untouched field returns exactly its original value, although browsers change line breaks. Types come from the
schema; the desk validates the complete value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, canonical_json, parse_json
from sayso.errors import InvalidInput
from sayso.text.summaries import write_key, write_pretty
from service.forms.schemas import Shape, properties_of, shape_of

MANY_FIELDS = 40  # arguments with more fields are edited as one JSON text
LONG_TEXT_CHARS = 60
MOST_SEGMENTS = 5

_PATTERN = " does not match "  # the validator quotes the input and a regular expression
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


class Absent:
    """The value of an omitted argument."""


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Field:
    """One control; without a name, the whole value. A `requested` value has no original, so it must be given."""

    key: str
    name: str | None
    shape: Shape
    required: bool
    original: JsonValue | Absent
    text: str
    requested: bool = False
    problem: str = ""

    @property
    def control(self) -> str:
        if self.shape.kind == "boolean":
            return "choice"
        if self.shape.kind == "integer":
            return "number"
        if self.shape.kind == "text" and (len(self.text) > LONG_TEXT_CHARS or "\n" in self.text or "\r" in self.text):
            return "lines"
        return self.shape.kind

    @property
    def masked(self) -> bool:
        """Whether the value is typed unseen, and never shown again."""
        return self.requested and self.shape.secret and not self.segmented

    @property
    def segmented(self) -> bool:
        """Whether the options are few enough to be buttons in a row."""
        picked = self.control == "choice" and self.required
        return self.requested and picked and len(self.shape.options) <= MOST_SEGMENTS

    @property
    def options(self) -> list[tuple[str, str]]:
        return [
            (_canonical(value), value if isinstance(value, str) else _canonical(value)) for value in self.shape.options
        ]

    @property
    def shown_name(self) -> str:
        return write_key(self.name or "")

    @property
    def rows(self) -> int:
        return max(2, min(14, self.text.count("\n") + 1 + len(self.text) // 80))


@dataclass(frozen=True)
class Reading:
    """The submitted value, and the fields with any problems."""

    value: JsonValue
    fields: tuple[Field, ...]

    @property
    def valid(self) -> bool:
        return not any(field.problem for field in self.fields)


def args_fields(schema: JsonObject | None, args: JsonObject) -> tuple[Field, ...]:
    """Return a field for every argument of the tool's schema, and for every further argument of the call."""
    known = properties_of(schema, MANY_FIELDS) if schema is not None else []
    names = {name for name, _, _ in known}
    extra = [(name, _shape_of_value(value), False) for name, value in args.items() if name not in names]
    if not known or len(known) + len(extra) > MANY_FIELDS:
        return (_field("f0", None, Shape("json"), required=True, original=args),)
    return tuple(
        _field(f"f{place}", name, shape, required=required, original=args.get(name, ABSENT))
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


def read_fields(fields: Iterable[Field], posted: Mapping[str, str]) -> Reading:
    """Return the submitted value, with the types of the fields."""
    value: JsonValue = {}
    shown: list[Field] = []
    for field in fields:
        typed = normalize(posted.get(field.key, ""))
        kept = "" if field.masked else typed
        try:
            part = _read(field, typed)
            shown.append(replace(field, text=kept))
        except InvalidInput as error:
            shown.append(replace(field, text=kept, problem=error.message))
            continue
        if field.name is None:
            value = None if isinstance(part, Absent) else part
        elif not isinstance(part, Absent) and isinstance(value, dict):
            value[field.name] = part
    return Reading(value, tuple(shown))


def note_problems(fields: Iterable[Field], problems: Iterable[str], root: str) -> tuple[Field, ...]:
    """Return the fields with their problems; a problem names its place, such as `args.amount: …`."""
    parsed = [problem.partition(": ") for problem in problems]

    def problem_of(field: Field) -> str:
        place = root if field.name is None else f"{root}.{field.name}"
        own = [text for path, _, text in parsed if path == place or path.startswith((f"{place}.", f"{place}["))]
        if own and (field.masked or any(_PATTERN in text for text in own)):
            return field.shape.description or "This does not have the required form."
        return field.problem or "; ".join(own)

    return tuple(replace(field, problem=problem_of(field)) for field in fields)


def normalize(text: str) -> str:
    """Return a form's text with LF line breaks, and with U+FFFD in place of NUL."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _requested_shape(schema: JsonObject | None, choices: Sequence[JsonValue] | None) -> Shape:
    if choices is not None:
        return Shape("choice", options=tuple(choices))
    return shape_of(schema, schema) if schema is not None else Shape("text")


def _requested(key: str, name: str | None, shape: Shape, *, required: bool) -> Field:
    return Field(key, name, shape, required, ABSENT, "", requested=required)


def _field(key: str, name: str | None, shape: Shape, *, required: bool, original: JsonValue | Absent) -> Field:
    if isinstance(original, dict | list):
        shape = replace(shape, kind="json")
    picked = shape.kind in ("choice", "boolean")
    if picked and not isinstance(original, Absent) and not _offered(shape.options, original):
        # A browser shows and sends the first option if the value is not among the options.
        shape = replace(shape, options=(*shape.options, original))
    return Field(key, name, shape, required, original, _show(shape, original))


def _shape_of_value(value: JsonValue) -> Shape:
    if isinstance(value, bool):
        return Shape("boolean", options=(True, False))
    if isinstance(value, int | float):
        return Shape("number")
    return Shape("text") if isinstance(value, str) else Shape("json")


def _show(shape: Shape, value: JsonValue | Absent) -> str:
    if isinstance(value, Absent):
        return ""
    if shape.kind == "json":
        return write_pretty(value)
    if shape.kind in ("choice", "boolean"):
        return _canonical(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else _canonical(value)


def _read(field: Field, typed: str) -> JsonValue | Absent:
    if typed == normalize(field.text) and _can_keep(field):
        return field.original
    if field.shape.kind == "text":
        return typed if typed else _empty(field, "")
    if not typed.strip():
        return _empty(field, ABSENT)
    if field.shape.kind in ("choice", "boolean"):
        return _read_choice(field, typed)
    if field.shape.kind in ("number", "integer") and not _NUMBER.fullmatch(typed.strip()):
        raise InvalidInput("Enter a number, such as 12 or 12.5.")
    return _read_json(typed)


def _can_keep(field: Field) -> bool:
    original = field.original
    if isinstance(original, Absent):
        return not field.requested
    if field.shape.kind == "text":
        return isinstance(original, str) or (original is None and field.shape.nullable)
    if field.shape.kind in ("number", "integer"):
        number = isinstance(original, int | float) and not isinstance(original, bool)
        return number or (original is None and field.shape.nullable)
    return True


def _empty(field: Field, default: JsonValue | Absent) -> JsonValue | Absent:
    if not field.required:
        return ABSENT
    if field.shape.nullable:
        return None
    if field.requested or isinstance(default, Absent):
        raise InvalidInput("Enter a value.")
    return default


def _read_choice(field: Field, typed: str) -> JsonValue:
    for option in field.shape.options:
        if _canonical(option) == typed:
            return option
    raise InvalidInput("Choose one of the listed values.")


def _read_json(typed: str) -> JsonValue:
    try:
        return parse_json(typed)
    except InvalidInput as error:
        raise InvalidInput(error.message.replace("The body", "This").replace(" and send it again", "")) from error


def _offered(options: Sequence[JsonValue], value: Any) -> bool:
    return _canonical(value) in map(_canonical, options)


def _canonical(value: JsonValue) -> str:
    return canonical_json(value).decode()
