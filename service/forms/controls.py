"""One control of a form: how its value is shown, and how the submitted text is read.

An untouched field returns exactly its original value, although browsers change line breaks. Types come from the
schema; the desk validates the complete value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final

from pydantic import JsonValue

from sayso.core.canonical_json import canonical_json, parse_json
from sayso.core.rendering.views import normalize as normalize_name
from sayso.core.text.language import _, cut
from sayso.core.text.numbers import Ambiguous, read_number, write_digits, write_number
from sayso.core.text.summaries import write_key, write_pretty
from sayso.errors import InvalidInput
from service.forms.schemas import Shape

LONG_TEXT_CHARS = 60
MOST_SEGMENTS = 5
TITLE_CHARS = 80
NESTED = ("object", "list", "variants")  # the kinds of fields that have other fields inside
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

Post = Mapping[str, str]  # the submitted values by the key of their field


class Absent:
    """The value of an omitted argument."""


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Field:
    """One control; without a name, the whole value. A `requested` value has no original, so it must be given.

    A nested field has `children`, unless it is not `present`; of alternatives one is `chosen`. The `origin` of an entry
    of a list is the place of its original.
    """

    key: str
    name: str | None
    shape: Shape
    required: bool
    original: JsonValue | Absent
    text: str
    requested: bool = False
    problem: str = ""
    children: tuple["Field", ...] = ()
    present: bool = True
    chosen: int = 0
    origin: str = ""

    @property
    def control(self) -> str:
        if self.shape.kind == "boolean":
            return "choice"
        if self.shape.kind == "integer":
            return "number"
        if self.shape.kind == "text" and (len(self.text) > LONG_TEXT_CHARS or "\n" in self.text or "\r" in self.text):
            return "lines"
        if self.shape.kind == "text" and self.shape.date and (not self.text or is_date(self.text)):
            return "date"
        return self.shape.kind

    @property
    def faulty(self) -> bool:
        """Whether the field or one inside has a problem."""
        return bool(self.problem) or any(child.faulty for child in self.children)

    @property
    def inputs(self) -> list[tuple[str, str]]:
        """The controls of the field and of those inside, with their texts, as a browser sends them."""
        if self.shape.kind not in NESTED:
            return [(self.key, self.text)]
        pairs = [(f"{self.key}.?", "1" if self.present else "0")]
        if self.shape.kind == "list":
            pairs += [(f"{self.key}.#", str(len(self.children)))]
            pairs += [(f"{child.key}.@", child.origin) for child in self.children]
        if self.shape.kind == "variants":
            pairs.append((f"{self.key}.~", str(self.chosen)))
        return [*pairs, *(pair for child in self.children for pair in child.inputs)]

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
            (write_canonical(value), value if isinstance(value, str) else write_canonical(value))
            for value in self.shape.options
        ]

    @property
    def shown_name(self) -> str:
        return write_key(self.name or "")

    @property
    def title(self) -> str:
        """The schema's name of the value, unless it only repeats the argument's."""
        own = self.name is not None and normalize_name(self.shape.title) != normalize_name(self.name)
        return cut(self.shape.title, TITLE_CHARS) if own else ""

    @property
    def lines(self) -> int:
        return max(2, self.text.count("\n") + 1)

    @property
    def rows(self) -> int:
        return max(2, min(14, self.text.count("\n") + 1 + len(self.text) // 80))


def normalize(text: str) -> str:
    """Return a form's text with LF line breaks, and with U+FFFD in place of NUL."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def make_field(key: str, name: str | None, shape: Shape, *, required: bool, original: JsonValue | Absent) -> Field:
    """Return the field of a value; one that does not fit the control of its schema is edited as JSON."""
    if isinstance(original, dict | list) or not _fits(shape, original):
        shape = replace(shape, kind="json")
    picked = shape.kind in ("choice", "boolean")
    offered = [write_canonical(option) for option in shape.options]
    if picked and not isinstance(original, Absent) and write_canonical(original) not in offered:
        # A browser shows and sends the first option if the value is not among the options.
        shape = replace(shape, options=(*shape.options, original))
    return Field(key, name, shape, required, original, _show(shape, original))


def shape_of_value(value: JsonValue) -> Shape:
    """Return the shape of a value without a schema."""
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
        return write_canonical(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else write_digits(write_canonical(value))


def read_leaf(field: Field, typed: str) -> JsonValue | Absent:
    """Return the value of a submitted text; raises `InvalidInput`."""
    if typed == normalize(field.text) and not (isinstance(field.original, Absent) and field.requested):
        return field.original
    if field.shape.kind == "text":
        return typed if typed else _empty(field, "")
    if not typed.strip():
        return _empty(field, ABSENT)
    if field.shape.kind in ("choice", "boolean"):
        for option in field.shape.options:
            if write_canonical(option) == typed:
                return option
        raise InvalidInput(_("Choose one of the listed values."))
    return _read_json(_read_number(typed.strip()) if field.shape.kind in ("number", "integer") else typed)


def read_typed_number(typed: str) -> str:
    """Return a typed number as it is stored, and any other text as it is; raises `InvalidInput` for two readings."""
    try:
        return read_number(typed)
    except Ambiguous as error:
        readings = {"typed": typed, "whole": error.whole, "fraction": error.fraction}
        raise InvalidInput(_("%(typed)s may mean %(whole)s or %(fraction)s. Type one of these.", **readings)) from error
    except ValueError:
        return typed


def _read_number(typed: str) -> str:
    stored = read_typed_number(typed)
    if not _NUMBER.fullmatch(stored):
        raise InvalidInput(_("Enter a number, such as 12 or %(example)s.", example=write_number(Decimal("12.5"))))
    return stored


def _fits(shape: Shape, original: JsonValue | Absent) -> bool:
    if isinstance(original, Absent) or (original is None and shape.nullable):
        return True
    if shape.kind == "text":
        return isinstance(original, str)
    if shape.kind in ("number", "integer"):
        return isinstance(original, int | float) and not isinstance(original, bool)
    return True


def _empty(field: Field, default: JsonValue | Absent) -> JsonValue | Absent:
    if not field.required:
        return ABSENT
    if field.shape.nullable:
        return None
    if field.requested or isinstance(default, Absent):
        raise InvalidInput(_("Enter a value."))
    return default


def _read_json(typed: str) -> JsonValue:
    try:
        return parse_json(typed)
    except InvalidInput as error:
        raise InvalidInput(error.message.replace("The body", "This").replace(" and send it again", "")) from error


def write_canonical(value: JsonValue) -> str:
    """Return canonical JSON as text."""
    return canonical_json(value).decode()


def is_date(text: str) -> bool:
    """Return whether a browser's control for dates can hold the text; it would show another as empty."""
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False
