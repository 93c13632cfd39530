"""The cost of a regular expression, counted without searching."""

import re

MAX_STEPS = 10_000

_WIDE_STEPS = 10
"""The steps of a class of nearly all characters, which may take several bytes."""

_CLASSES = {"d": 1, "w": 1, "s": _WIDE_STEPS, "D": _WIDE_STEPS, "W": _WIDE_STEPS, "S": _WIDE_STEPS}
_ESCAPES = _CLASSES | dict.fromkeys("bBtnrfv0", 1)
_REPETITION = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\}")
_CLASS = re.compile(r"\[(\^?)((?:[^\]\[\\]|\\[^pPuUxkQE1-9])+)\]", re.DOTALL)


def weigh_pattern(pattern: str) -> int | None:
    """Return the steps of a pattern, the most that a linear search takes for each byte of the text.

    Return None for lookarounds, backreferences, Unicode properties and flags, which are not counted.
    """
    groups, last, place = [0], 0, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "(":
            if pattern.startswith("(?", place) and not pattern.startswith("(?:", place):
                return None
            groups.append(0)
            last = 0
            place += 3 if pattern.startswith("(?:", place) else 1
        elif sign == ")":
            if len(groups) == 1:
                return None
            last = groups.pop()
            groups[-1] += last
            place += 1
        elif sign in "*+?|^$":
            place += 1
        else:
            match = _REPETITION.match(pattern, place) if sign == "{" else None
            if match is not None:
                added = last * (max(int(match[1]), int(match[3] or 0)) - 1)
                last += added
                step, length = added, len(match[0])
            else:
                step, length = _read_step(pattern, place)
                last = step
            if not length or groups[-1] + step > MAX_STEPS:
                return None
            groups[-1] += step
            place += length
    return groups[0] + 1 if len(groups) == 1 else None


def _read_step(pattern: str, place: int) -> tuple[int, int]:
    """Return the steps and length of the character or class at `place`; (0, 0) for anything else."""
    sign = pattern[place]
    if sign == "\\":
        escaped = pattern[place + 1 : place + 2]
        if escaped in _ESCAPES:
            return _ESCAPES[escaped], 2
        return (1, 2) if escaped and escaped.isascii() and not escaped.isalnum() else (0, 0)
    if sign == "[":
        match = _CLASS.match(pattern, place)
        if match is None or "&&" in match[2] or "--" in match[2] or "~~" in match[2]:
            return 0, 0
        plain = not match[1] and match[2].isascii() and not re.search(r"\\[DWSs]", match[2])
        return (1 if plain else _WIDE_STEPS), len(match[0])
    if sign in "{}":
        return 0, 0
    return (_WIDE_STEPS if sign == "." else len(sign.encode("utf-8", "surrogatepass"))), 1
