"""JSON as it was written: 1, 1.0 and 1e0 differ, because clients compare what they get with what they sent."""

import json
from decimal import Decimal
from typing import Any

from sayso.errors import InvalidJson

_BLANK = " \t\n\r"
_READER = json.JSONDecoder()


class _Number(str):
    __slots__ = ()


def split_members(raw: bytes) -> dict[str, str]:
    """Return the members of a JSON object with the original text of each value. `raw` must be valid."""
    text = raw.decode()
    members: dict[str, str] = {}
    offset = _skip(text, text.index("{") + 1)
    while text[offset] != "}":
        name, offset = _READER.raw_decode(text, offset)
        begin = _skip(text, text.index(":", offset) + 1)
        _, offset = _READER.raw_decode(text, begin)
        members[name] = text[begin:offset]
        offset = _skip(text, offset)
        if text[offset] == ",":
            offset = _skip(text, offset + 1)
    return members


def write_exactly(raw: bytes | str) -> str:
    """Return JSON with sorted keys and the numbers' own text; raises `InvalidJson` beyond a double's precision."""
    return _write(json.loads(raw, parse_float=_read_float, parse_int=_Number))


def _read_float(text: str) -> _Number:
    try:
        exact = Decimal(text) == Decimal(repr(float(text)))
    except ArithmeticError:
        exact = False
    if not exact:
        raise InvalidJson(f"{text[:60]} has more digits than can be shown exactly. Send it as a string.")
    return _Number(text)


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_write(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value)


def _skip(text: str, offset: int) -> int:
    while text[offset] in _BLANK:
        offset += 1
    return offset
