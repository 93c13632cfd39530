"""Refuse sign-ins and pages under unknown hosts, against DNS rebinding."""

from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi import Request

from sayso.errors import UnknownHost
from service.core.auth.reviewers import Origin
from service.core.settings import PORTS, Settings, reached_at, variable_of
from service.core.settings.limits import LOOPBACK_HOSTS


async def check_host(request: Request) -> None:
    """Raise `UnknownHost` unless the request names the public address or another host that the settings allow."""
    settings: Settings = request.app.state.process.settings
    said = request.headers.getlist("host")
    host = _read_host(said[0]) if len(said) == 1 else ""
    if host not in allowed_hosts(settings):
        raise UnknownHost(
            f"This service is not known as {host[:100]!r}; open {settings.public_url}. "
            f"An operator adds other hosts to {variable_of('allowed_hosts')}.",
            known_as=urlsplit(settings.public_url).netloc,
        )


def origin_of(request: Request) -> Origin:
    """Return the client's address and user agent."""
    address = request.client.host if request.client is not None else ""
    return Origin(address, request.headers.get("user-agent", ""))


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """Return the hosts under which people may sign in, in lower case and without ports."""
    hosts = {_read_host(urlsplit(settings.public_url).netloc), *map(_read_host, settings.allowed_hosts)}
    if settings.env == "local":
        hosts |= {*LOOPBACK_HOSTS, _read_host(reached_at(settings.host))}
    return frozenset(hosts - {""})  # what cannot be read is no host, also where a setting cannot


class Place(NamedTuple):
    """Where a service is reached, as a browser compares it: the host in ASCII without a trailing dot, and a port."""

    scheme: str
    host: str
    port: int


def read_place(url: str) -> Place | None:
    """Return the scheme, host and port of an origin; None for anything with more or less in it."""
    try:
        parts = urlsplit(url)
        host, port = normalize_host(parts.hostname or ""), parts.port
    except ValueError:
        return None
    plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc or "\\" in url)
    if not host or not plain or parts.scheme not in PORTS:
        return None
    return Place(parts.scheme, host, port if port is not None else PORTS[parts.scheme])


def normalize_host(name: str) -> str:
    """Return a host's name in lower case and ASCII, without a trailing dot; raises `ValueError`."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name.removesuffix(".").encode("idna").decode("ascii").lower()


def _read_host(netloc: str) -> str:
    """Return the host of a Host header, an address of version 6 in brackets; empty for none."""
    place = read_place(f"http://{netloc.strip()}")
    if place is None:
        return ""
    return f"[{place.host}]" if ":" in place.host else place.host
