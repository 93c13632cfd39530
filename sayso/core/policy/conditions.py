"""Conditions of rules: CEL expressions over a call, the facts that they read, and what their text reveals.

The engine returns runtime errors as text, which is true in Python, so only a value of type BOOL is an answer.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib import import_module
from typing import Any, TypeAlias

from pydantic_core import to_json

from sayso.core.calendar import check_time_zone
from sayso.core.canonical_json import JsonObject
from sayso.core.packages import install_command
from sayso.core.policy.budgets import WORK, Size, measure, weigh_condition
from sayso.core.policy.functions import NO_NAMES, Names
from sayso.core.policy.functions.reading import MOST_VARIABLES, Computing, Reading, WordFault, read_words
from sayso.core.policy.functions.shorthands import Kind
from sayso.errors import InvalidInput

VARIABLES = ("args", "tool", "agent", "context", "claimed", "run_id", "step", "now")
PROVENANCE = ("run", "who", "subagents")
NAMES = ("lists", "constants")  # what a rules file defines for its conditions
MAX_EXPRESSION_CHARS = 2000

_TOKEN = re.compile(
    r"""[rR]?"(?:\\.|[^"\\])*"|[rR]?'(?:\\.|[^'\\])*'|<=|>=|==|!=|<|>|[A-Za-z_]\w*|\d+(?:\.\d+)?|\S""", re.DOTALL
)
_ORDER = ("<", ">", "<=", ">=")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMPLAINT = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_ZONED = re.compile(
    r"""\.get(?:Date|DayOf(?:Month|Week|Year)|FullYear|Hours|M(?:illiseconds|inutes|onth)|Seconds)"""
    r"""\(\s*["']([^"'\\]*)["']\s*\)"""
)
_OFFSET = re.compile(r"[+-]?[0-9]{2}:[0-9]{2}")
_UNBOUND = re.compile(r'No value with name "(_[a-z][0-9]+)"')
_NOISE = re.compile(r"^[A-Z_]+: |^Syntax error: | \[[A-Z_]+\]$| \(in container ''\)")
_KINDS = {
    "DYN": "a value of any type",
    "INT": "a number",
    "DOUBLE": "a number",
    "STRING": "a text",
    "LIST": "a list",
    "MAP": "a map",
}


class ConditionError(InvalidInput, ValueError):
    """The condition cannot be evaluated; correct its expression."""

    def __init__(self, problem: str, *, expression: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem, expression=expression, line=line, column=column)
        self.problem, self.expression, self.line, self.column = problem, expression, line, column


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled expression. Threads and forked processes may share it."""

    expression: str
    _program: Any
    reading: Reading

    def holds(self, facts: "Facts") -> bool:
        """Return whether the expression is true of `facts`; raises `ConditionError` without a boolean result.

        What costs more than the budget in use is deferred, and has no result until its verdict is known.
        """
        work = WORK.get()
        if work is None or work.admits(facts.weigh(self)):
            return self.evaluate(facts)
        verdict = work.find(facts.key, self.expression, facts.describe)
        facts.computing.learn(verdict.computed)
        if verdict.holds is None:
            raise ConditionError(verdict.fault, expression=self.expression)
        return verdict.holds

    def evaluate(self, facts: "Facts") -> bool:
        """Do what `holds` does, at any cost."""
        try:
            answer = self._program.eval(facts.bind(self.reading))
            is_bool = answer.type() == _engine().Type.BOOL
            value = answer.value()
        except RuntimeError as error:
            raise ConditionError(_clean(str(error)), expression=self.expression) from error
        if not is_bool or not isinstance(value, bool):
            unbound = _UNBOUND.search(str(value))
            fault = facts.computing.describe_fault(self.reading, unbound[1]) if unbound else ""
            raise ConditionError(fault or _clean(str(value)), expression=self.expression)
        return value


Provenance: TypeAlias = Callable[[], Mapping[str, object]]


class Facts:
    """The values that conditions read of one call. They are converted when the first condition needs them.

    `values` are those of `VARIABLES`; a condition that reads a missing one has no result. They must have passed
    `check_json`: the engine recurses on the C stack and crashes on deep nesting. `names` are what the rules file
    defines, and `provenance` returns the known values of `PROVENANCE`; it is called for conditions that read them.
    """

    def __init__(self, values: Mapping[str, object], names: Names = NO_NAMES, provenance: Provenance = dict) -> None:
        self._values, self._names, self._provenance = dict(values), names, provenance
        self._bound: Any = None
        self.computing = Computing(self._values, names.constants)

    def bind(self, reading: Reading) -> Any:
        """Return the values in the engine's form, with those that Sayso computes and defines for the condition."""
        provenance = self._provenance() if reads_any(reading.text, PROVENANCE) else {}
        if provenance or not reading.is_plain:
            lists = {name: list(self._names.lists[name]) for name in reading.lists if name in self._names.lists}
            named = {"lists": lists, "constants": dict(self._names.constants)}
            return self._activate({**self._values, **provenance, **named, **self.computing.compute(reading)})
        self._bound = self._activate(self._values) if self._bound is None else self._bound
        return self._bound

    @cached_property
    def size(self) -> Size:
        """The size of the values that the caller gave."""
        return measure([self._values.get(name) for name in ("args", "context", "claimed")])

    @cached_property
    def key(self) -> bytes:
        """A digest of all that conditions can read; different facts have different ones."""
        return sha256(to_json(self.describe())).digest()

    def weigh(self, condition: Condition) -> float:
        """Return at most how many microseconds a condition takes on these facts, counting alone."""
        reading = condition.reading
        named = sum(len(self._names.lists.get(name, ())) for name in reading.lists)
        size = Size(self.size.values + named + self.computing.count_entries(reading), self.size.chars)
        return weigh_condition(reading.text, size) + self.computing.weigh(reading)

    def describe(self) -> JsonObject:
        """Return the facts as JSON; `service.core.policy.evaluations` reads them again."""
        values = {name: value for name, value in self._values.items() if name != "now"}
        now = self._values.get("now")
        lists: JsonObject = {name: list(entries) for name, entries in self._names.lists.items()}
        return {
            "values": values,  # type: ignore[dict-item]  # `check_json` has passed them
            "now": now.isoformat() if isinstance(now, datetime) else None,
            "lists": lists,
            "constants": dict(self._names.constants),
            "provenance": dict(self._provenance()),  # type: ignore[arg-type]
        }

    def _activate(self, values: dict[str, object]) -> Any:
        try:
            return _environment().Activation(values)
        except RuntimeError as error:
            raise ConditionError(f"the engine cannot read the call: {error}", expression="") from error


