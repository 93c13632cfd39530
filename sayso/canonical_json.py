"""Read JSON strictly and write it canonically, so that what is approved is byte for byte what runs.

Reading refuses what parsers disagree about (duplicate keys, NaN, lone surrogates, integers beyond 2^53) instead of
repairing it. A zero has no sign. Writing follows RFC 8785, the JSON Canonicalization Scheme.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from sayso.errors import InvalidJson, TooLarge

JsonObject = dict[str, JsonValue]

MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_INTEGER = 2**53
_LONGEST_STEP = 80
"""Characters of one key that an error repeats."""

_quote = json.encoder.encode_basestring
_PLAIN = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"))

Place = Any
"""Where a value stands: the place around it and the key or index there; None at the top."""

TOP: Place = None


def parse_json(raw: bytes | str) -> JsonValue:
    """Return the one JSON value in `raw`.

    Raises `InvalidJson` for anything but strict JSON and `TooLarge` for nesting or a number of values over the limits.
    """
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8: byte {error.start} cannot be read. Send UTF-8 JSON.") from error
    _check_number(text)
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_unique_pairs, parse_float=_read_fraction, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"The body is not JSON: {error.msg} at line {error.lineno} column {error.colno}. Correct it and try again."
        ) from error
    except RecursionError as error:
        raise TooLarge(f"The JSON is nested deeper than {MAX_DEPTH} levels. Flatten it.") from error
    except ValueError as error:
        raise InvalidJson(f"The JSON has a number that cannot be read: {error}. Send it as a string.") from error
    check_json(value)
    return value


def check_json(value: Any, *, limited: bool = True) -> bool:
    """Refuse a value that is not plain JSON within the limits, naming the place, such as `$.args.amount`.

    Returns whether the standard encoder writes its canonical form: no key is beyond the BMP, no number is special.
    What is not `limited` was put together here of parts that were.
    """
    plain = _look_quickly(value, limited=limited)
    return _look_closely(value, limited=limited) if plain is None else plain


def _look_quickly(value: Any, *, limited: bool) -> bool | None:
    """Return what `check_json` does, or None for anything out of the common, whether it is refused or not."""
    level: list[Any] = [value]
    count = 0
    plain = True
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        if limited and count > MAX_NODES:
            raise _too_many()
        below: list[Any] = []
        for node in level:
            kind = type(node)
            if (kind is str and node.isascii()) or (kind is int and -MAX_INTEGER <= node <= MAX_INTEGER):
                continue
            if kind is dict:
                if not _has_plain_keys(node):
                    return None
                below += node.values()
            elif kind is list or kind is tuple:
                below += node
            elif kind is float and math.isfinite(node):
                plain = plain and not _written_otherwise(node)
            else:
                form = _look_at_scalar(node)
                if form is None:
                    return None
                plain = plain and form
        if not below or count > MAX_NODES:
            return plain if count <= MAX_NODES else None
        level = below
    return None


def _has_plain_keys(node: dict[Any, Any]) -> bool:
    """Whether the standard encoder sorts the keys as RFC 8785 does: by UTF-16, which only differs beyond the BMP."""
    try:
        keys = "".join(node)
    except TypeError:  # a key that is no string
        return False
    return keys.isascii() or not (_is_broken(keys) or max(keys) > "\uffff")


def _look_at_scalar(node: Any) -> bool | None:
    if node is None or isinstance(node, bool):
        return True
    if isinstance(node, int):
        return True if -MAX_INTEGER <= node <= MAX_INTEGER else None
    if isinstance(node, float) and math.isfinite(node):
        return not _written_otherwise(node)
    if isinstance(node, str):
        return None if _is_broken(node) else True
    return None


def _look_closely(value: Any, *, limited: bool) -> bool:
    count = 0
    plain = True
    stack: list[tuple[Any, Place, int]] = [(value, TOP, 0)]
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
                    path = write_path(place)
                    raise InvalidJson(f"{path} has the key {key!r}, which is not a string.", path=path)
                plain = plain and _has_plain_keys({key: None})
                _check_text(key, place)
            stack.extend((child, (place, key), depth + 1) for key, child in node.items())
        elif isinstance(node, list | tuple):
            stack.extend((child, (place, index), depth + 1) for index, child in enumerate(node))
        else:
            plain = plain and not (isinstance(node, float) and _written_otherwise(node))
            _check_scalar(node, place)
    return plain


def write_path(place: Place) -> str:
    """Return the place as `$.args.amount`: written for the error alone, because a key may be as long as the body."""
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step[:_LONGEST_STEP]}" for step in reversed(steps)
    )


def count_values(value: JsonValue, most: int) -> int:
    """Return the number of values in `value`, itself included; above `most` the count may end early."""
    count, level = 0, [value]
    while level and count <= most:
        count += len(level)
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return count


def _too_many() -> TooLarge:
    return TooLarge(f"The JSON has more than {MAX_NODES} values. Send less.")


def _check_number(text: str) -> None:
    """Refuse a text that surely holds more than `MAX_NODES` values before anything is built of it.

    Every array and object is a value, and so is what follows each comma; those inside of strings do not count.
    """
    if text.count(",") <= MAX_NODES and text.count("[") + text.count("{") <= MAX_NODES:
        return
    plain = text.replace("\\\\", "").replace('\\"', "")
    if plain.count('"') > 4 * MAX_NODES:  # two quotes a string, and a string may be a key or a value
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
    """Return the RFC 8785 form of a JSON value as UTF-8 bytes; raises `InvalidJson` for what has no such form."""
    plain = check_json(value, limited=limited)
    return (_PLAIN.encode(value) if plain else _render(value)).encode("utf-8")


def digest_json(value: Any) -> str:
    """Return the SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _written_otherwise(value: float) -> bool:
    """Whether the standard encoder writes a fraction in another form than RFC 8785 does."""
    front, _, tens = repr(value).partition("e")
    return -10 < int(tens) < 21 if tens else front.endswith(".0")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidJson(f"The key {key[:80]!r} appears twice in one object. Send it once.", key=key)
            seen.add(key)
    return found


