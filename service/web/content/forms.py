"""Turn a JSON schema into form fields, and what was typed into them back into JSON.

A field that nobody touched gives back exactly the value it showed, whatever browsers do to line breaks on the way.
Types come from the schema; whether the whole fits it is the desk's to say.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import JsonValue

from sayso.canonical_json import JsonObject, canonical_json, parse_json
from sayso.errors import InvalidInput
from sayso.text.summaries import write_key, write_pretty
from service.web.content.schemas import Shape, properties_of, shape_of

MANY_FIELDS = 40
"""Beyond this the arguments are edited as one JSON text."""

LONG_TEXT_CHARS = 60


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


class Absent:
    """The value of an argument that is not sent at all."""


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Field:
    """One control: what it is for, what it shows, and what it means. Without a name it is for the whole value.

    What is `asked` for is not yet there, so that leaving it empty is no answer; an argument may go on missing.
    """

    key: str
    name: str | None
    shape: Shape
    required: bool
    original: JsonValue | Absent
    text: str
    asked: bool = False
    problem: str = ""

    @property
    def control(self) -> str:
        """Which control fits: text, lines, number, choice or json."""
        if self.shape.kind == "boolean":
            return "choice"
        if self.shape.kind == "integer":
            return "number"
        if self.shape.kind == "text" and (len(self.text) > LONG_TEXT_CHARS or "\n" in self.text or "\r" in self.text):
            return "lines"
        return self.shape.kind

    @property
    def options(self) -> list[tuple[str, str]]:
        """What a choice offers: the value as JSON, and the words for it."""
        return [(_canonical(one), one if isinstance(one, str) else _canonical(one)) for one in self.shape.options]

    @property
    def shown_name(self) -> str:
        """The name of the argument, in quotes where it could be taken for another."""
        return write_key(self.name or "")

    @property
    def rows(self) -> int:
        """How many lines the control shows."""
        return max(2, min(14, self.text.count("\n") + 1 + len(self.text) // 80))


@dataclass(frozen=True)
class Reading:
    """What the fields came to: a value, or the fields again with their problems."""

    value: JsonValue
    fields: tuple[Field, ...]

    @property
    def fits(self) -> bool:
        """Whether every field could be read."""
        return not any(field.problem for field in self.fields)


def args_fields(schema: JsonObject | None, args: JsonObject) -> tuple[Field, ...]:
    """Return a field for every argument that the tool knows and for every further one that was sent."""
    known = properties_of(schema, MANY_FIELDS) if schema is not None else []
    names = {name for name, _, _ in known}
    extra = [(name, _shape_alone(value), False) for name, value in args.items() if name not in names]
    if not known or len(known) + len(extra) > MANY_FIELDS:
        return (_field("f0", None, Shape("json"), required=True, original=args),)
    return tuple(
        _field(f"f{place}", name, shape, required=required, original=args.get(name, ABSENT))
        for place, (name, shape, required) in enumerate([*known, *extra])
    )


def value_fields(schema: JsonObject | None, choices: Sequence[JsonValue] | None) -> tuple[Field, ...]:
    """Return the fields of a value that is asked for: one, or one for each property of an object."""
    known = properties_of(schema, MANY_FIELDS) if schema is not None and choices is None else []
    if not 0 < len(known) <= MANY_FIELDS:
        return (_asked("v0", None, _shape_asked(schema, choices), required=True),)
    return tuple(
        _asked(f"v{place}", name, shape, required=required) for place, (name, shape, required) in enumerate(known)
    )


def read_fields(fields: Iterable[Field], posted: Mapping[str, str]) -> Reading:
    """Return what was typed, typed as the fields say; a field without a name is the whole value."""
    value: JsonValue = {}
    shown: list[Field] = []
    for field in fields:
        typed = normalize(posted.get(field.key, ""))
        try:
            one = _read(field, typed)
            shown.append(replace(field, text=typed))
        except InvalidInput as error:
            shown.append(replace(field, text=typed, problem=error.message))
            continue
        if field.name is None:
            value = None if isinstance(one, Absent) else one
        elif not isinstance(one, Absent) and isinstance(value, dict):
            value[field.name] = one
    return Reading(value, tuple(shown))


def note_problems(fields: Iterable[Field], problems: Iterable[str], root: str) -> tuple[Field, ...]:
    """Return the fields with each problem, such as `args.amount: …`, beside the field it names."""
    told = [problem.partition(": ") for problem in problems]

    def problem_of(field: Field) -> str:
        place = root if field.name is None else f"{root}.{field.name}"
        mine = [words for path, _, words in told if path == place or path.startswith((f"{place}.", f"{place}["))]
        return field.problem or "; ".join(mine)

    return tuple(replace(field, problem=problem_of(field)) for field in fields)


def normalize(text: str) -> str:
    """Return a text as a form brings it back: line breaks are one sign, and NUL is the replacement character."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _shape_asked(schema: JsonObject | None, choices: Sequence[JsonValue] | None) -> Shape:
    if choices is not None:
        return Shape("choice", options=tuple(choices))
    return shape_of(schema, schema) if schema is not None else Shape("text")


