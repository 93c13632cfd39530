"""One delivery attempt of a message, in ten seconds and without redirects; failing destinations are only probed."""

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import httpcore
import httpx

from sayso.core.clock import DAY_MS, HOUR_MS, now_ms
from sayso.core.signing import sign_message
from service.core.outgoing.connections import GuardedBackend, check_url
from service.core.outgoing.keeping import IDLE_S, KeptConnections
from service.core.settings import PORTS
from service.core.settings.receivers import NO_RECEIVERS, InternalReceivers

ATTEMPT_S = 10.0
MAX_RESPONSE_BYTES = 65_536


@dataclass(frozen=True)
class Answer:
    """A receiver's response; without one the status is 0. `error` names no address; `detail` is for the log."""

    status: int
    body: bytes = b""
    retry_after: str | None = None
    error: str = ""
    detail: str = ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


class Posts:
    """Connections to receivers; attempts share nothing else."""

    def __init__(
        self,
        *,
        loopback: bool = False,
        attempt_s: float = ATTEMPT_S,
        internal: InternalReceivers = NO_RECEIVERS,
        most_bytes: int = MAX_RESPONSE_BYTES,
        proxy: str | None = None,
    ) -> None:
        self._loopback, self._internal, self._proxy_url = loopback, internal, proxy
        self._attempt_s, self._most_bytes = attempt_s, most_bytes
        self._backend: GuardedBackend | None = None
        self._direct: KeptConnections | None = None
        self._proxied: KeptConnections | None = None

    async def aclose(self) -> None:
        if self._proxied is not None:
            await self._proxied.aclose()
        if self._direct is not None and self._backend is not None:
            await self._direct.aclose()
            self._backend.close()

    def check_url(self, url: str) -> None:
        """Raise `UnsafeUrl` for a URL to which nothing is sent; each connection checks what its host resolves to."""
        check_url(url, loopback=self._loopback, internal=self._internal)

    async def post(self, url: str, secrets: Sequence[str], message_id: str, body: bytes) -> Answer:
        """Make one attempt with a signature by each secret; raises as `send` does.

        Receivers know a repeated message by its id, so it goes over a connection that is open already.
        """
        at_s = now_ms() // 1000
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(at_s),
            "webhook-signature": " ".join(sign_message(secret, message_id, at_s, body) for secret in secrets),
        }
        return await self.send(url, headers, body, repeatable=True)

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        method: str = "POST",
        repeatable: bool = False,
    ) -> Answer:
        """Make one attempt; raises `UnsafeUrl` if the URL leads to a forbidden address."""
        self.check_url(url)
        connections = self._choose_connections(url)
        answer = Answer(0)
        sent: dict[str | bytes, str | bytes] = {"User-Agent": "Sayso"}
        sent.update(headers)
        try:
            async with (
                asyncio.timeout(self._attempt_s),
                connections.stream(method, url, sent, body, repeatable=repeatable) as response,
            ):
                received = {name.lower(): value for name, value in response.headers}
                retry_after = received.get(b"retry-after", b"").decode("latin-1") or None
                answer = Answer(response.status, retry_after=retry_after)
                async for part in response.aiter_stream():
                    answer = replace(answer, body=answer.body + part)
                    if len(answer.body) > self._most_bytes:
                        break
        except TimeoutError:
            return replace(answer, error=f"no response within {self._attempt_s:g} s")
        except _FAILURES as error:
            return replace(answer, error=_describe_failure(error), detail=f"{type(error).__name__}: {error}"[:500])
        return answer

    def _choose_connections(self, url: str) -> KeptConnections:
        """Return the connections to a checked URL, opened on first use: most processes never send."""
        parts = urlsplit(url)
        internal = self._internal.names(parts.hostname or "", parts.port or PORTS[parts.scheme])
        if self._proxy_url is not None and not internal:
            self._proxied = self._proxied or _open_connections(proxy=_read_proxy(self._proxy_url))
            return self._proxied
        if self._direct is None:
            self._backend = GuardedBackend(loopback=self._loopback, internal=self._internal)
            self._direct = _open_connections(network_backend=self._backend)
        return self._direct


_FAILURES = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError, OSError)


def _open_connections(
    *, proxy: httpcore.Proxy | None = None, network_backend: GuardedBackend | None = None
) -> KeptConnections:
    """Return connections through a proxy, which resolves the names, or of a backend."""
    return KeptConnections(
        httpcore.AsyncConnectionPool(
            ssl_context=_trust(), proxy=proxy, keepalive_expiry=IDLE_S, network_backend=network_backend
        )
    )


def _read_proxy(url: str) -> httpcore.Proxy:
    parts = urlsplit(url)
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(f"http://{parts.netloc.rpartition('@')[2]}", auth=login)


