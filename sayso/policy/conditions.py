"""Judge a call by a CEL expression over its arguments, or say plainly that it cannot be judged.

Expressions are compiled and type-checked once, when the rules are loaded. At judging time the engine hands errors back
as values (text, which is true in Python), so nothing counts as an answer here but a value of type BOOL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from sayso.errors import InvalidInput

VARIABLES = ("args", "tool", "agent", "context", "claimed", "run_id", "step")
MAX_EXPRESSION_CHARS = 2000

_COMPLAINT = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
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
    """A condition cannot be judged; correct its expression."""

    def __init__(self, problem: str, *, expression: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem, expression=expression, line=line, column=column)
        self.problem = problem
        self.expression = expression
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Condition:
    """One compiled expression. Threads and forked processes may share it: judging leaves no trace in it."""

    expression: str
    _program: Any

    def holds(self, facts: Any) -> bool:
        """Say whether the expression is true of `facts` (from `bind_facts`); `ConditionError` when it is neither."""
        try:
            answer = self._program.eval(facts)
            is_bool = answer.type() == _engine().Type.BOOL
            value = answer.value()
        except RuntimeError as error:
            raise ConditionError(_plain(str(error)), expression=self.expression) from error
        if not is_bool or not isinstance(value, bool):
            raise ConditionError(_plain(str(value)), expression=self.expression)
        return value


@lru_cache(maxsize=4096)
def compile_condition(expression: str) -> Condition:
    """Return the expression ready to judge; raises `ConditionError` unless it is well-typed CEL that yields a bool."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        problem = f"the expression has {len(expression)} characters and may have {MAX_EXPRESSION_CHARS}; split the rule"
        raise ConditionError(problem, expression=expression)
    if not expression.strip():
        raise ConditionError("the expression is empty; leave `when` out instead", expression=expression)
    try:
        program = _environment().compile(expression)
    except RuntimeError as error:
        raise _refuse(expression, str(error)) from error
    except TypeError as error:
        raise ConditionError(
            "the expression is not text that can be written as UTF-8", expression=expression
        ) from error
    if program.return_type() != _engine().Type.BOOL:
        kind = _KINDS.get(program.return_type().name(), "another kind of value")
        problem = f"the expression must say true or false but yields {kind}; compare it, as in `… == true`"
        raise ConditionError(problem, expression=expression)
    return Condition(expression, program)


def bind_facts(facts: Mapping[str, object]) -> Any:
    """Return `facts`, a value for each of `VARIABLES`, in the engine's form, made once for all conditions of a call.

    The values must have passed `check_json`: the engine follows nesting on the C stack and would crash on a deep one.
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
    types = (anything, kind.STRING, kind.STRING, anything, anything, kind.STRING, kind.INT)
    return _engine().NewEnv(variables=dict(zip(VARIABLES, types, strict=True)))


def _refuse(expression: str, words: str) -> ConditionError:
    """Return the compiler's complaints as one error; the first place a complaint names is the error's own."""
    complaints = [(int(line), int(column), text) for line, column, text in _COMPLAINT.findall(words)]
    placed = [(line, column) for line, column, _ in complaints if line > 0]
    line, column = placed[0] if placed else (None, None)
    sentences = [_plain(text) + (f" (line {row}, column {col})" if row > 0 else "") for row, col, text in complaints]
    problem = "; ".join(dict.fromkeys(sentences)) or _plain(words)
    if "undeclared reference" in problem:
        problem += f"; a condition may use {', '.join(VARIABLES)}"
    return ConditionError(problem, expression=expression, line=line, column=column)


def _plain(words: str) -> str:
    return _NOISE.sub("", words.partition("\n")[0])
