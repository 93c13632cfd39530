"""Form fields from a JSON schema, and JSON from a submitted form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.text.language import _
from service.forms.controls import ABSENT, Absent, Field, Post, make_field, shape_of_value
from service.forms.nested import read_field
from service.forms.schemas import Shape, properties_of, shape_of

MANY_FIELDS = 40  # arguments with more fields are edited as one JSON text

_PATTERN = " does not match "  # the validator quotes the input and a regular expression


@dataclass(frozen=True)
class Reading:
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
    """Return the fields inside with their places in the value, as the validator writes them."""
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
