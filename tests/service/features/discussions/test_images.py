"""What an image claims to be decides whether a page shows it: 70 bytes may claim 3.6 billion pixels."""

import struct
import zlib

import pytest

from service.features.discussions.discussing import is_showable


def png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def gif(width: int, height: int, frame: tuple[int, int] = (1, 1)) -> bytes:
    begin = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0" * 6
    return begin + b"!\xf9\x04\0\0\0\0\0," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\x02\x02\x44\x01\0;"


def jpeg(*sizes: tuple[int, int]) -> bytes:
    frames = b"".join(b"\xff\xc2\x00\x0b\x08" + struct.pack(">HH", h, w) + b"\x01\x01\x11\0" for w, h in sizes)
    return b"\xff\xd8\xff\xe0\x00\x04ab\xff" + frames + b"\xff\xda\x00\x02"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + rest


def vp8x(width: int, height: int) -> bytes:
    return webp(b"VP8X", b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def vp8l(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def vp8(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height))


@pytest.mark.parametrize("image", [png(4000, 3000), gif(640, 480), jpeg((4000, 3000)), vp8x(800, 600), vp8l(9, 9)])
def test_image_of_a_usual_size_is_shown(image: bytes) -> None:
    assert is_showable(image)


@pytest.mark.parametrize(
    "image",
    [
        png(60_000, 60_000),
        png(2**31 - 1, 1),
        png(0, 5),
        gif(60_000, 60_000),
        gif(10, 10, frame=(60_000, 60_000)),
        jpeg((60_000, 60_000)),
        jpeg((10, 10), (60_000, 60_000)),
        b"\xff\xd8\xff\x00\x00\x0f" + jpeg((60_000, 60_000))[9:22] + jpeg((10, 10))[9:],
        b"\xff\xd8" + b"\xff" * 20_000 + jpeg((10, 10))[9:],
        gif(10, 10)[:-1] + (b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\0") * 10_000 + b";",
        vp8x(16_000_000, 16_000_000),
        vp8l(16_384, 16_384),
        vp8(16_000, 16_000),
        webp(b"ANIM", b"\0" * 20),
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
        b"GIF89a",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0",
        b"RIFF\0\0\0\0WEBP",
        b"",
    ],
)
def test_image_that_claims_too_much_or_nothing_is_not_shown(image: bytes) -> None:
    assert not is_showable(image)
