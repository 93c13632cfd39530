"""Shorthands in the text of a condition, such as `shell(args.command).programs`, what replaces them, and their values.

The engine cannot call Python safely (docs/decisions/computed-before.md). Each shorthand becomes a variable of the same
length, and its value is computed before the evaluation.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.budgets import Computed, measure
from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.shorthands import SHORTHANDS, Kind, Shorthand, shorten
from sayso.errors import InvalidInput, SaysoError

MOST_VARIABLES = 32  # the limit of different values of one kind that a condition reads
MOST_PARTS = 1_000  # more parts than a reader finds in most texts; a loop over more ends at the engine's own limit
_SOURCES = ("args", "context", "claimed")
_TOKEN = re.compile(
    r"""(?P<text>
        [bB]?[rR](?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*')
        | [bB]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    ) | (?P<comment>//[^\n]*) | (?P<name>[A-Za-z_]\w*) | (?P<number>\d+(?:\.\d+)?) | (?P<sign>\S)""",
    re.DOTALL | re.VERBOSE,
)
_SEARCHES = ("contains", "endsWith", "indexOf", "lastIndexOf", "matches", "replace", "split", "startsWith", "substring")
_MENTION = re.compile(rf"\b(?:lists|constants|_[a-z][0-9]+|{'|'.join(SHORTHANDS)})\b")
_OURS = re.compile(r"_[a-z][0-9]+")
_PLAIN = re.compile(r"""["']([^"'\\]*)["']""")


class WordFault(InvalidInput, ValueError):
    """A shorthand is written wrongly; `offset` is its place in the expression."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(problem)
        self.problem, self.offset = problem, offset


@dataclass(frozen=True)
class Call:
    """A shorthand with its argument: a path below `args`, `context` or `claimed`, and a parameter.

    `parameter` is a text, or the name of a constant after `constants.`; None without one.
    """

    name: str
    path: tuple[str | int, ...]
    parameter: str | None = None
    is_constant: bool = False

    @property
    def shorthand(self) -> Shorthand:
        return SHORTHANDS[self.name]

    @property
    def source(self) -> str:
        """The argument as a condition states it, such as `args.items[0]`."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path[1:])
        return f"{self.path[0]}{''.join(steps)}"

    @property
    def label(self) -> str:
        """The call as reviewers see it, such as `sql(args.query, "mysql")`."""
        given = f"constants.{self.parameter}" if self.is_constant else f'"{self.parameter}"'
        return f"{self.name}({self.source}{f', {given}' if self.parameter is not None else ''})"


class Variable(NamedTuple):
    """What stands for one value of a call in the rewritten expression; `field` is empty for the whole value."""

    name: str
    call: Call
    field: str

    @property
    def label(self) -> str:
        return f"{self.call.label}.{self.field}" if self.field else self.call.label


@dataclass(frozen=True)
class Reading:
    """An expression whose shorthands are replaced by variables, and the named lists and constants that it uses."""

    text: str
    variables: tuple[Variable, ...] = ()
    lists: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the condition reads only what the call itself has."""
        return not (self.variables or self.lists or self.constants)


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


@dataclass
class _Reader:
    expression: str
    tokens: list[_Token]
    names: dict[tuple[Call, str], str] = field(default_factory=dict)
    spans: list[tuple[int, int, str]] = field(default_factory=list)

    def read(self) -> None:
        place = 0
        while place < len(self.tokens):
            token, after = self.tokens[place], self._text(place + 1)
            is_call = token.kind == "name" and after == "(" and self._text(place - 1) != "."
            place = self._read_call(place) if is_call and token.text in SHORTHANDS else place + 1

    def _read_call(self, start: int) -> int:
        """Replace the call that starts at a token; return the token after it."""
        name = self.tokens[start].text
        path, place = self._read_path(start + 2, name)
        parameter, is_constant = None, False
        if self._text(place) == ",":
            parameter, is_constant, place = self._read_parameter(place + 1, name)
        shorthand = SHORTHANDS[name]
        if self._text(place) != ")":
            raise self._fault(place, f"{name}() is not closed; write {name}{shorthand.usage}")
        if shorthand.needs_parameter if parameter is None else not shorthand.parameter:
            raise self._fault(start, f"write {name}{shorthand.usage}")
        if parameter is not None and not is_constant:
            try:
                shorthand.check(parameter)
            except Uncomputable as error:
                raise self._fault(place - 1, error.message) from error
        call = Call(name, path, parameter, is_constant)
        fact, end = self._read_field(place + 1, call)
        self._replace(start, end, call, fact)
        return end

    def _read_path(self, place: int, name: str) -> tuple[tuple[str | int, ...], int]:
        source = self._text(place)
        if source not in _SOURCES:
            words = f"{name}() reads an argument of the call, such as {name}(args.{SHORTHANDS[name].example})"
            raise self._fault(place, f"{words}; for every entry of a list, give it the whole list")
        path: list[str | int] = [source]
        place += 1
        while True:
            sign, token = self._text(place), self._token(place + 1)
            if sign == "." and token is not None and token.kind == "name" and self._text(place + 2) != "(":
                path.append(token.text)
                place += 2
            elif sign == "[" and token is not None and self._text(place + 2) == "]":
                path.append(self._read_key(token))
                place += 3
            elif sign in (".", "["):
                raise self._fault(place, f"{name}() takes an argument as it is; compute nothing in its brackets")
            else:
                return tuple(path), place

    def _read_key(self, token: _Token) -> str | int:
        if token.kind == "number" and token.text.isdigit():
            return int(token.text)
        plain = _PLAIN.fullmatch(token.text)
        if plain is None:
            raise WordFault("a key in brackets is a text in quotes or a number", token.start)
        return plain[1]

    def _read_parameter(self, place: int, name: str) -> tuple[str, bool, int]:
        token = self._token(place)
        plain = _PLAIN.fullmatch(token.text) if token is not None else None
        if plain is not None:
            return plain[1], False, place + 1
        constant = self._token(place + 2)
        if self._text(place) == "constants" and self._text(place + 1) == "." and constant is not None:
            return constant.text, True, place + 3
        raise self._fault(place, f"the second argument of {name}() is a text in quotes or a constant, constants.NAME")

    def _read_field(self, place: int, call: Call) -> tuple[str, int]:
        fields = call.shorthand.fields
        if not fields:
            return "", place
        token = self._token(place + 1)
        if self._text(place) != "." or token is None or token.kind != "name":
            known = ", ".join(f".{name}" for name in fields)
            raise self._fault(place - 1, f"{call.label} has several values; read one of them: {known}")
        if token.text not in fields:
            raise WordFault(f"{call.name}() has no {token.text!r}; {suggest(token.text, fields)}", token.start)
        return token.text, place + 2

    def _replace(self, start: int, end: int, call: Call, fact: str) -> None:
        kind = call.shorthand.kind_of(fact)
        if (call, fact) not in self.names:
            number = sum(1 for known, value in self.names if known.shorthand.kind_of(value) is kind)
            if number >= MOST_VARIABLES:
                raise self._fault(start, f"the condition reads more than {MOST_VARIABLES} computed values; split it")
            self.names[call, fact] = f"_{kind}{number}"
        self.spans.append((self.tokens[start].start, self.tokens[end - 1].end, self.names[call, fact]))

    def _token(self, place: int) -> _Token | None:
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def _text(self, place: int) -> str:
        token = self._token(place)
        return token.text if token is not None else ""

    def _fault(self, place: int, problem: str) -> WordFault:
        token = self._token(place)
        return WordFault(problem, token.start if token is not None else len(self.expression))


def read_words(expression: str) -> Reading:
    """Return the expression with its shorthands replaced; raises `WordFault`. Lines and columns stay as they are."""
    if not _MENTION.search(expression):
        return Reading(expression)
    tokens = list(_tokenize(expression))
    for token in tokens:
        if token.kind == "name" and _OURS.fullmatch(token.text):
            raise WordFault(f"undeclared reference to '{token.text}'", token.start)
    reader = _Reader(expression, tokens)
    reader.read()
    text = expression
    for start, end, name in reversed(reader.spans):
        blanks = "".join(sign if sign == "\n" else " " for sign in expression[start:end])
        text = text[:start] + name + blanks[len(name) :] + text[end:]
    return Reading(
        text,
        tuple(Variable(name, call, fact) for (call, fact), name in reader.names.items()),
        tuple(dict.fromkeys(_list_named(tokens, "lists"))),
        tuple(dict.fromkeys(_list_named(tokens, "constants"))),
    )


def list_text_tests(expression: str) -> Iterator[tuple[str, str]]:
    """Yield the arguments whose text a condition searches, such as `args.command`, with the function that does."""
    tokens = list(_tokenize(expression))
    texts = [token.text for token in tokens]
    for place, token in enumerate(tokens):
        if token.kind != "name" or token.text not in _SOURCES or texts[place - 1 : place] == ["."]:
            continue
        source, end = _read_source(texts, place)
        while texts[end : end + 1] == ["."] and texts[end + 2 : end + 4] == ["(", ")"]:
            end += 4  # such as .lowerAscii()
        function = texts[end + 1 : end + 2]
        if texts[end : end + 1] == ["."] and function and function[0] in _SEARCHES:
            yield source, function[0]
        elif texts[place - 2 : place] == ["matches", "("]:
            yield source, "matches"


def _read_source(texts: Sequence[str], place: int) -> tuple[str, int]:
    """Return an argument as conditions state it, and the place behind it."""
    source, end = texts[place], place + 1
    while end + 1 < len(texts):
        if texts[end] == "." and texts[end + 1].isidentifier() and texts[end + 2 : end + 3] != ["("]:
            source, end = f"{source}.{texts[end + 1]}", end + 2
        elif texts[end] == "[" and texts[end + 2 : end + 3] == ["]"]:
            plain = _PLAIN.fullmatch(texts[end + 1])
            source, end = f"{source}.{plain[1]}" if plain is not None else f"{source}[{texts[end + 1]}]", end + 3
        else:
            break
    return source, end


def suggest(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown name."""
    listed = [*known]
    close = difflib.get_close_matches(name, listed, n=1)
    return f"did you mean {close[0]!r}?" if close else f"use {', '.join(listed)}" if listed else "there are none"


def _tokenize(expression: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(expression):
        if match.lastgroup is not None and match.lastgroup != "comment":
            yield _Token(match.lastgroup, match[0], match.start(), match.end())


def _list_named(tokens: Sequence[_Token], source: str) -> Iterator[str]:
    """Yield the names after `lists.` or `constants.`, also in the form `lists["eu"]`."""
    for place, token in enumerate(tokens):
        if token.text != source or token.kind != "name" or (place and tokens[place - 1].text == "."):
            continue
        sign, name, end = (*(part.text for part in tokens[place + 1 : place + 4]), "", "", "")[:3]
        plain = _PLAIN.fullmatch(name)
        if sign == "." and name.isidentifier():
            yield name
        elif sign == "[" and plain is not None and end == "]":
            yield plain[1]
        else:
            raise WordFault(f"write which one, as in {source}.NAME", token.start)


class Computing:
    """The computed values of one call, and why others cannot be computed."""

    def __init__(self, values: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self._values, self._constants = values, constants
        self._found: dict[Call, JsonValue] = {}
        self._faults: dict[Call, str] = {}
        self._weights: dict[tuple[tuple[str | int, ...], Callable[[JsonValue], float]], float] = {}
        self._entries: dict[tuple[str | int, ...], int] = {}

    @property
    def has_any(self) -> bool:
        return bool(self._found)

    def compute(self, reading: Reading) -> dict[str, JsonValue]:
        """Return the variables of a condition; those that cannot be computed are missing."""
        for variable in reading.variables:
            if variable.call in self._found or variable.call in self._faults:
                continue
            try:
                given = () if variable.call.parameter is None else (self._read_parameter(variable.call),)
                self._found[variable.call] = variable.call.shorthand.compute(self._read(variable.call), *given)
            except SaysoError as error:
                self._faults[variable.call] = error.message
            except Exception as error:  # noqa: BLE001 - a parser may fail in any way on hostile text; the rule is doubted
                self._faults[variable.call] = f"it cannot be read: {type(error).__name__}"
        return {variable.name: self._value(variable) for variable in reading.variables if variable.call in self._found}

    def describe_fault(self, reading: Reading, name: str) -> str:
        """Return why a variable could not be computed, as in `shell(args.command): it is not …`; empty if it was."""
        call = next((variable.call for variable in reading.variables if variable.name == name), None)
        return f"{call.label}: {self._faults[call]}" if call in self._faults else ""

    def weigh(self, reading: Reading) -> float:
        """Return at most how many microseconds it takes to compute what a condition reads and is not known yet."""
        calls = dict.fromkeys(variable.call for variable in reading.variables)
        return sum(self._weigh(call) for call in calls if call not in self._found and call not in self._faults)

    def count_entries(self, reading: Reading) -> int:
        """Return at most how many entries the computed lists have over which a condition can go."""
        kinds = (Kind.TEXTS, Kind.ANY)
        calls = {each.call for each in reading.variables if each.call.shorthand.kind_of(each.field) in kinds}
        for call in calls:
            if call.path not in self._entries:
                size = measure(self._try_read(call))
                # Its entries, and one part for each two signs of a text: the most that a reader finds.
                self._entries[call.path] = size.values + min(size.chars // 2, MOST_PARTS)
        return sum(self._entries[call.path] for call in calls)

    def list_computed(self, reading: Reading) -> list[Computed]:
        """Return the values that were computed for a condition, with the parts of their calls."""
        calls = dict.fromkeys(variable.call for variable in reading.variables)
        known = (call for call in calls if call in self._found)
        return [(call.name, call.path, call.parameter, call.is_constant, self._found[call]) for call in known]

    def learn(self, computed: Iterable[Computed]) -> None:
        """Keep values that were computed elsewhere, for the record."""
        for name, path, parameter, is_constant, value in computed:
            self._found.setdefault(Call(name, tuple(path), parameter, is_constant), value)

    def list_recorded(self, readings: Iterable[Reading]) -> JsonObject:
        """Return the computed values that conditions read, as they write them, such as `mail(args.to).domains`."""
        read = [variable for reading in readings for variable in reading.variables]
        known = [variable for variable in read if variable.call in self._found and variable.call.shorthand.recorded]
        return {variable.label: shorten(self._value(variable)) for variable in known}

    def _value(self, variable: Variable) -> JsonValue:
        value = self._found[variable.call]
        return value[variable.field] if variable.field and isinstance(value, dict) else value

    def _weigh(self, call: Call) -> float:
        """Return the cost of one call; several readers of one value weigh it once."""
        key = call.path, call.shorthand.weigh
        if key not in self._weights:
            self._weights[key] = call.shorthand.weigh(self._try_read(call))
        return self._weights[key]

    def _try_read(self, call: Call) -> Any:
        try:
            return self._read(call)
        except Uncomputable:
            return None

    def _read(self, call: Call) -> Any:
        value: Any = self._values
        for step in call.path:
            fits = isinstance(value, list) if isinstance(step, int) else isinstance(value, Mapping)
            if not fits or (step not in value if isinstance(step, str) else step >= len(value)):
                raise Uncomputable(f"there is no {call.source}")
            value = value[step]
        return value

    def _read_parameter(self, call: Call) -> JsonValue:
        if call.parameter is None or not call.is_constant:
            return call.parameter
        if call.parameter not in self._constants:
            raise Uncomputable(f"there is no constants.{call.parameter}")
        value: JsonValue = self._constants[call.parameter]
        call.shorthand.check(value)
        return value
