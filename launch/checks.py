"""Ask whether ports are free, the store answers and the service is healthy."""

import http.client
import socket as sockets
from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from launch.errors import PortTaken
from service.settings import EVERY_ADDRESS

HEALTH_PATH = "/healthz"
TIMEOUT_S = 2
ONCE = Retry(NoBackoff(), 0)


def check_port(host: str, port: int) -> None:
    """Raise `PortTaken` when nothing could listen on the port, before anything is started."""
    try:
        family, kind, protocol, _, address = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)[0]
        with sockets.socket(family, kind, protocol) as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise PortTaken(
            f"Nothing can listen on {host}:{port}: {error.strerror}. Set SAYSO_PORT to a free port "
            "(the demo's model endpoint takes the one after it), or end what is there.",
            port=port,
        ) from None


def is_healthy(host: str, port: int) -> bool:
    """Tell whether the service answers that all is well."""
    connection = http.client.HTTPConnection(EVERY_ADDRESS.get(host, host), port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", HEALTH_PATH)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def store_answers(url: str) -> bool:
    """Tell whether the store has loaded its data and serves."""
    try:
        with Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=ONCE) as client:
            return bool(client.ping())
    except RedisError:
        return False


def without_password(url: str) -> str:
    """Return a store's URL as it may be shown."""
    parts = urlsplit(url)
    return url.replace(f"{parts.netloc}", parts.netloc.rpartition("@")[2], 1) if parts.netloc else url
