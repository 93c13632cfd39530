"""Sign-ins with providers that are under way, whom the providers' subjects are here, and their sessions."""

from sayso.core.records.base import Immutable
from service.core.settings.limits import LONGEST_SESSION_S
from service.core.store.connection.connecting import text, texts
from service.core.store.suspensions.reading import try_read
from service.core.store.tenants import StorePart

UNDER_WAY_MS = 600_000  # how long a person has to sign in at the provider


class Begun(Immutable):
    """A sign-in that was begun; `browser` is the hash of a cookie, and `verifier` that of PKCE (RFC 7636)."""

    provider: str
    browser: str
    nonce: str
    verifier: str
    place: str


class Identity(Immutable):
    """Whom a provider identified: a digest of issuer and subject, and what the claims say of the person."""

    provider: str
    subject: str
    name: str
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    time_zone: str = ""
    session: str = ""  # a digest of issuer and session there


class Unlinked(Immutable):
    """A person whom a provider identified, and whose name an account has that is not linked to them yet."""

    browser: str
    place: str
    identity: Identity


class SignIns(StorePart):
    """What one tenant keeps of sign-ins with providers."""

    async def save_begun(self, state_hash: str, begun: Begun) -> None:
        await self._redis.set(self._keys.sign_in(f"begun:{state_hash}"), begun.model_dump_json(), px=UNDER_WAY_MS)

    async def save_unlinked(self, secret_hash: str, unlinked: Unlinked) -> None:
        key = self._keys.sign_in(f"unlinked:{secret_hash}")
        await self._redis.set(key, unlinked.model_dump_json(), px=UNDER_WAY_MS)

    async def take_begun(self, state_hash: str) -> Begun | None:
        """Return a begun sign-in and delete it; None for an unknown one."""
        raw = await self._redis.getdel(self._keys.sign_in(f"begun:{state_hash}"))
        return try_read(Begun, raw) if raw is not None else None

    async def take_unlinked(self, secret_hash: str) -> Unlinked | None:
        """Return who waits for a link and delete that; None for an unknown one."""
        raw = await self._redis.getdel(self._keys.sign_in(f"unlinked:{secret_hash}"))
        return try_read(Unlinked, raw) if raw is not None else None

    async def find_person(self, subject: str) -> str | None:
        name = await self._redis.hget(self._keys.subjects, subject)
        return text(name) if name is not None else None

    async def save_person(self, subject: str, name: str) -> None:
        await self._redis.hset(self._keys.subjects, subject, name)

    async def note_session(self, session: str, token_hash: str) -> None:
        """Remember that a session here belongs to one at the provider."""
        key = self._keys.provider_sessions(session)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.sadd(key, token_hash)
            pipe.expire(key, LONGEST_SESSION_S)
            await pipe.execute()

    async def list_sessions(self, session: str) -> list[str]:
        return texts(await self._redis.smembers(self._keys.provider_sessions(session)))

    async def use_logout(self, token_id: str, kept_s: int) -> bool:
        """Note that a logout token is used; return False for one that was used before."""
        return bool(await self._redis.set(self._keys.logout_token(token_id), "1", ex=kept_s, nx=True))
