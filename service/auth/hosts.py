"""Refuse sign-ins and pages under unknown hosts, against DNS rebinding."""

from urllib.parse import urlsplit

from fastapi import Request

from sayso.errors import UnknownHost
from service.auth.reviewers import Origin
from service.settings import Settings, variable_of
from service.settings.edge import LOOPBACK_HOSTS
from service.settings.places import reached_at


async def check_host(request: Request) -> None:
    """Raise `UnknownHost` unless the request names the public address or another host that the settings allow."""
    settings: Settings = request.app.state.process.settings
    said = request.headers.getlist("host")
    host = _read_host(said[0]) if len(said) == 1 else ""
    if host not in allowed_hosts(settings):
        known = urlsplit(settings.public_url).netloc
        raise UnknownHost(
            f"This service is not known as {host[:100]!r}; open {settings.public_url}. "
            f"An operator adds other hosts to {variable_of('allowed_hosts')}.",
            known_as=known,
        )


def origin_of(request: Request) -> Origin:
    """Return the client's address and user agent."""
    address = request.client.host if request.client is not None else ""
    return Origin(address, request.headers.get("user-agent", ""))


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """Return the hosts under which people may sign in, in lower case and without ports."""
    hosts = {_read_host(urlsplit(settings.public_url).netloc), *settings.allowed_hosts}
    if settings.env == "local":
        hosts |= {*LOOPBACK_HOSTS, reached_at(settings.host).lower()}
    return frozenset(hosts)


def _read_host(netloc: str) -> str:
    name = netloc.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0].removesuffix(".")
