"""Numbers as the reader's language writes them, and as people type them."""

import re
from decimal import Decimal

from sayso.core.text.language import find_numbers

_STORED = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


class Ambiguous(ValueError):
    """A typed number that is one number in some languages and another in others.

    `whole` and `fraction` are both readings, written so that each has one meaning.
    """

    def __init__(self, whole: str, fraction: str) -> None:
        super().__init__(whole, fraction)
        self.whole, self.fraction = whole, fraction


def write_number(number: Decimal | int, decimals: int | None = None) -> str:
    """Return a number with separators of thousands, such as `4,890.5`; with `decimals`, with so many digits."""
    shape = ",f" if decimals is None else f",.{decimals}f"
    return _localize(format(Decimal(number), shape))


def write_digits(stored: str) -> str:
    """Return a stored number without separators of thousands, such as `4890,5`; any other text as it is."""
    return _localize(stored) if _STORED.fullmatch(stored) else stored


def read_number(typed: str) -> str:
    """Return a typed number as it is stored, such as `19.90` for `19,90`; raises `Ambiguous`, or `ValueError`.

    One separator of thousands before three digits, such as in `1.234`, may be meant as a decimal point.
    """
    numbers = find_numbers()
    group, point = re.escape(numbers.group), re.escape(numbers.point)
    if re.fullmatch(rf"-?[1-9][0-9]{{0,2}}{group}[0-9]{{3}}", typed, re.ASCII):
        whole, fraction = (typed.replace(numbers.group, sign) for sign in ("", numbers.point))
        raise Ambiguous(whole, fraction)
    if re.fullmatch(rf"-?[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+(?:{point}[0-9]+)?", typed, re.ASCII):
        return typed.replace(numbers.group, "").replace(numbers.point, ".")
    if re.fullmatch(rf"-?[0-9]+{point}[0-9]+", typed, re.ASCII):
        return typed.replace(numbers.point, ".")
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", typed, re.ASCII):
        return typed
    raise ValueError(typed)


def _localize(written: str) -> str:
    numbers = find_numbers()
    return written.translate({ord(","): numbers.group, ord("."): numbers.point})