def _read_fraction(text: str) -> float:
    """Read a fraction; there is one zero in RFC 8785, so what runs for `-0.0` is the 0 that people are shown."""
    return float(text) or 0.0


def _refuse_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not JSON. Send null or a string instead.")


def _is_broken(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _check_text(text: str, place: Place) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            path = write_path(place)
            raise InvalidJson(
                f"{path} holds half of a surrogate pair (at character {error.start}). Send whole characters.", path=path
            ) from error


def _check_scalar(node: Any, place: Place) -> None:
    if isinstance(node, str):
        _check_text(node, place)
    elif node is None or isinstance(node, bool):
        return
    elif isinstance(node, int):
        if abs(node) > MAX_INTEGER:
            path = write_path(place)
            raise InvalidJson(
                f"{path} is an integer beyond 2^53, which not every program can read. Send it as a string.", path=path
            )
    elif isinstance(node, float):
        if not math.isfinite(node):
            path = write_path(place)
            raise InvalidJson(f"{path} is not a finite number. Send null or a string instead.", path=path)
    else:
        path = write_path(place)
        raise InvalidJson(f"{path} is a {type(node).__name__}, which is not JSON. Send plain values.", path=path)


def _render(value: Any) -> str:
    if isinstance(value, float):  # first, for it is what most values are where this is slow
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
    shortest = repr(value)
    front, _, tens = shortest.partition("e")
    if not tens:
        return shortest.removesuffix(".0") if value else "0"
    if not -7 < int(tens) < 21:
        return f"{front}e{int(tens):+d}"
    mantissa, _, exponent = f"{value!r}e0".partition("e")
    exponent = exponent.partition("e")[0]
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    point = len(whole) + int(exponent)
    digits = whole + ("" if fraction == "0" else fraction)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"
