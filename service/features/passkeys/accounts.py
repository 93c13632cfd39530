"""People's passkeys: how one is added, named and removed, and how people sign in with one."""

from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from sayso.core.canonical_json import parse_json
from sayso.core.clock import new_secret, now_ms
from sayso.core.records.proofs import Assertion, encode_base64url
from sayso.errors import Conflict, InvalidInput, NotAuthenticated, NotFound, SaysoError
from service.core.auth.credentials import Principal, require_own_password
from service.core.auth.reviewers import Origin, SignIn, hash_token, id_of_session
from service.core.auth.roles import ADMIN
from service.core.operations.people import SIGNED_IN, check_rank, require_fresh
from service.core.settings.limits import network_of
from service.core.store.attempts import Allowance
from service.core.store.people import Made
from service.core.wiring import Wiring
from service.features.passkeys.ceremonies import (
    NewPasskey,
    RelyingParty,
    UntrustedPasskey,
    check_assertion,
    check_new,
    describe_new,
    describe_request,
    find_party,
    hash_challenge,
    read_challenge,
)
from service.features.passkeys.store import Challenge, Passkey, Passkeys, Purpose

BEGUN = Allowance("passkey-sign-in", most=100, window_s=300)
"""Challenges that one address gets; each takes a place in the store for five minutes."""

MOST_PASSKEYS = 20
LONGEST_NAME = 60


Sent = TypeVar("Sent", bound=BaseModel)


