"""The shorthands of conditions: what each one yields, what computes it, and how its value is recorded and shown."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.budgets import weigh_mail, weigh_search, weigh_shell, weigh_sql, weigh_texts, weigh_values
from sayso.core.policy.functions import addresses
from sayso.core.policy.functions.detectors import has_card, has_iban, has_mail, has_secret, list_scalars
from sayso.core.policy.functions.shell.commands import read_shell
from sayso.core.policy.functions.sql.statements import check_database, read_sql
from sayso.core.text.redaction import MASK
from sayso.errors import SaysoError


class Kind(StrEnum):
    """The type of a value, by the letter of the variables that hold it."""

    BOOL = "b"
    NUMBER = "i"
    TEXT = "t"
    TEXTS = "l"
    ANY = "d"


@dataclass(frozen=True)
class Shorthand:
    """A computed value, or several by name (`fields`), of one argument and perhaps a parameter.

    `check` raises `Uncomputable` for a parameter that can never work. `weigh` bounds the microseconds of `compute`.
    A `sample` is read once when a condition is compiled, so that no call waits until a parser is loaded.
    `any_value` says that the argument may be any JSON. A value that repeats the argument is not `recorded`.
    """

    compute: Callable[..., JsonValue]
    kind: Kind = Kind.BOOL
    fields: Mapping[str, Kind] = field(default_factory=dict)
    parameter: str = ""
    needs_parameter: bool = False
    check: Callable[[JsonValue], object] = str
    weigh: Callable[[JsonValue], float] = weigh_texts
    sample: str = ""
    example: str = "text"
    any_value: bool = False
    recorded: bool = True

    def load(self, *parameter: str) -> None:
        if self.sample:
            with suppress(SaysoError):  # a parameter that can never work is reported elsewhere
                self.compute(self.sample, *parameter)

    @property
    def usage(self) -> str:
        """The arguments of the call, such as `(args.query)`."""
        return f"(args.{self.example}{f', {self.parameter}' if self.needs_parameter else ''})"

    def kind_of(self, fact: str) -> Kind:
        return self.fields[fact] if self.fields else self.kind


_SHELL = {
    "programs": Kind.TEXTS,
    "calls": Kind.TEXTS,
    "lines": Kind.TEXTS,
    "commands": Kind.NUMBER,
    "pipes": Kind.NUMBER,
    "reads_files": Kind.TEXTS,
    "writes_files": Kind.TEXTS,
    "substitutes": Kind.BOOL,
}
_SQL = {
    "statements": Kind.NUMBER,
    "kinds": Kind.TEXTS,
    "tables": Kind.TEXTS,
    "functions": Kind.TEXTS,
    "writes": Kind.BOOL,
    "has_where": Kind.BOOL,
}
_URL = {"scheme": Kind.TEXT, "host": Kind.TEXT, "port": Kind.NUMBER, "path": Kind.TEXT, "has_user": Kind.BOOL}
_PATH = {"absolute": Kind.BOOL, "normal": Kind.TEXT, "folder": Kind.TEXT, "name": Kind.TEXT, "extension": Kind.TEXT}
_MAIL = {"addresses": Kind.TEXTS, "domains": Kind.TEXTS, "count": Kind.NUMBER}

SHORTHANDS: dict[str, Shorthand] = {
    "shell": Shorthand(read_shell, fields=_SHELL, weigh=weigh_shell, example="command", sample="ls"),
    "sql": Shorthand(
        read_sql,
        fields=_SQL,
        weigh=weigh_sql,
        parameter='"postgres"',
        check=check_database,
        example="query",
        sample="select 1",
    ),
    "http": Shorthand(addresses.read_url, fields=_URL, parameter='"ftp"', check=addresses.check_schemes, example="url"),
    "path": Shorthand(addresses.read_path, fields=_PATH, example="file"),
    "mail": Shorthand(addresses.read_mail, fields=_MAIL, weigh=weigh_mail, example="to"),
    "host": Shorthand(addresses.read_hosts, Kind.ANY, parameter='"ftp"', check=addresses.check_schemes, example="url"),
    "within": Shorthand(
        addresses.is_within, parameter='"/srv/data"', needs_parameter=True, check=addresses.check_root, example="file"
    ),
    "leaves": Shorthand(list_scalars, Kind.TEXTS, weigh=weigh_values, any_value=True, recorded=False),
    "has_mail": Shorthand(has_mail, weigh=weigh_search, any_value=True),
    "has_iban": Shorthand(has_iban, weigh=weigh_search, any_value=True),
    "has_card": Shorthand(has_card, weigh=weigh_search, any_value=True),
    "has_secret": Shorthand(has_secret, weigh=weigh_search, any_value=True),
}


MOST_SHOWN = 20
MOST_SHOWN_CHARS = 200  # the limits of entries, and of characters in each text, that are recorded of one value
_ARGUMENT = re.compile(r"\w+\(args\.?([^.\[,)]*)")


def shorten(value: JsonValue) -> JsonValue:
    """Return a value with its long texts and lists cut."""
    if isinstance(value, dict):
        return {name: shorten(part) for name, part in value.items()}
    if isinstance(value, list):
        more = [f"… {len(value) - MOST_SHOWN} more"] if len(value) > MOST_SHOWN else []
        return [*(shorten(entry) for entry in value[:MOST_SHOWN]), *more]
    return f"{value[:MOST_SHOWN_CHARS]}…" if isinstance(value, str) and len(value) > MOST_SHOWN_CHARS else value


def mask_computed(computed: JsonObject, args: JsonObject, redacted: JsonObject) -> JsonObject:
    """Return computed values by label, with the texts masked whose argument differs after its secrets are masked."""
    if args == redacted:
        return computed
    names = {label: match[1] for label in computed if (match := _ARGUMENT.match(label))}  # the context has no secrets
    secret = {label for label, name in names.items() if name not in args or args[name] != redacted[name]}
    return {label: _mask(value) if label in secret else value for label, value in computed.items()}


def _mask(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _mask(part) for name, part in value.items()}
    if isinstance(value, list):
        return [MASK] if value else []
    return MASK if isinstance(value, str) else value
