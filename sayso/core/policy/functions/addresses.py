"""Parts of URLs (RFC 3986), of mail addresses (RFC 5322) and of file paths, from their text alone.

What programs read differently is refused. No file is touched, so links are not followed.
"""

import posixpath
import re
import unicodedata
from email.policy import default
from email.utils import getaddresses
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import unquote

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.budgets import is_plain_mail
from sayso.core.policy.functions import Uncomputable, read_text

MOST_URL_CHARS = 4_000
MOST_MAIL_CHARS = 10_000
MOST_ADDRESSES = 1_000

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?[^#]*)?(?:#.*)?")
_AUTHORITY = re.compile(r"(?:([A-Za-z0-9._~!$&'()*+,;=%:-]*)@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_HIDDEN = re.compile(r"%(?:2f|5c|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})|%25[0-9a-f]{2}", re.IGNORECASE)
_DOTS = re.compile(r"(?:^|/)\.{1,2};")
_LABELS = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HEXADECIMAL, _OCTAL, _DECIMAL = re.compile("0x[0-9a-f]*"), re.compile("0[0-7]+"), re.compile("0|[1-9][0-9]*")
_LOCAL = re.compile(r"[A-Za-z0-9.#$&'*+/=?^_`{|}~-]+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_TRANSLATED = tuple(map(IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""Networks whose last 32 bits are the IPv4 address that they reach: NAT64, SIIT, and IPv4-compatible addresses."""

_LOCAL_TRANSLATION = IPv6Network("64:ff9b:1::/48")
"""NAT64 of the operator's own; where the IPv4 address stands in it depends on the network."""

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


def read_url(value: JsonValue, schemes: JsonValue = None) -> JsonObject:
    """Return the parts of an absolute URL, of http or https unless `schemes` names others; the port is 0 if unknown."""
    text = read_text(value, MOST_URL_CHARS)
    if not text.isascii() or "\\" in text or any(sign.isspace() for sign in text):
        raise Uncomputable("a URL holds no blanks, backslashes or letters beyond ASCII; programs read them differently")
    parts = _URL.fullmatch(text)
    if parts is None:
        raise Uncomputable("it is not an absolute URL, such as https://example.com/path")
    scheme, known = parts[1].lower(), check_schemes(schemes)
    if "any" not in known and scheme not in known:
        named = f'as in http(args.url, "{scheme}")'
        raise Uncomputable(f"its scheme is {scheme}, not {' or '.join(known)}; name the schemes to read, {named}")
    authority = _AUTHORITY.fullmatch(parts[2])
    if authority is None:
        raise Uncomputable("its host cannot be read")
    port = int(authority[3]) if authority[3] else _PORTS.get(scheme, 0)
    if port > 65_535:
        raise Uncomputable("its port is over 65535")
    return {
        "scheme": scheme,
        "host": _read_host(authority[2]),
        "port": port,
        "path": _read_url_path(parts[3]),
        "has_user": authority[1] is not None,
    }


def read_hosts(value: JsonValue, schemes: JsonValue = None) -> JsonValue:
    """Return the host of a URL, or those of a list of URLs; http and https alone unless `schemes` names others."""
    if isinstance(value, list):
        return [read_url(url, schemes)["host"] for url in value]
    return read_url(value, schemes)["host"]


def check_schemes(schemes: JsonValue) -> tuple[str, ...]:
    """Return the names of schemes, which are parted by blanks or commas; raises `Uncomputable` for faulty ones."""
    if schemes is None:
        return ("http", "https")
    names = tuple(schemes.replace(",", " ").split()) if isinstance(schemes, str) else ()
    if not names or not all(map(_SCHEME.fullmatch, names)):
        raise Uncomputable(f'{schemes!r} names no schemes; write "ftp", "https ssh" or "any"')
    return names


def read_mail(value: JsonValue) -> JsonObject:
    """Return the addresses in a text or a list of texts, in lower case, and their domains."""
    texts = value if isinstance(value, list) else [value]
    if len(texts) > MOST_ADDRESSES:
        raise Uncomputable(f"it has {len(texts)} entries; the limit is {MOST_ADDRESSES}")
    addresses = [address for text in texts for address in _read_addresses(text)]
    if not addresses:
        raise Uncomputable("it has no address")
    domains = dict.fromkeys(address.rpartition("@")[2] for address in addresses)
    return {"addresses": [*dict.fromkeys(addresses)], "domains": [*domains], "count": len(addresses)}


def _read_host(text: str) -> str:
    host = text.lower()
    if host.startswith("["):
        try:
            address = ip_address(host[1:-1])
        except ValueError as error:
            raise Uncomputable("its host is a number, but not an IP address in the usual form") from error
        return str(_unwrap(address) if isinstance(address, IPv6Address) else address)
    host = host.removesuffix(".")
    if not _LABELS.fullmatch(host):
        raise Uncomputable("its host cannot be read")
    # As browsers do: a host whose last label is a number is an address, also in the forms 0x7f.1 and 2130706433.
    return str(_read_ipv4(host)) if _NUMBER.fullmatch(host.rpartition(".")[2]) else host


def _unwrap(address: IPv6Address) -> IPv4Address | IPv6Address:
    if address.is_loopback or address.is_unspecified:
        return address
    if address in _LOCAL_TRANSLATION:
        raise Uncomputable("its host is an address of a local NAT64, whose IPv4 address only the network knows")
    if any(address in network for network in _TRANSLATED):
        return IPv4Address(address.packed[-4:])
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo is not None else address)


def _read_ipv4(host: str) -> IPv4Address:
    """Return the address of decimal, hexadecimal and shortened forms; octal ones are also read as decimal."""
    parts = host.split(".")
    limits = [256] * (len(parts) - 1) + [256 ** max(0, 5 - len(parts))]
    numbers = [_read_number(text, limit) for text, limit in zip(parts, limits, strict=True)]
    return IPv4Address(sum(number << (24 - 8 * place) for place, number in enumerate(numbers[:-1])) + numbers[-1])


def _read_number(text: str, limit: int) -> int:
    """Return a part of an address that is below the limit; a label is short enough for any number."""
    if _HEXADECIMAL.fullmatch(text):
        number = int(text[2:] or "0", 16)
    elif _OCTAL.fullmatch(text):
        number = int(text, 8)
        if number != int(text) < limit:
            raise Uncomputable("its host has a number with a leading zero, which programs read as octal or as decimal")
    else:
        number = int(text) if _DECIMAL.fullmatch(text) else limit
    if number >= limit:
        raise Uncomputable("its host is a number, but not an IP address")
    return number


def _read_url_path(text: str) -> str:
    """Return the path decoded, without a slash at its end; `..` takes back the part before it, also an empty one."""
    if _HIDDEN.search(text):
        raise Uncomputable("its path hides a slash, a control character or another escape behind %")
    try:
        path = unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise Uncomputable("its path is not UTF-8") from error
    if _DOTS.search(path):
        raise Uncomputable("its path has dots before a semicolon, which some servers read as a folder above")
    kept: list[str] = []
    for part in path.split("/")[1:]:
        if part == "..":
            kept = kept[:-1]
        elif part != ".":
            kept.append(part)
    if kept[-1:] == [""]:  # a slash at the end
        kept.pop()
    if "" in kept:
        raise Uncomputable("its path has two slashes in a row, which some servers read as one and others as two")
    return f"/{'/'.join(kept)}"


def _read_addresses(value: JsonValue) -> list[str]:
    text = read_text(value, MOST_MAIL_CHARS)
    if is_plain_mail(text):
        return [_join(*part.strip().split("@")) for part in text.split(",")]
    if any(sign in text for sign in "()\n\t\\") or "=?" in text:
        raise Uncomputable("it has a comment, an escape or a line end, which programs read differently")
    try:
        header: Any = default.header_factory("to", text)
    except Exception as error:  # the standard library's parser fails in many ways on broken text
        raise Uncomputable("its addresses cannot be read") from error
    if header.defects:
        raise Uncomputable("its addresses cannot be read")
    if any(group.display_name is not None for group in header.groups):
        raise Uncomputable("it has a group, whose members are unknown")
    addresses = [_join(address.username, address.domain) for address in header.addresses]
    if sorted(addresses) != sorted(address.lower().removesuffix(".") for _, address in getaddresses([text])):
        raise Uncomputable("its addresses can be read in two ways")
    return addresses


def _join(local: str, domain: str) -> str:
    host = domain.lower().removesuffix(".")
    if not _LOCAL.fullmatch(local) or not _LABELS.fullmatch(host):
        raise Uncomputable("an address is not of the form name@example.com, or has ! or %, which some servers route by")
    return f"{local.lower()}@{host}"


MOST_PATH_CHARS = 4_096
_ENCODED = re.compile(r"%(?:25)*(?:2e|2f|5c|00)", re.IGNORECASE)


def read_path(value: JsonValue) -> JsonObject:
    """Return the parts of a POSIX path without `.`, `..` and double slashes. A relative one may keep `..` in front."""
    text = read_text(value, MOST_PATH_CHARS)
    if not text or not text.isprintable() or "\\" in text or _ENCODED.search(text):
        raise Uncomputable("the path is empty, or has a backslash, a control character or an encoded dot or slash")
    plain = unicodedata.normalize("NFKC", text)
    if any(plain.count(sign) != text.count(sign) for sign in "/\\.~%"):
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
