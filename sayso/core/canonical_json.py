"""Strict reading and canonical writing of JSON: what is approved is byte for byte what runs.

Reading refuses duplicate keys, NaN and lone surrogates. Writing follows RFC 8785 (JCS), but writes
every integer in full: RFC 8785 has no form for those beyond 2^53.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from sayso.errors import InvalidJson, TooLarge

JsonObject = dict[str, JsonValue]

MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_INTEGER = 2**53  # the largest integer that every program reads exactly: the limit of counts, not of arguments
MAX_DIGITS = 4_000  # the digits of an integer. Python reads and writes 4,300 at most.

_LONGEST_STEP = 80  # the characters of a key that an error repeats
_DIFFERENT_FRACTION = re.compile(r"(?:\.0|e\+(?:0[0-9]|1[0-9]|20)|e-0[1-9])[,\]]")
"""One of several numbers, as Python writes a list, that RFC 8785 writes differently."""

_BEYOND = 10**MAX_DIGITS
_quote = json.encoder.encode_basestring
_PLAIN = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"))


def _make_writer() -> Callable[[Any], str]:
    """Return what writes as `_PLAIN` does, without setting up the standard library's C encoder for every value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _PLAIN.encode
    encode = make(None, _PLAIN.default, _quote, None, ":", ",", True, False, True)
    return lambda value: "".join(encode(value, 0))


_write = _make_writer()


class Around(NamedTuple):
    """The depth and the number of the values around one, which count towards the same limits."""

    depth: int = 0
    values: int = 0


NOTHING = Around()

Place = Any  # a linked path: the parent place and a key or index; None at the top
TOP: Place = None


def parse_json(raw: bytes | str, around: Around = NOTHING) -> JsonValue:
    """Return the one JSON value in `raw`; raises `InvalidJson`, or `TooLarge` beyond the limits of depth and values."""
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8: byte {error.start} cannot be read. Send UTF-8 JSON.") from error
    _check_size(text)
    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=unique_pairs,
            parse_float=lambda fraction: float(fraction) or 0.0,  # RFC 8785 has one zero: reviewers see 0 for -0.0
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"The body is not JSON: {error.msg} at line {error.lineno} column {error.colno}. Correct it and try again."
        ) from error
    except RecursionError as error:
        raise TooLarge(f"The JSON is nested deeper than {MAX_DEPTH} levels. Flatten it.") from error
    except ValueError as error:
        raise InvalidJson(f"The JSON has an integer of more than {MAX_DIGITS} digits. Send fewer digits.") from error
    check_json(value, around=around)
    return value


def check_json(value: Any, *, limited: bool = True, around: Around = NOTHING) -> bool:
    """Raise `InvalidJson` with the path of the first value that is not plain JSON, and `TooLarge` beyond the limits.

    Return whether the standard encoder writes the canonical form. `limited` False allows any number of values.
    """
    plain = _check_quickly(value, around, limited=limited)
    return _check_thoroughly(value, around, limited=limited) if plain is None else plain


def _check_quickly(value: Any, around: Around, *, limited: bool) -> bool | None:
    """Return what `check_json` does, or None for an unusual value, which may or may not be valid."""
    level: list[Any] = [value]
    count = around.values
    plain = True
    for _ in range(MAX_DEPTH + 1 - around.depth):
        count += len(level)
        if limited and count > MAX_NODES:
            raise _too_many()
        below: list[Any] = []
        fractions: list[float] = []
        for node in level:
            kind = type(node)
            if (kind is str and node.isascii()) or (kind is int and -_BEYOND < node < _BEYOND):
                continue
            if kind is dict:
                if not _has_plain_keys(node):
                    return None
                below += node.values()
            elif kind is list or kind is tuple:
                below += node
            elif kind is float:
                fractions.append(node)
            else:
                form = _check_plain_scalar(node)
                if form is None:
                    return None
                plain = plain and form
        written = repr(fractions)
        form = None if "n" in written else _DIFFERENT_FRACTION.search(written) is None
        if form is None:
            return None
        plain = plain and form
        if not below or count > MAX_NODES:
            return plain if count <= MAX_NODES else None
        level = below
    return None


def _has_plain_keys(node: dict[Any, Any]) -> bool:
    """Whether the standard encoder sorts the keys as RFC 8785 does. Its UTF-16 order differs only beyond the BMP."""
    try:
        keys = "".join(node)
    except TypeError:  # a key that is not a string
        return False
    if keys.isascii():
        return True
    try:
        return len(keys.encode("utf-16-le")) == 2 * len(keys)
    except UnicodeEncodeError:
        return False


def _check_plain_scalar(node: Any) -> bool | None:
    if node is None or isinstance(node, bool):
        return True
    if isinstance(node, int):
        return True if -_BEYOND < node < _BEYOND else None
    if isinstance(node, float) and math.isfinite(node):
        return not _differs_from_rfc(node)
    if isinstance(node, str):
        return None if has_lone_surrogate(node) else True
    return None


