"""The stored login, in a file that only its owner can read."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from sayso.client import URL, Client
from sayso.client.requests import Request
from sayso.core.packages import VERSION_HEADER
from sayso.errors import NotAuthenticated
from sayso.wire.models import ViewT

_TIMEOUT_S = 2.0


class Login(BaseModel):
    """A desk's address and a credential for it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str
    key: str
    name: str = ""


def login_path() -> Path:
    """Return the path of the login: below `XDG_CONFIG_HOME`, or `~/.config`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "sayso" / "login.json"


def save_login(login: Login) -> None:
    """Save the login. The file is readable only by its owner from the start."""
    path = login_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(login.model_dump(), file)
    fresh.replace(path)


def forget_login() -> None:
    """Delete the login."""
    login_path().unlink(missing_ok=True)


def read_login() -> Login | None:
    """Return the saved login, or None if there is none or it cannot be read."""
    try:
        return Login.model_validate_json(login_path().read_bytes())
    except (OSError, ValidationError):
        return None


def connect() -> Client:
    """Return a client with SAYSO_KEY, or with the login, only for its own desk; raises `NotAuthenticated`."""
    saved, url, key = read_login(), os.environ.get("SAYSO_URL"), os.environ.get("SAYSO_KEY")
    if key:
        return Client(url or (saved.url if saved else URL), key, patience_s=5)
    if saved is None or (url and url.rstrip("/") != saved.url):
        where = f" at {url}" if url else ""
        raise NotAuthenticated(f"Nobody is signed in{where}. Run `sayso login`, or set SAYSO_KEY to a reviewer's key.")
    return Client(saved.url, saved.key, patience_s=5)


class Desk(NamedTuple):
    """A desk that answers, and its version."""

    url: str
    version: str


def find_desk() -> Desk | None:
    """Return the desk that commands would use, or None if no desk answers."""
    saved = read_login()
    url = (os.environ.get("SAYSO_URL") or (saved.url if saved else URL)).rstrip("/")
    try:
        response = httpx.get(f"{url}/healthz", timeout=_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    version = response.headers.get(VERSION_HEADER)
    return Desk(url, version) if version else None


def exchange(request: Request[ViewT]) -> ViewT:
    """Send one request as `connect` does, and return its response."""
    with connect() as client:
        return client.exchange(request)
