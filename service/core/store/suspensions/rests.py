"""Filters of what a long text goes on with: they say which parts it does not have, in less than its size.

A filter has a character of six bits for each group of three bytes that the text has, and sets one bit for each (a Bloom
filter with one hash). A part of the text has all its bits; where one is missing, the text does not have the part.
"""

from collections.abc import Iterable
from itertools import chain
from zlib import crc32

MOST_BYTES = 32_000  # a longer text has no filter: its record decides
MOST_GROUPS = 32  # of a sought part; more would find nothing more out
_BITS, _FIRST = 6, 48  # of a character


def list_groups(part: str) -> list[int]:
    """Return the hashes of the first groups of three bytes; none of a part that is shorter."""
    data = part.encode("utf-8", "surrogatepass")
    return [crc32(data[at : at + 3]) for at in range(min(len(data) - 2, MOST_GROUPS))]


def write_filter(texts: Iterable[str]) -> str:
    """Return the filter of texts; empty where they are too long for one, or have no group."""
    parts, size = [], 0
    for each in texts:
        parts.append(each.encode("utf-8", "surrogatepass"))
        size += len(parts[-1])
        if size > MOST_BYTES:
            return ""
    data = [zip(part, part[1:], part[2:], strict=False) for part in parts]
    hashes = [crc32(bytes(group)) for group in {*chain.from_iterable(data)}]
    sextets = [0] * len(hashes)
    for value in hashes:
        place, bit = divmod(value % (len(hashes) * _BITS), _BITS)
        sextets[place] |= 1 << bit
    return "".join(chr(_FIRST + sextet) for sextet in sextets)
