"""Conditions of rules: CEL expressions over a call, and what their text reveals about its arguments.

The engine returns runtime errors as text, which is true in Python, so only a value of type BOOL is an answer.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from sayso.calendars.hours import check_time_zone
from sayso.errors import InvalidInput

VARIABLES = ("args", "tool", "agent", "context", "claimed", "run_id", "step", "now")
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

    def holds(self, facts: Any) -> bool:
        """Return whether the expression is true of `facts`; raises `ConditionError` without a boolean result."""
        try:
            answer = self._program.eval(facts)
            is_bool = answer.type() == _engine().Type.BOOL
            value = answer.value()
        except RuntimeError as error:
            raise ConditionError(_clean(str(error)), expression=self.expression) from error
        if not is_bool or not isinstance(value, bool):
            raise ConditionError(_clean(str(value)), expression=self.expression)
        return value


@lru_cache(maxsize=4096)
def compile_condition(expression: str) -> Condition:
    """Return the compiled expression; raises `ConditionError` unless it is well-typed CEL that yields a bool."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        size = f"the expression has {len(expression)} characters; the limit is {MAX_EXPRESSION_CHARS}"
        raise ConditionError(f"{size}; split the rule", expression=expression)
    if not expression.strip():
        raise ConditionError("the expression is empty; remove `when`", expression=expression)
    try:
        program = _environment().compile(expression)
    except RuntimeError as error:
        raise _compile_error(expression, str(error)) from error
    except TypeError as error:
        raise ConditionError("the expression is not valid UTF-8", expression=expression) from error
    _check_zones(expression)
    if program.return_type() != _engine().Type.BOOL:
        kind = _KINDS.get(program.return_type().name(), "another kind of value")
        problem = f"the expression must be true or false, but yields {kind}; compare it, as in `… == true`"
        raise ConditionError(problem, expression=expression)
    return Condition(expression, program)


def reads_time(expression: str) -> bool:
    """Return whether a condition reads the time of the call."""
    tokens = _TOKEN.findall(expression)
    return any(word == "now" and (not at or tokens[at - 1] != ".") for at, word in enumerate(tokens))


def _check_zones(expression: str) -> None:
    """Raise `ConditionError` for a time zone that does not exist: the expression would never have a result."""
    for zone in _ZONED.findall(expression):
        if not _OFFSET.fullmatch(zone):
            try:
                check_time_zone(zone)
            except ValueError as error:
                raise ConditionError(str(error), expression=expression) from error


def bind_facts(facts: Mapping[str, object]) -> Any:
    """Return `facts`, values of `VARIABLES`, in the engine's form. A condition that reads a missing one has no result.

    They must have passed `check_json`: the engine recurses on the C stack and crashes on deep nesting.
    """
    try:
        return _environment().Activation(dict(facts))
    except RuntimeError as error:
        raise ConditionError(f"the engine cannot read the call: {error}", expression="") from error


@lru_cache(maxsize=1)
def _engine() -> Any:
    try:
        return import_module("cel_expr_python.cel")
    except ImportError as error:
        problem = "conditions need the package cel-expr-python; install it with: pip install 'sayso[policies]'"
        raise ConditionError(problem, expression="") from error


@lru_cache(maxsize=1)
def _environment() -> Any:
    kind = _engine().Type
    anything = kind.Map(kind.STRING, kind.DYN)
    types = (anything, kind.STRING, kind.STRING, anything, anything, kind.STRING, kind.INT, kind.TIMESTAMP)
    return _engine().NewEnv(variables=dict(zip(VARIABLES, types, strict=True)))


def _compile_error(expression: str, text: str) -> ConditionError:
    complaints = [(int(line), int(column), text) for line, column, text in _COMPLAINT.findall(text)]
    placed = [(line, column) for line, column, _ in complaints if line > 0]
    line, column = placed[0] if placed else (None, None)
    sentences = [_clean(text) + (f" (line {row}, column {col})" if row > 0 else "") for row, col, text in complaints]
    problem = "; ".join(dict.fromkeys(sentences)) or _clean(text)
    if "undeclared reference" in problem:
        problem += f"; a condition may use {', '.join(VARIABLES)}"
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


def find_comparisons(expression: str) -> list[Comparison]:
    """Return the comparisons of a whole argument with a literal."""
    tokens = _TOKEN.findall(expression)
    found: list[Comparison] = []
    for start, end, name in _find_reads(tokens):
        after, before = tokens[end : end + 3], tokens[max(0, start - 3) : start]
        if _compares(after[:2]) and not _goes_on(after[2:]):
            found.append(Comparison(name, after[0], _unquote(after[1]), _is_text(after[1])))
        elif _compares(before[:-3:-1]) and not _goes_on(after) and not _goes_on(before[:-2]):
            found.append(Comparison(name, before[-1], _unquote(before[-2]), _is_text(before[-2])))
    return found


def _compares(tokens: list[str]) -> bool:
    return len(tokens) == 2 and tokens[0] in (*_ORDER, "==", "!=") and _is_literal(tokens[1])


def _find_reads(tokens: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield where an argument is read: its first token, the token after it, and its name."""
    for place, word in enumerate(tokens):
        after = tokens[place + 1 : place + 4]
        if word != "args" or len(after) < 2 or (place and tokens[place - 1] == "."):
            continue
        if after[0] == "." and after[2:] != ["("]:
            yield place, place + 3, after[1]
        elif after[0] == "[" and after[2:] == ["]"] and _is_text(after[1]):
            yield place, place + 4, _unquote(after[1])


def _is_text(token: str) -> bool:
    return token[-1] in "\"'" and len(token) > 1


def _is_literal(token: str) -> bool:
    return _is_text(token) or token[0].isdigit()


def _goes_on(tokens: list[str]) -> bool:
    return bool(tokens) and tokens[0] in (".", "[", "(", "+", "-", "*", "/", "%")


def _unquote(token: str) -> str:
    return token.lstrip("rR")[1:-1] if _is_text(token) else token