@lru_cache(maxsize=4096)
def compile_condition(expression: str) -> Condition:
    """Return the compiled expression; raises `ConditionError` unless it is well-typed CEL that yields a bool."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        size = f"the expression has {len(expression)} characters; the limit is {MAX_EXPRESSION_CHARS}"
        raise ConditionError(f"{size}; split the rule", expression=expression)
    if not expression.strip():
        raise ConditionError("the expression is empty; remove `when`", expression=expression)
    try:
        reading = read_words(expression)
        program = _environment().compile(reading.text)
    except WordFault as error:
        before = expression[: error.offset]
        line, column = before.count("\n") + 1, error.offset - before.rfind("\n")
        problem = f"{error.problem} (line {line}, column {column})"
        raise ConditionError(problem, expression=expression, line=line, column=column) from error
    except RuntimeError as error:
        raise _compile_error(expression, str(error)) from error
    except TypeError as error:
        raise ConditionError("the expression is not valid UTF-8", expression=expression) from error
    # With a time zone that does not exist it would never have a result.
    for zone in _ZONED.findall(expression):
        if not _OFFSET.fullmatch(zone):
            try:
                check_time_zone(zone)
            except ValueError as error:
                raise ConditionError(str(error), expression=expression) from error
    if program.return_type() != _engine().Type.BOOL:
        kind = _KINDS.get(program.return_type().name(), "another kind of value")
        problem = f"the expression must be true or false, but yields {kind}; compare it, as in `… == true`"
        raise ConditionError(problem, expression=expression)
    for call in {variable.call for variable in reading.variables}:
        call.shorthand.load(*(() if call.parameter is None or call.is_constant else (call.parameter,)))
    return Condition(expression, program, reading)


@lru_cache(maxsize=1)
def _engine() -> Any:
    try:
        return import_module("cel_expr_python.cel")
    except ImportError as error:
        problem = f"conditions need the package cel-expr-python; install it with: {install_command('policies')}"
        raise ConditionError(problem, expression="") from error


@lru_cache(maxsize=1)
def _environment() -> Any:
    kind = _engine().Type
    anything = kind.Map(kind.STRING, kind.DYN)
    types = (anything, kind.STRING, kind.STRING, anything, anything, kind.STRING, kind.INT, kind.TIMESTAMP)
    variables = dict(zip(VARIABLES, types, strict=True))
    variables |= {"lists": kind.Map(kind.STRING, kind.List(kind.DYN)), "constants": anything}
    variables |= {"run": anything, "who": anything, "subagents": kind.List(kind.STRING)}
    kinds = {Kind.BOOL: kind.BOOL, Kind.NUMBER: kind.INT, Kind.TEXT: kind.STRING, Kind.TEXTS: kind.List(kind.STRING)}
    for letter, cel_type in (kinds | {Kind.ANY: kind.DYN}).items():
        variables |= {f"_{letter}{number}": cel_type for number in range(MOST_VARIABLES)}
    strings = import_module("cel_expr_python.ext.ext_strings").ExtStrings()
    return _engine().NewEnv(variables=variables, extensions=[strings])


def _compile_error(expression: str, text: str) -> ConditionError:
    complaints = [(int(line), int(column), text) for line, column, text in _COMPLAINT.findall(text)]
    placed = [(line, column) for line, column, _ in complaints if line > 0]
    line, column = placed[0] if placed else (None, None)
    sentences = [_clean(text) + (f" (line {row}, column {col})" if row > 0 else "") for row, col, text in complaints]
    problem = "; ".join(dict.fromkeys(sentences)) or _clean(text)
    if "undeclared reference" in problem:
        problem += f"; a condition may use {', '.join((*VARIABLES, *PROVENANCE, *NAMES))}"
    return ConditionError(problem, expression=expression, line=line, column=column)


def _clean(text: str) -> str:
    return _NOISE.sub("", text.partition("\n")[0])


@dataclass(frozen=True)
class Comparison:
    """A comparison of one argument with a literal, such as `args.amount > 100`."""

    arg: str
    sign: str
    literal: str
    is_text: bool


def find_text_order(expression: str) -> str | None:
    """Return the quoted number that a condition orders something by, or None."""
    tokens = _TOKEN.findall(expression)
    for before, sign, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if sign in _ORDER:
            for literal in (before, after):
                if _is_text(literal) and _NUMBER.fullmatch(_unquote(literal)):
                    return _unquote(literal)
    return None


def find_args(expression: str) -> list[str]:
    """Return the names of the arguments that a condition reads, without duplicates."""
    return list(dict.fromkeys(name for _, _, name in _find_reads(_TOKEN.findall(expression))))


@lru_cache(maxsize=4096)
def reads_any(expression: str, variables: tuple[str, ...]) -> bool:
    """Return whether a condition names one of the variables."""
    tokens = _TOKEN.findall(expression)
    return any(word in variables and (not place or tokens[place - 1] != ".") for place, word in enumerate(tokens))


def find_comparisons(expression: str) -> list[Comparison]:
    """Return the comparisons of a whole argument with a literal."""
    tokens = _TOKEN.findall(expression)
    comparisons: list[Comparison] = []
    for start, end, name in _find_reads(tokens):
        after, before = tokens[end : end + 3], tokens[max(0, start - 3) : start]
        if _compares(after[:2]) and not _goes_on(after[2:]):
            comparisons.append(Comparison(name, after[0], _unquote(after[1]), _is_text(after[1])))
        elif _compares(before[:-3:-1]) and not _goes_on(after) and not _goes_on(before[:-2]):
            comparisons.append(Comparison(name, before[-1], _unquote(before[-2]), _is_text(before[-2])))
    return comparisons


def _compares(tokens: list[str]) -> bool:
    is_literal = len(tokens) == 2 and (_is_text(tokens[1]) or tokens[1][0].isdigit())
    return is_literal and tokens[0] in (*_ORDER, "==", "!=")


def _find_reads(tokens: list[str], variable: str = "args") -> Iterator[tuple[int, int, str]]:
    """Yield where an argument is read: its first token, the token after it, and its name."""
    for place, word in enumerate(tokens):
        after = tokens[place + 1 : place + 4]
        if word != variable or len(after) < 2 or (place and tokens[place - 1] == "."):
            continue
        if after[0] == "." and after[2:] != ["("]:
            yield place, place + 3, after[1]
        elif after[0] == "[" and after[2:] == ["]"] and _is_text(after[1]):
            yield place, place + 4, _unquote(after[1])


def _is_text(token: str) -> bool:
    return token[-1] in "\"'" and len(token) > 1


def _goes_on(tokens: list[str]) -> bool:
    return bool(tokens) and tokens[0] in (".", "[", "(", "+", "-", "*", "/", "%")


def _unquote(token: str) -> str:
    return token.lstrip("rR")[1:-1] if _is_text(token) else token


MEMBERS = {
    "run": (
        *("tools", "tokens", "input_tokens", "output_tokens", "model_calls", "cost"),
        *("started_by", "tenant", "environment"),
    ),
    "who": ("key", "owner", "groups", "person", "issuer"),
}
"""The names that conditions can read of each variable."""


def find_misnamed(expression: str) -> str | None:
    """Return why a condition reads a fact that no call has, such as `run.tool`; None if all exist."""
    tokens = _TOKEN.findall(expression)
    for variable, known in MEMBERS.items():
        bound = any(tokens[place - 1 : place + 2] == ["(", variable, ","] for place in range(1, len(tokens)))
        for _, _, name in _find_reads(tokens, variable):
            if not bound and name not in known:  # an expression may bind another value to a variable
                return f"there is no `{variable}.{name}`; use {', '.join(f'{variable}.{fact}' for fact in known)}"
    return None
