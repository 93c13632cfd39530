"""The shorthands of conditions: what each one yields, and what computes it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from sayso.errors import SaysoError
from sayso.policy.budgets.weights import weigh_mail, weigh_search, weigh_shell, weigh_sql, weigh_texts, weigh_values
from sayso.policy.words.addresses import check_schemes, read_hosts, read_mail, read_url
from sayso.policy.words.detectors import has_card, has_iban, has_mail, has_secret, list_scalars
from sayso.policy.words.paths import check_root, is_within, read_path
from sayso.policy.words.shell import read_shell
from sayso.policy.words.sql import check_database, read_sql


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
        """Read the sample, if there is one."""
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
_PATH = {
    "absolute": Kind.BOOL,
    "normal": Kind.TEXT,
    "folder": Kind.TEXT,
    "name": Kind.TEXT,
    "extension": Kind.TEXT,
}
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
    "http": Shorthand(read_url, fields=_URL, parameter='"ftp"', check=check_schemes, example="url"),
    "path": Shorthand(read_path, fields=_PATH, example="file"),
    "mail": Shorthand(read_mail, fields=_MAIL, weigh=weigh_mail, example="to"),
    "host": Shorthand(read_hosts, Kind.ANY, parameter='"ftp"', check=check_schemes, example="url"),
    "within": Shorthand(is_within, parameter='"/srv/data"', needs_parameter=True, check=check_root, example="file"),
    "leaves": Shorthand(list_scalars, Kind.TEXTS, weigh=weigh_values, any_value=True, recorded=False),
    "has_mail": Shorthand(has_mail, weigh=weigh_search, any_value=True),
    "has_iban": Shorthand(has_iban, weigh=weigh_search, any_value=True),
    "has_card": Shorthand(has_card, weigh=weigh_search, any_value=True),
    "has_secret": Shorthand(has_secret, weigh=weigh_search, any_value=True),
}
