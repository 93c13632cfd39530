"""People's authenticator apps: how one is added and removed."""

from typing import NamedTuple

from sayso.core.records.base import Immutable
from sayso.errors import Conflict, NotFound
from service.core.auth.codes import describe_seed, make_seed
from service.core.auth.credentials import Principal, require_own_password
from service.core.auth.reviewers import hash_token
from service.core.operations.people import FRESH_MS, check_rank, require_fresh
from service.core.store.people import AuthenticatorApp
from service.core.store.suspensions.reading import try_read
from service.core.store.tenants import StorePart
from service.core.wiring import Wiring


class BegunApp(Immutable):
    """An app that a person is adding; `seed` is encrypted."""

    person: str
    seed: str


class BegunApps(StorePart):
    """The apps that are being added, by the session that adds one."""

    async def save(self, token_hash: str, begun: BegunApp) -> None:
        await self._redis.set(self._keys.app_begun(token_hash), begun.model_dump_json(), px=FRESH_MS)

    async def find(self, token_hash: str) -> BegunApp | None:
        raw = await self._redis.get(self._keys.app_begun(token_hash))
        return try_read(BegunApp, raw) if raw is not None else None

    async def delete(self, token_hash: str) -> None:
        await self._redis.delete(self._keys.app_begun(token_hash))


class Seed(NamedTuple):
    """The secret that an app is given, as a text and as an address that opens the app."""

    text: str
    address: str


class AppAccounts:
    """The authenticator apps of one tenant's people."""

    def __init__(self, parts: Wiring) -> None:
        self._parts, self._begun, self._codes = parts, parts.part(BegunApps), parts.reviewers.codes

    async def find(self, name: str) -> AuthenticatorApp | None:
        """Return a person's app; raises `NotFound` for an unknown person."""
        person = await self._parts.reviewers.find(name)
        if person is None:
            raise NotFound("There is no person of this name.")
        return person.app

    async def find_begun(self, by: Principal, token: str) -> Seed | None:
        """Return the secret of the app that this session is adding."""
        begun = await self._begun.find(hash_token(token))
        if begun is None or begun.person != by.name:
            return None
        seed = self._codes.open(begun.seed, by.name)
        return Seed(seed, describe_seed(seed, by.name))

    async def begin(self, by: Principal, token: str) -> None:
        """Make the secret of a new app; raises `NotAllowed`, and `Conflict` if there is an app or no key file."""
        require_own_password(by)
        refusal = "An app is added within 10 minutes of signing in. Sign out, sign in and add it then."
        await require_fresh(self._parts, by, token, refusal)
        if await self.find(by.name) is not None:
            raise Conflict("You have an authenticator app. Remove it first, to add another.")
        sealed = self._codes.seal(make_seed(), by.name)
        await self._begun.save(hash_token(token), BegunApp(person=by.name, seed=sealed))

    async def add(self, by: Principal, token: str, code: str) -> None:
        """Add the app that this session began, with its first code; raises as `Codes.add`."""
        require_own_password(by)
        begun = await self._begun.find(hash_token(token))
        if begun is None or begun.person != by.name:
            raise Conflict("No app was begun here in the last 10 minutes. Begin again.")
        await self._codes.add(by.name, begun.seed, code)
        await self._begun.delete(hash_token(token))

    async def remove(self, by: Principal, token: str) -> None:
        """Remove one's own app; raises `NotAllowed`, `NotFound`."""
        refusal = "An app is removed within 10 minutes of signing in. Sign out, sign in and remove it then."
        await require_fresh(self._parts, by, token, refusal)
        await self._codes.remove(by.name)

    async def remove_of(self, by: Principal, name: str) -> None:
        """Remove another person's app; raises `NotAllowed`, `NotFound`."""
        await check_rank(self._parts, by, name)
        await self._codes.remove(name)
