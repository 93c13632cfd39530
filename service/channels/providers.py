"""Requests to providers over HTTP. A failure names neither addresses nor secrets, and no text of the provider."""

from typing import Any

import httpx

from service.channels.base import DeliveryFailed
from service.channels.config import ChannelConfig

ATTEMPT_S = 10.0
LONGEST_RETRY_S = 3_600.0
_TEMPORARY = frozenset({408, 425, 429})


def open_client(timeout_s: float = ATTEMPT_S) -> httpx.AsyncClient:
    """Return a client that follows no redirects."""
    return httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, headers={"User-Agent": "Sayso"})


class OneDestination:
    """A channel with one destination for everybody, reached by one HTTP client."""

    shared_only = True

    def __init__(self, config: ChannelConfig, shared_address: str, host: str) -> None:
        self.name, self.kind, self.per_minute = config.name, config.kind, config.per_minute
        self.shared_address, self.destination = shared_address, f"{host} {config.name}"
        self._client = open_client()

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()


async def request(client: httpx.AsyncClient, provider: str, method: str, url: str, **parts: Any) -> httpx.Response:
    """Return the provider's response; raises `DeliveryFailed` without one."""
    try:
        return await client.request(method, url, **parts)
    except httpx.TimeoutException:
        raise DeliveryFailed(f"{provider} did not respond in time.") from None
    except (httpx.HTTPError, httpx.InvalidURL):
        raise DeliveryFailed(f"{provider} cannot be reached.") from None


def explain_status(provider: str, response: httpx.Response, wait_s: float | None = None) -> DeliveryFailed:
    """Return the failure for a status other than success. `wait_s` is the requested wait, if no header has it."""
    status = response.status_code
    permanent = 300 <= status < 500 and status not in _TEMPORARY
    wait = read_wait_s(response) if wait_s is None else min(wait_s, LONGEST_RETRY_S)
    return DeliveryFailed(
        f"{provider} refused the message ({status}).", permanent=permanent, retry_after_s=0.0 if permanent else wait
    )


def read_wait_s(response: httpx.Response) -> float:
    """Return the seconds in Retry-After, up to an hour; 0 without any."""
    header = response.headers.get("Retry-After", "").strip()
    return min(float(header[:9]), LONGEST_RETRY_S) if header.isascii() and header.isdigit() else 0.0