class PasskeyAccounts:
    """The passkeys of one tenant's people."""

    def __init__(self, parts: Wiring) -> None:
        self._parts, self._store = parts, parts.part(Passkeys)
        self.list_of = self._store.list_of

    def is_open(self) -> bool:
        """Return whether people may sign in with passkeys: where passwords count, and browsers know the host."""
        return find_party(self._parts.settings) is not None and self._parts.providers.load().local_accounts != "off"

    async def begin_adding(self, by: Principal, token: str) -> JsonValue:
        """Return the options of a new passkey for a session's person; raises `NotAllowed`, `Conflict`."""
        require_own_password(by)
        party, token_hash = self.require_party(), hash_token(token)
        refusal = "A passkey is added within 10 minutes of signing in. Sign out, sign in and add it then."
        await require_fresh(self._parts, by, token, refusal)
        known = await self.list_of(by.name)
        if len(known) >= MOST_PASSKEYS:
            raise Conflict(f"You have {MOST_PASSKEYS} passkeys. Remove one first.")
        handle = known[0].handle if known else encode_base64url(bytes.fromhex(new_secret()))
        challenge = await self._begin(Challenge(purpose="add", browser=token_hash, handle=handle))
        return describe_new(party, challenge, by.name, handle, known)

    async def add(self, by: Principal, token: str, name: str, answer: str) -> Passkey:
        """Add the passkey that a browser made; raises `InvalidInput`, `UntrustedPasskey`, `Conflict`."""
        require_own_password(by)
        name, new = _check_name(name), _read(NewPasskey, answer)
        challenge, begun = await self._take(new.client_data, "add", token)
        made = check_new(new, challenge, self.require_party())
        passkey = Passkey(
            id=made.id,
            person=by.name,
            name=name,
            handle=begun.handle,
            public_key=made.public_key,
            counter=made.counter,
            created_at_ms=now_ms(),
            made_by=by.made.by,
            made_at_ms=by.made.at_ms,
        )
        if not await self._store.add(passkey):
            raise Conflict("This passkey is known already. Nothing was changed.")
        return passkey

    async def rename(self, person: str, passkey_id: str, name: str) -> None:
        """Give a person's passkey another name; raises `NotFound`, `InvalidInput`."""
        named = _check_name(name)
        await self._find(person, passkey_id)
        await self._store.change(passkey_id, lambda passkey: passkey.model_copy(update={"name": named}))

    async def remove(self, person: str, passkey_id: str) -> None:
        """Remove a person's passkey, and end the sessions that it opened; raises `NotFound`."""
        await self._store.delete(await self._find(person, passkey_id))
        for opened in await self._parts.reviewers.list_sessions(person):
            if opened.session.passkey == passkey_id:
                await self._parts.reviewers.end_session(person, id_of_session(opened.token_hash))

    async def remove_of(self, by: Principal, person: str, passkey_id: str) -> None:
        """Remove another person's passkey; raises `NotAllowed`, `NotFound`."""
        await check_rank(self._parts, by, person)
        await self.remove(person, passkey_id)

    async def begin_sign_in(self, browser: str, origin: Origin) -> JsonValue:
        """Return the options with which any passkey of this host signs in; raises `TooManyRequests`, `NotAllowed`."""
        await self._parts.attempts.count(BEGUN, network_of(origin.address))
        party = self.require_party()
        return describe_request(party, await self._begin(Challenge(purpose="sign-in", browser=hash_token(browser))), [])

    async def sign_in(self, answer: str, browser: str, origin: Origin) -> SignIn:
        """Open a session for the person of a passkey; raises `InvalidInput`, `NotAuthenticated`, `NotAllowed`."""
        marks: dict[str, Any] = {"door": "web", "address": origin.address}
        try:
            opened, passkey = await self._sign_in(answer, browser, origin)
        except SaysoError as error:
            await self._parts.activity.refuse(SIGNED_IN, "", error.message, target="passkey", **marks)
            raise
        marks |= {"client": origin.client, "passkey": passkey.name}
        await self._parts.activity.record(SIGNED_IN, passkey.person, **marks)
        return opened

    async def _sign_in(self, answer: str, browser: str, origin: Origin) -> tuple[SignIn, Passkey]:
        plan, began_at_ms = self._parts.providers.load(), now_ms()
        if plan.local_accounts == "off":
            raise NotAuthenticated(f"Passkeys are switched off here. Sign in with {plan.titles}.")
        assertion = _read(Assertion, answer)
        challenge, _ = await self._take(assertion.client_data, "sign-in", browser)
        if not assertion.user_handle:
            raise UntrustedPasskey
        passkey = await use_passkey(self._store, assertion, challenge, self.require_party())
        person = await self._parts.reviewers.find(passkey.person)
        if person is None or (plan.local_accounts == "break_glass" and ADMIN not in person.roles):
            raise NotAuthenticated(f"Only admins sign in with a passkey here. Sign in with {plan.titles}.")
        made = Made(passkey.made_by, passkey.made_at_ms)
        opened = await self._parts.reviewers.admit_with_passkey(person.name, passkey.id, made, began_at_ms, origin)
        return opened, passkey

    async def _begin(self, begun: Challenge) -> bytes:
        challenge = bytes.fromhex(new_secret())
        await self._store.save_challenge(hash_challenge(challenge), begun)
        return challenge

    async def _take(self, client_data: str, purpose: Purpose, browser: str) -> tuple[bytes, Challenge]:
        """Return the challenge that was signed, once; raises `UntrustedPasskey`."""
        challenge = read_challenge(client_data)
        begun = await self._store.take_challenge(hash_challenge(challenge))
        if begun is None or begun.purpose != purpose or begun.browser != hash_token(browser):
            raise UntrustedPasskey(
                "This was not begun in this browser in the last 5 minutes, or sent twice. Try again."
            )
        return challenge, begun

    async def _find(self, person: str, passkey_id: str) -> Passkey:
        passkey = await self._store.find(passkey_id)
        if passkey is None or passkey.person != person:
            raise NotFound("There is no such passkey.")
        return passkey

    def require_party(self) -> RelyingParty:
        """Return whom passkeys are for; raises `Conflict` where nobody can use them."""
        party = find_party(self._parts.settings)
        if party is None:
            raise Conflict(
                f"Passkeys need a host name and https, or localhost; this desk is {self._parts.settings.public_url}. "
                "An operator sets SAYSO_PUBLIC_URL."
            )
        return party


async def use_passkey(store: Passkeys, assertion: Assertion, challenge: bytes, party: RelyingParty) -> Passkey:
    """Return the passkey of a valid assertion, and keep its counter; raises `UntrustedPasskey`."""

    def use(passkey: Passkey) -> Passkey:
        counter = check_assertion(assertion, challenge, party, passkey)
        return passkey.model_copy(update={"counter": counter, "used_at_ms": now_ms()})

    passkey = await store.change(assertion.credential_id, use)
    if passkey is None:
        raise UntrustedPasskey("This passkey is not known here, or was removed. Nothing was changed.")
    return passkey


def _check_name(name: str) -> str:
    name = " ".join(name.split())
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput(f"Give the passkey a name of at most {LONGEST_NAME} characters, such as Phone.")
    return name


def _read(model: type[Sent], answer: str) -> Sent:
    try:
        return model.model_validate(parse_json(answer))
    except ValidationError as error:
        raise UntrustedPasskey from error