def _check_thoroughly(value: Any, around: Around, *, limited: bool) -> bool:
    count = around.values
    plain = True
    stack: list[tuple[Any, Place, int]] = [(value, TOP, around.depth)]
    while stack:
        node, place, depth = stack.pop()
        count += 1
        if limited and depth > MAX_DEPTH:
            raise TooLarge(f"The JSON is nested deeper than {MAX_DEPTH} levels. Flatten it.")
        if limited and count > MAX_NODES:
            raise _too_many()
        if isinstance(node, dict):
            for key in node:
                if not isinstance(key, str):
                    raise _invalid(place, f"has the key {key!r}, which is not a string.")
                plain = plain and _has_plain_keys({key: None})
                _check_scalar(key, place)
            stack.extend((child, (place, key), depth + 1) for key, child in node.items())
        elif isinstance(node, list | tuple):
            stack.extend((child, (place, index), depth + 1) for index, child in enumerate(node))
        else:
            plain = plain and not (isinstance(node, float) and _differs_from_rfc(node))
            _check_scalar(node, place)
    return plain


def write_path(place: Place) -> str:
    """Return the place as text, such as `$.args.amount`. Only errors need it: a key may be as long as the body."""
    path = ""
    while place is not None:
        place, step = place
        path = (f"[{step}]" if isinstance(step, int) else f".{step[:_LONGEST_STEP]}") + path
    return f"${path}"


def count_values(value: JsonValue, most: int) -> int:
    """Return the number of values in `value`, itself included. Counting may stop above `most`."""
    count, level = 0, [value]
    while level and count <= most:
        count += len(level)
        inside = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, (dict, list))]
        level = [child for children in inside for child in children]
    return count


def _too_many() -> TooLarge:
    return TooLarge(f"The JSON has more than {MAX_NODES} values. Send fewer.")


def _check_size(text: str) -> None:
    """Refuse a text with too many values for sure: arrays, objects, and what follows a comma outside of strings."""
    if text.count(",") <= MAX_NODES and text.count("[") + text.count("{") <= MAX_NODES:
        return
    plain = text.replace("\\\\", "").replace('\\"', "")
    if plain.count('"') > 4 * MAX_NODES:  # two quotes per string; a string may be a key or a value
        raise _too_many()
    outside = "".join(plain.split('"')[::2])
    if outside.count(",") > MAX_NODES:
        raise _too_many()
    if outside.count("[") + outside.count("{") > MAX_NODES:
        raise TooLarge(
            f"The JSON has more than {MAX_NODES} arrays and objects, or is nested deeper than {MAX_DEPTH} levels. "
            "Flatten it."
        )


def canonical_json(value: Any, *, limited: bool = True) -> bytes:
    """Return the RFC 8785 form of a JSON value as UTF-8; raises `InvalidJson` for a value without one."""
    return (_write(value) if check_json(value, limited=limited) else _render(value)).encode("utf-8")


def digest_json(value: Any) -> str:
    """Return the SHA-256 of the canonical form in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _differs_from_rfc(value: float) -> bool:
    front, _, tens = repr(value).partition("e")
    return -10 < int(tens) < 21 if tens else front.endswith(".0")


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as an object; raises `InvalidJson` for a duplicate key."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidJson(f"The key {key[:80]!r} appears twice in one object. Send it once.", key=key)
            seen.add(key)
    return members


def _refuse_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not JSON. Send null or a string instead.")


def has_lone_surrogate(text: str) -> bool:
    """Return whether the text holds half of a surrogate pair, which UTF-8 cannot encode."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _invalid(place: Place, fault: str) -> InvalidJson:
    path = write_path(place)
    return InvalidJson(f"{path} {fault}", path=path)


def _check_scalar(node: Any, place: Place) -> None:
    if isinstance(node, str):
        if has_lone_surrogate(node):
            raise _invalid(place, "holds half of a surrogate pair. Send whole characters.")
    elif isinstance(node, int):
        if not -_BEYOND < node < _BEYOND:
            raise _invalid(place, f"is an integer of more than {MAX_DIGITS} digits. Send fewer digits.")
    elif isinstance(node, float):
        if not math.isfinite(node):
            raise _invalid(place, "is not a finite number. Send null or a string instead.")
    elif node is not None:
        raise _invalid(place, f"is a {type(node).__name__}, which is not JSON. Send plain values.")


def _render(value: Any) -> str:
    if isinstance(value, float):  # first: large values are mostly numbers
        return _number(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        pairs = sorted(value.items(), key=lambda pair: pair[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_quote(key)}:{_render(child)}" for key, child in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_render, value)) + "]"
    return _PLAIN.encode(value)


def _number(value: float) -> str:
    """Write a double as ECMAScript does (RFC 8785 section 3.2.2.3): shortest digits, exponents from 1e21 and 1e-7."""
    front, _, tens = repr(value).partition("e")
    if not tens:
        return front.removesuffix(".0") if value else "0"
    exponent = int(tens)
    if not -7 < exponent < 21:
        return f"{front}e{exponent:+d}"
    sign, digits = "-" if value < 0 else "", front.lstrip("-").replace(".", "")
    return sign + (digits.ljust(exponent + 1, "0") if exponent > 0 else f"0.{'0' * (-exponent - 1)}{digits}")
