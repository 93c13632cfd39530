"""Parts of file paths, as text alone: no file is touched, so links are not followed."""

import posixpath
import re
import unicodedata

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.words.faults import Uncomputable, read_text

MOST_PATH_CHARS = 4_096
_ENCODED = re.compile(r"%(?:25)*(?:2e|2f|5c|00)", re.IGNORECASE)
_STRUCTURE = "/\\.~%"


def read_path(value: JsonValue) -> JsonObject:
    """Return the parts of a POSIX path without `.`, `..` and double slashes. A relative one may keep `..` in front."""
    text = read_text(value, MOST_PATH_CHARS)
    if not text or not text.isprintable() or "\\" in text or _ENCODED.search(text):
        raise Uncomputable("the path is empty, or has a backslash, a control character or an encoded dot or slash")
    plain = unicodedata.normalize("NFKC", text)
    if any(plain.count(sign) != text.count(sign) for sign in _STRUCTURE):
        raise Uncomputable("the path has a character that some systems read as a dot, a slash or a tilde")
    absolute = text.startswith("/")
    normal = posixpath.normpath(f"/{text.lstrip('/')}" if absolute else text)
    name = posixpath.basename(normal)
    return {
        "absolute": absolute,
        "normal": normal,
        "folder": posixpath.dirname(normal),
        "name": name,
        "extension": posixpath.splitext(name)[1].lower().removeprefix("."),
    }


def is_within(value: JsonValue, root: str) -> bool:
    """Whether a path, or every path of a list, is the folder `root` or below it; raises for a path without a place."""
    folder = check_root(root)
    paths = value if isinstance(value, list) else [value]
    if not paths:
        raise Uncomputable("the list has no path")
    return all(_is_below(path, folder) for path in paths)


def check_root(root: JsonValue) -> str:
    """Return a folder without `..` and double slashes; raises `Uncomputable` for a relative one."""
    folder = read_path(root)
    if not folder["absolute"]:
        raise Uncomputable(f"the folder {root!r} is not absolute; begin it with /")
    return str(folder["normal"])


def _is_below(value: JsonValue, folder: str) -> bool:
    path = read_path(value)
    if not path["absolute"]:
        raise Uncomputable("the path is relative, so its place is unknown")
    normal = str(path["normal"])
    return normal == folder or normal.startswith(f"{folder.rstrip('/')}/")
