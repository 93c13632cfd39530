"""Codes of people's authenticator apps (RFC 6238): 6 digits, a new one every 30 seconds, each of which counts once."""

import base64
import os
from collections.abc import Callable
from hmac import compare_digest

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from sayso.core.clock import now_ms
from sayso.errors import Conflict, NotFound, WrongCode
from service.core.store.attempts import Allowance, Attempts
from service.core.store.connection.sealing import Sealer
from service.core.store.people import AuthenticatorApp, People, Reviewer

BY_PERSON = Allowance("code", most=10, window_s=3600)
"""Wrong codes of one person, from everywhere: only who has their password or session can give any."""

_STEP_S, _DIGITS, _SEED_BYTES = 30, 6, 20
_PURPOSE = "totp seed"


def find_step(seed: str, typed: str, at_ms: int, after: int = -1) -> int | None:
    """Return the first step past `after` whose code this is: the one of this time, or its neighbours."""
    typed, now = "".join(typed.split()), at_ms // 1000 // _STEP_S
    app = _read_seed(seed)
    steps = range(max(now - 1, after + 1), now + 2)
    return next((step for step in steps if compare_digest(app.generate(step * _STEP_S), typed.encode())), None)


def make_seed() -> str:
    """Return a new secret of an app, in base32."""
    return base64.b32encode(os.urandom(_SEED_BYTES)).decode()


def describe_seed(seed: str, name: str) -> str:
    """Return the address with which an app adds the secret."""
    return _read_seed(seed).get_provisioning_uri(name, "Sayso")


class Codes:
    """The authenticator apps of one tenant's people."""

    def __init__(self, people: People, attempts: Attempts, sealer: Sealer) -> None:
        self._people, self._attempts, self._sealer = people, attempts, sealer

    def seal(self, seed: str, name: str) -> str:
        """Return a person's secret as it is stored; raises `Conflict` without a key that encrypts it."""
        if self._sealer.key_id is None:
            raise Conflict(
                "This desk has no key that encrypts the secrets of apps. An operator sets SAYSO_KEY_FILE to a file "
                "that `sayso keyfile new` makes, and restarts Sayso."
            )
        return self._sealer.seal(_PURPOSE, seed, name)

    def open(self, sealed: str, name: str) -> str:
        return self._sealer.open(_PURPOSE, sealed, name)

    async def add(self, name: str, sealed: str, typed: str) -> None:
        """Add an app, which the person's first code proves; raises `WrongCode`, `TooManyRequests`, `Conflict`."""
        app = AuthenticatorApp(seed=sealed, added_at_ms=now_ms(), used_step=-1)

        def change(person: Reviewer) -> AuthenticatorApp:
            if person.app is not None:
                raise Conflict("You have an authenticator app. Remove it first, to add another.")
            return app

        await self._use(name, typed, change)

    async def use(self, name: str, typed: str) -> None:
        """Use a code of a person's app, once; raises `WrongCode`, `TooManyRequests`."""

        def find(person: Reviewer) -> AuthenticatorApp:
            if person.app is None:
                raise WrongCode("You have no authenticator app. Add one on /me/codes.")
            return person.app

        await self._use(name, typed, find)

    async def remove(self, name: str) -> None:
        """Remove a person's app; raises `NotFound`."""

        def change(person: Reviewer) -> Reviewer:
            if person.app is None:
                raise NotFound(f"{name} has no authenticator app.")
            return person.model_copy(update={"app": None})

        await self._people.change_reviewer(name, change)

    async def _use(self, name: str, typed: str, find: Callable[[Reviewer], AuthenticatorApp]) -> None:
        who = f"{self._sealer.tenant} {name}"
        await self._attempts.count(BY_PERSON, who)

        def change(person: Reviewer) -> Reviewer:
            app = find(person)
            step = find_step(self.open(app.seed, name), typed, now_ms(), app.used_step)
            if step is None:
                raise WrongCode
            return person.model_copy(update={"app": app.model_copy(update={"used_step": step})})

        if await self._people.change_reviewer(name, change) is None:
            raise WrongCode
        await self._attempts.take_back(BY_PERSON, who)


def _read_seed(seed: str) -> TOTP:
    return TOTP(base64.b32decode(seed), _DIGITS, SHA1(), _STEP_S)  # noqa: S303  RFC 6238's default, which apps expect
