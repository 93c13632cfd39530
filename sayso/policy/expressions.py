"""Read what a condition's text says of the arguments, to find comparisons that can never work."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""[rR]?"(?:\\.|[^"\\])*"|[rR]?'(?:\\.|[^'\\])*'|<=|>=|==|!=|<|>|[A-Za-z_]\w*|\d+(?:\.\d+)?|\S""", re.DOTALL
)
_ORDER = ("<", ">", "<=", ">=")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Comparison:
    """One argument beside a literal: `args.amount > 100`. The literal is a text or a number."""

    arg: str
    sign: str
    literal: str
    is_text: bool


def find_text_order(expression: str) -> str | None:
    """Return the number that a condition has in quotes where it asks for more or less than it, or None."""
    tokens = _TOKEN.findall(expression)
    for before, sign, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if sign in _ORDER:
            for literal in (before, after):
                if _is_text(literal) and _NUMBER.fullmatch(_unquote(literal)):
                    return _unquote(literal)
    return None


def find_args(expression: str) -> list[str]:
    """Return the names of the arguments that a condition reads, each once."""
    return list(dict.fromkeys(name for _, _, name in _find_reads(_TOKEN.findall(expression))))


def find_comparisons(expression: str) -> list[Comparison]:
    """Return the comparisons of an argument as a whole with a literal."""
    tokens = _TOKEN.findall(expression)
    found: list[Comparison] = []
    for start, end, name in _find_reads(tokens):
        after, before = tokens[end : end + 3], tokens[max(0, start - 3) : start]
        if len(after) > 1 and after[0] in (*_ORDER, "==", "!=") and _is_literal(after[1]) and not _goes_on(after[2:]):
            found.append(Comparison(name, after[0], _unquote(after[1]), _is_text(after[1])))
            continue
        turned = len(before) > 1 and before[-1] in (*_ORDER, "==", "!=") and _is_literal(before[-2])
        if turned and not _goes_on(after) and not _goes_on(before[:-2]):
            found.append(Comparison(name, before[-1], _unquote(before[-2]), _is_text(before[-2])))
    return found


def _find_reads(tokens: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield where in the tokens an argument is read, where that ends, and its name."""
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
    """Whether what comes next makes something else of the value before it."""
    return bool(tokens) and tokens[0] in (".", "[", "(", "+", "-", "*", "/", "%")


def _unquote(token: str) -> str:
    return token.lstrip("rR")[1:-1] if _is_text(token) else token
