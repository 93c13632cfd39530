"""Read JSON strictly and write it canonically, so that what is approved is byte for byte what runs.

Reading refuses what parsers disagree about (duplicate keys, NaN, lone surrogates, integers beyond 2^53) instead of
repairing it. Writing follows RFC 8785, the JSON Canonicalization Scheme.
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
_PLAIN = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"))


def parse_json(raw: bytes | str) -> JsonValue:
    """Return the one JSON value in `raw`.

    Raises `InvalidJson` for anything but strict JSON and `TooLarge` for nesting or a number of values over the limits.
    """
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8: byte {error.start} cannot be read. Send UTF-8 JSON.") from error
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant)
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

    Returns whether the standard encoder writes its canonical form: no key is beyond ASCII, no number is special.
    What is not `limited` was put together here of parts that were.
    """
    plain = _look_quickly(value)
    return _look_closely(value, limited=limited) if plain is None else plain


def _look_quickly(value: Any) -> bool | None:
    """Return what `check_json` does, or None for anything out of the common, whether it is refused or not."""
    level: list[Any] = [value]
    count = 0
    plain = True
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
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
    try:
        return "".join(node).isascii()
    except TypeError:  # a key that is no string
        return False


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
    stack: list[tuple[Any, str, int]] = [(value, "$", 0)]
    while stack:
        node, path, depth = stack.pop()
        count += 1
        if limited and depth > MAX_DEPTH:
            raise TooLarge(f"The JSON is nested deeper than {MAX_DEPTH} levels. Flatten it.")
        if limited and count > MAX_NODES:
            raise TooLarge(f"The JSON has more than {MAX_NODES} values. Send less.")
        if isinstance(node, dict):
            for key in node:
                if not isinstance(key, str):
                    raise InvalidJson(f"{path} has the key {key!r}, which is not a string.", path=path)
                plain = plain and key.isascii()
                _check_text(key, path)
            stack.extend((child, f"{path}.{key}", depth + 1) for key, child in node.items())
        elif isinstance(node, list | tuple):
            stack.extend((child, f"{path}[{index}]", depth + 1) for index, child in enumerate(node))
        else:
            plain = plain and not (isinstance(node, float) and _written_otherwise(node))
            _check_scalar(node, path)
    return plain


def canonical_json(value: Any, *, limited: bool = True) -> bytes:
    """Return the RFC 8785 form of a JSON value as UTF-8 bytes; raises `InvalidJson` for what has no such form."""
    plain = check_json(value, limited=limited)
    return (_PLAIN.encode(value) if plain else _render(value)).encode("utf-8")


def digest_json(value: Any) -> str:
    """Return the SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _written_otherwise(value: float) -> bool:
    """Whether the standard encoder writes a fraction in another form than RFC 8785 does."""
    text = repr(value)
    return "e" in text or text.endswith(".0")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidJson(f"The key {key[:80]!r} appears twice in one object. Send it once.", key=key)
            seen.add(key)
    return found


def _refuse_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not JSON. Send null or a string instead.")


def _is_broken(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _check_text(text: str, path: str) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidJson(
                f"{path} holds half of a surrogate pair (at character {error.start}). Send whole characters.", path=path
            ) from error


def _check_scalar(node: Any, path: str) -> None:
    if isinstance(node, str):
        _check_text(node, path)
    elif node is None or isinstance(node, bool):
        return
    elif isinstance(node, int):
        if abs(node) > MAX_INTEGER:
            raise InvalidJson(
                f"{path} is an integer beyond 2^53, which not every program can read. Send it as a string.", path=path
            )
    elif isinstance(node, float):
        if not math.isfinite(node):
            raise InvalidJson(f"{path} is not a finite number. Send null or a string instead.", path=path)
    else:
        raise InvalidJson(f"{path} is a {type(node).__name__}, which is not JSON. Send plain values.", path=path)


def _render(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = sorted(value.items(), key=lambda pair: pair[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_quote(key)}:{_render(child)}" for key, child in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_render, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return _quote(value)


def _quote(scalar: Any) -> str:
    return json.dumps(scalar, ensure_ascii=False)


def _number(value: float) -> str:
    """Write a double as ECMAScript does (RFC 8785 section 3.2.2.3): shortest digits, exponents from 1e21 and 1e-7."""
    if value == 0:
        return "0"
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