def export_proxy(proxy_url: str | None, internal: InternalReceivers) -> None:
    """Send what the libraries of channels send through the proxy too: they read these variables."""
    if proxy_url is not None:
        direct = [*(name for name, _ in internal.hosts), *(str(network) for network, _ in internal.networks)]
        os.environ.update(HTTPS_PROXY=proxy_url, HTTP_PROXY=proxy_url, NO_PROXY=",".join(direct))


def _describe_failure(error: Exception) -> str:
    if isinstance(error.__cause__, ssl.SSLError) or isinstance(error.__context__, ssl.SSLError):
        return "the TLS connection failed; check the certificate"
    if isinstance(error, httpcore.ProxyError):
        return "the egress proxy refused the connection"
    if isinstance(error, httpcore.ConnectError | OSError):
        return "the connection failed"
    return "the connection broke off, or the response was not HTTP"


@cache
def _trust() -> ssl.SSLContext:
    """Return the default authorities, or those of SSL_CERT_FILE; cached because loading is slow."""
    return httpx.create_ssl_context()


FAILURES_TO_OPEN = 5
PROBE_EVERY_MS = 4_000


class OpenCircuit(NamedTuple):
    """A destination that is only probed: since when, and why its last attempt failed."""

    destination: str
    since_ms: int
    reason: str


@dataclass
class _Circuit:
    failures: int = 0
    closed_until_probe_ms: int = 0
    opened_at_ms: int = 0
    channel: str = ""
    reason: str = ""


@dataclass
class Breakers:
    """One circuit for each destination, in this process."""

    _circuits: dict[str, _Circuit] = field(default_factory=dict)

    def wait_ms(self, destination: str, now_ms: int) -> int:
        """Return how long to wait before an attempt. 0 permits one; on an open circuit it is the next probe."""
        circuit = self._circuits.get(destination)
        if circuit is None or circuit.failures < FAILURES_TO_OPEN:
            return 0
        left_ms = circuit.closed_until_probe_ms - now_ms
        if left_ms > 0:
            return left_ms
        circuit.closed_until_probe_ms = now_ms + PROBE_EVERY_MS
        return 0

    def note(self, destination: str, *, accepted: bool, now_ms: int, channel: str = "", reason: str = "") -> None:
        """Count an attempt. A success closes the circuit; enough failures in a row open it."""
        if accepted:
            self._circuits.pop(destination, None)
            return
        circuit = self._circuits.setdefault(destination, _Circuit())
        circuit.failures += 1
        circuit.closed_until_probe_ms = now_ms + PROBE_EVERY_MS
        circuit.channel, circuit.reason = channel, reason
        if circuit.failures == FAILURES_TO_OPEN:
            circuit.opened_at_ms = now_ms

    def is_failing(self, destination: str) -> bool:
        return destination in self._circuits

    def list_open(self) -> dict[str, list[OpenCircuit]]:
        circuits: dict[str, list[OpenCircuit]] = {}
        for destination, circuit in sorted(self._circuits.items()):
            if circuit.failures >= FAILURES_TO_OPEN:
                shown = OpenCircuit(destination, circuit.opened_at_ms, circuit.reason)
                circuits.setdefault(circuit.channel, []).append(shown)
        return circuits


FIRST_RETRY_MS = 2_000
LONGEST_RETRY_MS = HOUR_MS
EVENT_WAITS_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 64_800, 79_200)
"""The waits after each attempt at an event: ten attempts within three days."""

EVENTS_RETRY_FOR_MS = 3 * DAY_MS
LONGEST_ASKED_MS = DAY_MS  # the longest wait that a receiver can request
_RETRY_LATER = (429, 503)


def retry_after_ms(event_id: str, tries: int) -> int:
    """Return the wait after so many tries: it doubles up to an hour, less up to a half that differs by message."""
    longest = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(tries - 1, 30))
    return int(longest * (1 - _throw_dice(event_id, tries) / 2))


def event_retry_after_ms(message_id: str, tries: int) -> int | None:
    """Return the wait after so many attempts at an event, reduced by up to a tenth; None after the last one."""
    if tries > len(EVENT_WAITS_S):
        return None
    return int(EVENT_WAITS_S[tries - 1] * 1000 * (1 - _throw_dice(message_id, tries) / 10))


def read_retry_after_ms(answer: Answer, now_ms: int) -> int:
    """Return the wait that the receiver requests by Retry-After, or 0."""
    header = (answer.retry_after or "").strip()
    if answer.status not in _RETRY_LATER or not header:
        return 0
    if header.isascii() and header.isdigit():
        return int(header[:9]) * 1000
    with suppress(ValueError, TypeError, OverflowError):
        return max(0, int(parsedate_to_datetime(header).timestamp() * 1000) - now_ms)
    return 0


def _throw_dice(message_id: str, tries: int) -> float:
    return int.from_bytes(sha256(f"{message_id} {tries}".encode()).digest()[:4]) / 2**32
