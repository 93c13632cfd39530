"""The version of the SDK, the command that installs it, and the sentence about a desk of another version."""

import os
import re
import shlex
from urllib.parse import urlsplit

from sayso.core.urls import is_loopback

VERSION = "0.2.0"
VERSION_HEADER = "Sayso-Version"
"""Each response of a desk carries its version in this header."""

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,39}")


def install_command(extras: str = "", url: str | None = None, version: str = "") -> str:
    """Return the command that installs the SDK from the desk at `url`, or at SAYSO_URL.

    Without an address, the command adds the extras' packages to an SDK that is installed.
    """
    package = f"sayso[{extras}]" if extras else "sayso"
    return shlex.join(["pip", "install", *_list_options(url or os.environ.get("SAYSO_URL") or ""), package + version])


def _list_options(url: str) -> list[str]:
    """Return pip's options for the desk's index. Without TLS it only trusts this machine unless told otherwise."""
    try:
        address = urlsplit(url)
        host = address.hostname
    except ValueError:
        return []
    if address.scheme not in ("http", "https") or not host:
        return []
    is_trusted = address.scheme == "https" or is_loopback(host)
    trusted = [] if is_trusted else ["--trusted-host", address.netloc]
    return ["--extra-index-url", f"{url.rstrip('/')}/sdk/", *trusted]


def describe_difference(url: str, version: str) -> str | None:
    """Return a sentence if the desk at `url` has another version than this SDK."""
    if version == VERSION or not _VERSION.fullmatch(version):
        return None
    command = install_command("", url, f"=={version}")
    return f"The desk at {url} is Sayso {version}, and this SDK is {VERSION}. Install that of the desk: {command}"
