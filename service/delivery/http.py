"""Post one signed message to a receiver outside, and say what came back: https only, ten seconds, no redirects."""

import asyncio
import ssl
from dataclasses import dataclass, replace
from functools import cache

import httpcore
import httpx

from sayso.clock import now_ms
from sayso.signing import sign_message
from service.delivery.connections import GuardedBackend

ATTEMPT_S = 10.0
_MOST_ANSWER_BYTES = 65_536


@dataclass(frozen=True)
class Answer:
    """What a receiver said, or why there was no answer: then the status is 0. One that breaks off tells its status.

    `error` names no address and may be shown to anybody; `detail` is for the log.
    """

    status: int
    body: bytes = b""
    retry_after: str | None = None
    error: str = ""
    detail: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the receiver took the message."""
        return 200 <= self.status < 300


class Posts:
    """Connections to receivers; nothing of one attempt is kept for the next."""

    def __init__(self, *, loopback: bool = False, attempt_s: float = ATTEMPT_S) -> None:
        self._loopback = loopback
        self._attempt_s = attempt_s
        self._backend: GuardedBackend | None = None
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._pool is not None and self._backend is not None:
            await self._pool.aclose()
            self._backend.close()

    async def post(self, url: str, secret: str, message_id: str, body: bytes) -> Answer:
        """Make one attempt; raises `UnsafeUrl` when the address leads to where nobody may send us."""
        at_s = now_ms() // 1000
        headers: dict[str | bytes, str | bytes] = {
            "Content-Type": "application/json",
            "User-Agent": "Sayso",
            "webhook-id": message_id,
            "webhook-timestamp": str(at_s),
            "webhook-signature": sign_message(secret, message_id, at_s, body),
        }
        answer = Answer(0)
        try:
            async with (
                asyncio.timeout(self._attempt_s),
                self._connections().stream("POST", url, headers=headers, content=body) as response,
            ):
                said = {name.lower(): value for name, value in response.headers}
                answer = Answer(response.status, retry_after=said.get(b"retry-after", b"").decode("latin-1") or None)
                async for part in response.aiter_stream():
                    answer = replace(answer, body=answer.body + part)
                    if len(answer.body) > _MOST_ANSWER_BYTES:
                        break
        except TimeoutError:
            return replace(answer, error=f"no answer within {self._attempt_s:g} s")
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
            return replace(answer, error=_describe_failure(error), detail=f"{type(error).__name__}: {error}"[:500])
        return answer

    def _connections(self) -> httpcore.AsyncConnectionPool:
        """Most processes never post anything: what it takes is made when it is needed."""
        if self._pool is None:
            self._backend = GuardedBackend(loopback=self._loopback)
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=_trust(),
                max_connections=256,
                max_keepalive_connections=0,
                network_backend=self._backend,
            )
        return self._pool


def _describe_failure(error: Exception) -> str:
    """Say what failed, without the address that was spoken to and without what the system says of it."""
    if isinstance(error.__cause__, ssl.SSLError) or isinstance(error.__context__, ssl.SSLError):
        return "no secure connection could be made: check its certificate"
    if isinstance(error, httpcore.ConnectError | OSError):
        return "no connection could be made"
    return "the connection broke off, or what came back was no HTTP"


@cache
def _trust() -> ssl.SSLContext:
    """Whom we trust: the usual authorities, or those of SSL_CERT_FILE. Reading them takes a while: it is done once."""
    return httpx.create_ssl_context()
