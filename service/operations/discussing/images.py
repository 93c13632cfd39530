"""The size that an image claims in its header. A browser reserves memory for every pixel, also of a small file."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

MOST_PIXELS = 40_000_000
"""Pixels of an image up to which pages show it: a picture of a camera, about 160 MB in a browser."""

_MOST_PARTS = 10_000  # frames and segments of one image that are read
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers that begin a frame
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_JPEG_PIXELS = 0xDA  # the marker that pixels follow
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
    return bool(sizes) and all(0 < size.width * size.height <= MOST_PIXELS for size in sizes)


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


def _read_pair(content: bytes, offset: int, length: int, order: Literal["big", "little"]) -> Size:
    if len(content) < offset + 2 * length:
        raise ValueError("the header is cut off")
    first, second = content[offset : offset + length], content[offset + length : offset + 2 * length]
    return Size(int.from_bytes(first, order), int.from_bytes(second, order))


def _read_gif_frames(content: bytes) -> Iterator[Size]:
    """Yield the area that each frame reaches to; it may lie outside of the canvas."""
    offset = 13 + _gif_table(content[10])
    for _ in range(_MOST_PARTS):
        if offset >= len(content) or content[offset] not in (_GIF_IMAGE, _GIF_EXTENSION):
            return
        if content[offset] == _GIF_IMAGE:
            corner, size = _read_pair(content, offset + 1, 2, "little"), _read_pair(content, offset + 5, 2, "little")
            yield Size(corner.width + size.width, corner.height + size.height)
            offset += 11 + _gif_table(content[offset + 9])
        else:
            offset += 2
        while content[offset]:
            offset += 1 + content[offset]
        offset += 1
    raise ValueError("the image has too many frames")


def _gif_table(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _read_jpeg(content: bytes) -> Iterator[Size]:
    offset = 2
    for _ in range(_MOST_PARTS):
        if offset + 4 > len(content) or content[offset] != 0xFF:
            return
        marker = content[offset + 1]
        if marker == 0xFF or marker in _JPEG_ALONE:
            offset += 1 if marker == 0xFF else 2
            continue
        if marker == 0:
            raise ValueError("no marker: browsers search for the next one, and do not skip a segment")
        if marker in _JPEG_SIZES:
            height, width = _read_pair(content, offset + 5, 2, "big")
            yield Size(width, height)
        if marker == _JPEG_PIXELS:
            return
        offset += 2 + int.from_bytes(content[offset + 2 : offset + 4], "big")
    raise ValueError("the image has too many segments")


def _read_webp(content: bytes) -> Iterator[Size]:
    kind = content[12:16]
    if kind == b"VP8X":
        yield Size(1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little"))
    elif kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        yield Size(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    elif kind == b"VP8 ":
        width, height = _read_pair(content, 26, 2, "little")
        yield Size(width & 0x3FFF, height & 0x3FFF)
