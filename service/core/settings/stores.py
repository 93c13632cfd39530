"""URLs of stores: one server, the sentinels that know which server is the primary, or the nodes of a cluster."""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

from sayso.core.urls import is_loopback

_SCHEMES = ("redis", "rediss", "unix")
_OPTIONS = ("db", "username", "password", "protocol", "client_name")
_BEHIND, _CLUSTER = "+sentinel", "+cluster"
_SENTINEL_PORT, _NODE_PORT = 26379, 6379
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
_SECRET = ("username", "password")
_FORMS = "write redis://host:port/db, rediss://host:port/db or unix:///path/to/socket?db=0"
_SENTINEL_FORM = "write redis+sentinel://host:port,host:port/name/db"
_CLUSTER_FORM = "write redis+cluster://host:port,host:port"


class Sentinels(NamedTuple):
    """The sentinels of a URL, the name they have for the store, and the store's URL at a host yet unknown."""

    addresses: tuple[tuple[str, int], ...]
    name: str
    store_url: str
    username: str | None
    password: str | None


class Cluster(NamedTuple):
    """The nodes of a URL, the tenant whose slot is meant, and the store's URL at a host yet unknown."""

    addresses: tuple[tuple[str, int], ...]
    tenant: str
    store_url: str


def read_cluster(url: str) -> Cluster | None:
    """Return what a `redis+cluster://` or `rediss+cluster://` URL names, or None for any other store.

    Raises `ValueError` for a host or port that cannot be read.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.removesuffix(_CLUSTER)
    if scheme == parts.scheme or scheme not in ("redis", "rediss"):
        return None
    login, at, hosts = parts.netloc.rpartition("@")
    return Cluster(
        tuple(_read_address(host, _NODE_PORT, _CLUSTER_FORM) for host in hosts.split(",")),
        parts.path.strip("/"),
        urlunsplit((scheme, f"{login}{at}store", "", parts.query, "")),
    )


def name_tenant(url: str, tenant: str) -> str:
    """Return the URL of a tenant's store: in a cluster it names the tenant, whose keys lie in one slot."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{tenant}")) if read_cluster(url) is not None else url


def read_sentinels(url: str) -> Sentinels | None:
    """Return what a `redis+sentinel://` or `rediss+sentinel://` URL names, or None for a URL of one server.

    Raises `ValueError` for a part that is missing or cannot be read.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.removesuffix(_BEHIND)
    if scheme == parts.scheme or scheme not in ("redis", "rediss"):
        return None
    login, at, hosts = parts.netloc.rpartition("@")
    name, _, database = parts.path.strip("/").partition("/")
    if not name:
        raise ValueError(
            f"the URL lacks the name that the sentinels have for the store; {_SENTINEL_FORM} (SENTINEL MASTERS "
            "lists the names)"
        )
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = {option: value for option, value in options if option in _SENTINEL_OPTIONS}
    rest = urlencode([(option, value) for option, value in options if option not in own])
    return Sentinels(
        tuple(_read_address(host, _SENTINEL_PORT, _SENTINEL_FORM) for host in hosts.split(",")),
        name,
        urlunsplit((scheme, f"{login}{at}store", f"/{database}", rest, "")),
        own.get("sentinel_username"),
        own.get("sentinel_password"),
    )


def _read_address(host: str, port: int, form: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    check_port(parts)
    if not parts.hostname:
        raise ValueError(f"a server of the URL has no host; {form}")
    return parts.hostname, parts.port or port


def check_store_url(url: str) -> None:
    """Raise `ValueError` for a URL that names no store, or has a part that the client would overlook."""
    sentinels, cluster = read_sentinels(url), read_cluster(url)
    if cluster is not None and (cluster.tenant or "db" in parse_qs(urlsplit(url).query)):
        raise ValueError(f"a cluster has no databases and no name; {_CLUSTER_FORM}")
    if behind := sentinels or cluster:
        url = behind.store_url
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise ValueError(f"{_FORMS}; behind sentinels {_SENTINEL_FORM}; for a cluster {_CLUSTER_FORM}")
    if not (parts.path if parts.scheme == "unix" else parts.hostname):
        raise ValueError("the URL names no server; write redis://host:port/db or unix:///path/to/socket?db=0")
    if "," in parts.netloc.rpartition("@")[2]:
        raise ValueError(
            f"only sentinels and nodes of a cluster are several; {_SENTINEL_FORM}; for a cluster {_CLUSTER_FORM}"
        )
    check_port(parts)
    # What the client would overlook, and then use another database, or only trip over when it connects.
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    databases = [options.get("db"), parts.path.strip("/") if parts.scheme != "unix" else None]
    if not all(re.fullmatch(r"[0-9]+", database) for database in databases if database):
        form = _SENTINEL_FORM if sentinels else "write redis://host:port/db or unix:///path/to/socket?db=0"
        raise ValueError(f"the database is no number; {form}")
    known = (*_OPTIONS, *(_SENTINEL_OPTIONS if sentinels else ()))
    for name in options:
        if name not in known and not name.startswith("ssl_"):
            raise ValueError(f"'{name}' is no option of a store; there are {', '.join(known)} and ssl_…")


def check_port(parts: SplitResult) -> None:
    """Raise `ValueError` for a port that is no number from 0 to 65535."""
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("the port is no number from 0 to 65535; correct it") from None


def find_exposure(url: str) -> str | None:
    """Return what the way to a store lacks where that is on another machine, or None."""
    behind = read_sentinels(url) or read_cluster(url)
    parts = urlsplit(behind.store_url if behind else url)
    hosts = [host for host, _ in behind.addresses] if behind else [parts.hostname or ""]
    if parts.scheme == "unix" or all(map(is_loopback, hosts)):
        return None
    lacks = []
    if not (parts.password or parse_qs(parts.query).get("password")):
        lacks.append("a password")
    if parts.scheme != "rediss":
        lacks.append(f"TLS ({urlsplit(url).scheme.replace('redis', 'rediss')}://)")
    return " and ".join(lacks) or None


def hide_password(url: str) -> str:
    """Return a store's URL without its user and passwords."""
    parts = urlsplit(url)
    options = [option for option in parts.query.split("&") if not option.partition("=")[0].endswith(_SECRET)]
    end = f"?{'&'.join(options)}" if parts.query and options else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{end}"