def _asked(key: str, name: str | None, shape: Shape, *, required: bool) -> Field:
    return Field(key, name, shape, required, ABSENT, "", asked=required)


def _field(key: str, name: str | None, shape: Shape, *, required: bool, original: JsonValue | Absent) -> Field:
    if isinstance(original, dict | list):
        shape = replace(shape, kind="json")
    picked = shape.kind in ("choice", "boolean")
    if picked and not isinstance(original, Absent) and not _offered(shape.options, original):
        # A browser shows, and sends, the first option in the place of one that is not there.
        shape = replace(shape, options=(*shape.options, original))
    return Field(key, name, shape, required, original, _show(shape, original))


def _shape_alone(value: JsonValue) -> Shape:
    """How to edit an argument that the schema does not know."""
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
    if typed == normalize(field.text) and _agrees(field):
        return field.original
    if field.shape.kind == "text":
        return typed if typed else _empty(field, "")
    if not typed.strip():
        return _empty(field, ABSENT)
    if field.shape.kind in ("choice", "boolean"):
        return _read_choice(field, typed)
    if field.shape.kind in ("number", "integer") and not _NUMBER.fullmatch(typed.strip()):
        raise InvalidInput("Write a number, such as 12 or 12.5.")
    return _read_json(typed)


def _agrees(field: Field) -> bool:
    """Whether the value shown is one that this field could yield, so that untouched means unchanged."""
    original = field.original
    if isinstance(original, Absent):
        return not field.asked
    if field.shape.kind == "text":
        return isinstance(original, str) or (original is None and field.shape.nullable)
    if field.shape.kind in ("number", "integer"):
        number = isinstance(original, int | float) and not isinstance(original, bool)
        return number or (original is None and field.shape.nullable)
    return True


def _empty(field: Field, other: JsonValue | Absent) -> JsonValue | Absent:
    """What an empty control means: not sent where that is allowed, else null, else an empty text or a fault."""
    if not field.required:
        return ABSENT
    if field.shape.nullable:
        return None
    if field.asked or isinstance(other, Absent):
        raise InvalidInput("This cannot be left empty.")
    return other


def _read_choice(field: Field, typed: str) -> JsonValue:
    for option in field.shape.options:
        if _canonical(option) == typed:
            return option
    raise InvalidInput("Choose one of the values offered.")


def _read_json(typed: str) -> JsonValue:
    try:
        return parse_json(typed)
    except InvalidInput as error:
        raise InvalidInput(error.message.replace("The body", "This").replace(" and send it again", "")) from error


def _offered(options: Sequence[JsonValue], value: Any) -> bool:
    return _canonical(value) in map(_canonical, options)


def _canonical(value: JsonValue) -> str:
    return canonical_json(value).decode()
