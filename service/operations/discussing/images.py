"""The size that an image claims in its header. A browser reserves memory for every pixel, also of a small file."""

from collections.abc import Iterator
from typing import NamedTuple

MOST_PIXELS = 40_000_000
"""Pixels of an image up to which pages show it: a picture of a camera, about 160 MB in a browser."""

_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers that begin a frame
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_GIF_IMAGE, _GIF_EXTENSION = 0x2C, 0x21


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def is_showable(content: bytes) -> bool:
    """Return whether an image says its size in each of its headers, and none is beyond `MOST_PIXELS`."""
    try:
        sizes = [*_read_sizes(content)]
    except (IndexError, ValueError):
        return False
    return bool(sizes) and all(0 < one.width * one.height <= MOST_PIXELS for one in sizes)


def _read_sizes(content: bytes) -> Iterator[Size]:
    if content.startswith(b"\x89PNG"):
        yield _read_pair(content, 16, 4, "big") if content[12:16] == b"IHDR" else Size(0, 0)
    elif content.startswith(b"GIF8"):
        yield _read_pair(content, 6, 2, "little")
        yield from _read_gif_frames(content)
    elif content.startswith(b"\xff\xd8"):
        yield from _read_jpeg(content)
    elif content[8:12] == b"WEBP":
        yield from _read_webp(content)


def _read_pair(content: bytes, at: int, length: int, order: str) -> Size:
    if len(content) < at + 2 * length:
        raise ValueError("the header is cut off")
    ends = (at, at + length, at + 2 * length)
    big = order == "big"
    numbers = [int.from_bytes(content[ends[place] : ends[place + 1]], "big" if big else "little") for place in (0, 1)]
    return Size(*numbers)


def _read_gif_frames(content: bytes) -> Iterator[Size]:
    """Yield the area that each frame reaches to; it may lie outside of the canvas."""
    at = 13 + _gif_table(content[10])
    while at < len(content) and content[at] in (_GIF_IMAGE, _GIF_EXTENSION):
        if content[at] == _GIF_IMAGE:
            left, size = _read_pair(content, at + 1, 2, "little"), _read_pair(content, at + 5, 2, "little")
            yield Size(left.width + size.width, left.height + size.height)
            at += 11 + _gif_table(content[at + 9])
        else:
            at += 2
        while content[at]:
            at += 1 + content[at]
        at += 1


def _gif_table(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _read_jpeg(content: bytes) -> Iterator[Size]:
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or marker in _JPEG_ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SIZES:
            found = _read_pair(content, at + 5, 2, "big")
            yield Size(found.height, found.width)  # the height comes first
        if marker == 0xDA:  # the pixels follow
            return
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")


def _read_webp(content: bytes) -> Iterator[Size]:
    kind = content[12:16]
    if kind == b"VP8X":
        yield Size(1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little"))
    elif kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        yield Size(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    elif kind == b"VP8 ":
        found = _read_pair(content, 26, 2, "little")
        yield Size(found.width & 0x3FFF, found.height & 0x3FFF)
