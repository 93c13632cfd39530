"""One delivery attempt of a message: ten seconds, no redirects, and https unless the receiver is internal."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import httpcore
import httpx

from sayso.core.clock import now_ms
from sayso.core.signing import sign_message
from service.core.outgoing.connections import GuardedBackend, check_url
from service.core.settings.receivers import NO_RECEIVERS, InternalReceivers

ATTEMPT_S = 10.0
_MAX_RESPONSE_BYTES = 65_536
_MOST_CONNECTIONS = 1_024


@dataclass(frozen=True)
class Answer:
    """A receiver's response; without one the status is 0. A broken-off response keeps its status.

    `error` names no address, so anybody may see it; `detail` is for the log.
    """

    status: int
    body: bytes = b""
    retry_after: str | None = None
    error: str = ""
    detail: str = ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


class Posts:
    """Connections to receivers; attempts share no state."""

    def __init__(
        self, *, loopback: bool = False, attempt_s: float = ATTEMPT_S, internal: InternalReceivers = NO_RECEIVERS
    ) -> None:
        self._loopback, self._internal = loopback, internal
        self._attempt_s = attempt_s
        self._backend: GuardedBackend | None = None
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def aclose(self) -> None:
        if self._pool is not None and self._backend is not None:
            await self._pool.aclose()
            self._backend.close()

    def check_url(self, url: str) -> None:
        """Raise `UnsafeUrl` for a URL to which nothing is sent; each attempt checks what its host resolves to."""
        check_url(url, loopback=self._loopback, internal=self._internal)

    async def post(self, url: str, secrets: Sequence[str], message_id: str, body: bytes) -> Answer:
        """Make one attempt with a signature by each secret; raises as `send` does."""
        at_s = now_ms() // 1000
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(at_s),
            "webhook-signature": " ".join(sign_message(secret, message_id, at_s, body) for secret in secrets),
        }
        return await self.send(url, headers, body)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Make one attempt; raises `UnsafeUrl` if the URL leads to a forbidden address."""
        self.check_url(url)
        answer = Answer(0)
        sent: dict[str | bytes, str | bytes] = {"User-Agent": "Sayso"}
        sent.update(headers)
        try:
            async with (
                asyncio.timeout(self._attempt_s),
                self._connections().stream("POST", url, headers=sent, content=body) as response,
            ):
                received = {name.lower(): value for name, value in response.headers}
                retry_after = received.get(b"retry-after", b"").decode("latin-1") or None
                answer = Answer(response.status, retry_after=retry_after)
                async for part in response.aiter_stream():
                    answer = replace(answer, body=answer.body + part)
                    if len(answer.body) > _MAX_RESPONSE_BYTES:
                        break
        except TimeoutError:
            return replace(answer, error=f"no response within {self._attempt_s:g} s")
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
            return replace(answer, error=_describe_failure(error), detail=f"{type(error).__name__}: {error}"[:500])
        return answer

    def _connections(self) -> httpcore.AsyncConnectionPool:
        """Create the connections on first use, because most processes never send."""
        if self._pool is None:
            self._backend = GuardedBackend(loopback=self._loopback, internal=self._internal)
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=_trust(),
                max_connections=_MOST_CONNECTIONS,
                max_keepalive_connections=0,
                network_backend=self._backend,
            )
        return self._pool


def _describe_failure(error: Exception) -> str:
    """Return what failed, without any address."""
    if isinstance(error.__cause__, ssl.SSLError) or isinstance(error.__context__, ssl.SSLError):
        return "the TLS connection failed; check the certificate"
    if isinstance(error, httpcore.ConnectError | OSError):
        return "the connection failed"
    return "the connection broke off, or the response was not HTTP"


@cache
def _trust() -> ssl.SSLContext:
    """Return the default authorities, or those of SSL_CERT_FILE; cached because loading is slow."""
    return httpx.create_ssl_context()
