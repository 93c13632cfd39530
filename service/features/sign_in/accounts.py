"""Sign-ins with providers: how they begin and end, whose account a subject has, and how a provider ends sessions."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from sayso.core.clock import new_secret, now_ms
from sayso.errors import Conflict, NotAllowed, NotAuthenticated, NotFound, SaysoError
from service.core.auth.providers import Provider
from service.core.auth.reviewers import Origin, SignIn, hash_token, require_active
from service.core.operations.people import SIGNED_IN
from service.core.settings.limits import network_of
from service.core.store.attempts import Allowance
from service.core.store.people import People, Reviewer
from service.core.wiring import Wiring
from service.features.sign_in.claims import digest_subject, identify, list_missing
from service.features.sign_in.clients import ProviderClient
from service.features.sign_in.store import Begun, Identity, SignIns, Unlinked
from service.features.sign_in.tokens import (
    SKEW_S,
    Untrusted,
    check_id_token,
    check_logout_token,
    read_claims,
    read_header,
)

BEGUN = Allowance("provider-sign-in", most=100, window_s=300)
"""Sign-ins that one address begins or confirms; each takes a place in the store for ten minutes."""


class NameTaken(NotAllowed):
    """An account of this name exists, and it is not linked to this person of the provider."""


@dataclass(frozen=True)
class Returned:
    """What the provider's redirect back to the desk says."""

    state: str = ""
    code: str = ""
    error: str = ""
    issuer: str | None = None


@dataclass(frozen=True)
class Completed:
    """A finished sign-in: the session and where it leads, or the secret with which an account can be linked."""

    place: str
    opened: SignIn | None = None
    secret: str = ""
    name: str = ""


class ProviderSignIns:
    """The sign-ins of one tenant's people with providers."""

    def __init__(self, parts: Wiring) -> None:
        self._parts, self._store = parts, parts.part(SignIns)
        self._clients: dict[str, ProviderClient] = {}

    def find(self, provider_id: str) -> ProviderClient:
        """Return the client of a provider; raises `NotFound`."""
        if provider_id not in self._clients:
            provider = self._parts.providers.find(provider_id)
            if provider is None:
                raise NotFound("No identity provider has this address. Open /sign-in to see those of this desk.")
            self._clients[provider_id] = ProviderClient(provider, self._parts.posts)
        return self._clients[provider_id]

    async def begin(self, client: ProviderClient, browser: str, place: str, origin: Origin) -> str:
        """Return the address at the provider to which the browser goes; raises `TooManyRequests`, `Unavailable`."""
        await self._parts.attempts.count(BEGUN, network_of(origin.address))
        provider = client.provider
        async with client.bounded():
            metadata = await client.read_metadata()
        state, nonce, verifier = new_secret(), new_secret(), new_secret()
        begun = Begun(provider=provider.id, browser=hash_token(browser), nonce=nonce, verifier=verifier, place=place)
        await self._store.save_begun(hash_token(state), begun)
        challenge = base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        fields = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": self._redirect_url(provider),
            "scope": " ".join(provider.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return add_fields(metadata.authorization_endpoint, fields)

    async def finish(self, client: ProviderClient, returned: Returned, browser: str, origin: Origin) -> Completed:
        """Return the session of the person whom the provider identifies; raises as its steps do."""
        provider, began_at_ms = client.provider, now_ms()
        begun = await self._store.take_begun(hash_token(returned.state)) if returned.state else None
        if begun is None or begun.provider != provider.id or begun.browser != hash_token(browser):
            raise Untrusted("This sign-in was not begun in this browser in the last 10 minutes. Begin again.")
        identity = await self._identify(client, begun, returned)
        try:
            opened = await self._admit(provider, identity, began_at_ms, origin)
        except NameTaken:
            secret = new_secret()
            unlinked = Unlinked(browser=begun.browser, place=begun.place, identity=identity)
            await self._store.save_unlinked(hash_token(secret), unlinked)
            return Completed(begun.place, secret=secret, name=identity.name)
        return Completed(begun.place, opened)

    async def link(
        self, client: ProviderClient, secret: str, password: str, code: str, browser: str, origin: Origin
    ) -> Completed:
        """Link an account to the subject that was identified, with its password; raises `NotAuthenticated`."""
        began_at_ms = now_ms()
        unlinked = await self._store.take_unlinked(hash_token(secret))
        if (
            unlinked is None
            or unlinked.browser != hash_token(browser)
            or unlinked.identity.provider != client.provider.id
        ):
            raise Untrusted("This sign-in was not begun in this browser in the last 10 minutes. Begin again.")
        identity = unlinked.identity
        try:
            signed_in = await self._parts.reviewers.sign_in(identity.name, password, origin, code=code)
        except NotAuthenticated:
            raise Untrusted(
                "That is not the password of this account, or the code of its app. Nothing was linked. Begin again."
            ) from None
        await self._parts.credentials.sign_out(signed_in.token)
        if signed_in.password_by:
            raise NotAllowed(f"{signed_in.password_by} set your password. Sign in with it and change it first.")

        if await self._find_person(identity) is None:  # it may have got another account meanwhile
            await self._parts.part(People).change_reviewer(identity.name, lambda person: _link(person, identity))
        opened = await self._admit(client.provider, identity, began_at_ms, origin)
        return Completed(unlinked.place, opened)

    async def log_out(self, client: ProviderClient, token: str) -> int:
        """End the sessions that a provider's logout token names; return how many. Raises `Untrusted`."""
        provider, now_s = client.provider, now_ms() / 1000
        header = read_header(token, provider, "logout")
        async with client.bounded():
            key = await client.find_key(header)
        claims = read_claims(token, key, provider, now_s)
        check_logout_token(claims, provider, now_s)
        kept_s = max(1, int(claims["exp"] - now_s) + SKEW_S)
        if not await self._store.use_logout(digest_subject(provider.issuer, claims["jti"]), kept_s):
            raise Untrusted(f"{provider.title} sent this logout token before. Send each once.")
        ending = await self._list_sessions(provider, claims)
        for token_hash in ending:
            await self._parts.credentials.close(token_hash)
        return len(ending)

    def end_address(self, provider: Provider, endpoint: str) -> str:
        """Return the address at which a person also signs out at the provider (RP-Initiated Logout 1.0)."""
        back = f"{self._parts.settings.public_url}/sign-in"
        return add_fields(endpoint, {"client_id": provider.client_id, "post_logout_redirect_uri": back})

    async def _identify(self, client: ProviderClient, begun: Begun, returned: Returned) -> Identity:
        provider = client.provider
        async with client.bounded():
            metadata = await client.read_metadata()
            must_name = metadata.authorization_response_iss_parameter_supported
            if returned.issuer != provider.issuer and (must_name or returned.issuer is not None):
                raise Untrusted("Another provider answered than the one that was asked. Begin again.")
            if returned.error or not returned.code:
                raise NotAllowed(f"The sign-in at {provider.title} was not completed. Begin again.")
            tokens = await client.exchange(returned.code, begun.verifier, self._redirect_url(provider))
            header = read_header(tokens.id_token, provider)
            key = await client.find_key(header)
            claims = read_claims(tokens.id_token, key, provider, now_ms() / 1000)
            check_id_token(claims, provider, nonce=begun.nonce, access_token=tokens.access_token, alg=header.alg)
            if tokens.access_token is not None and list_missing(claims, provider):
                further = await client.read_userinfo(tokens.access_token)
                if further and further.get("sub") != claims["sub"]:
                    raise Untrusted(f"{provider.title} described another person. Begin again.")
                claims = {**further, **claims}
        return identify(claims, provider)

    async def _admit(self, provider: Provider, identity: Identity, began_at_ms: int, origin: Origin) -> SignIn:
        """Open a session of the linked account, or of a new one; raises `NameTaken` or `NotAllowed`."""
        parts = self._parts
        person = await self._find_person(identity) or await self._add_person(provider, identity, origin)
        require_active(person)
        changed: dict[str, Any] = {}
        if provider.rules_roles and set(person.roles) != set(identity.roles):
            with suppress(Conflict):  # the last active admin stays one
                await parts.reviewers.set_roles(person.name, identity.roles)
                changed["roles"] = identity.roles
        for group in sorted(provider.named_groups):
            if await parts.groups.set_member(group, person.name, member=group in identity.groups):
                changed["groups"] = identity.groups
        opened = await parts.reviewers.admit(person.name, provider.id, began_at_ms, origin)
        if identity.session:
            await self._store.note_session(identity.session, hash_token(opened.token))
        marks: dict[str, Any] = {"client": origin.client, "provider": provider.id, **changed}
        await parts.activity.record(SIGNED_IN, person.name, door="web", address=origin.address, **marks)
        return opened

    async def _find_person(self, identity: Identity) -> Reviewer | None:
        """Return the account of a subject, which names it; the index finds a person who was renamed at the provider."""
        for name in (await self._store.find_person(identity.subject), identity.name):
            person = await self._parts.reviewers.find(name) if name is not None else None
            if person is not None and person.subject == identity.subject:
                await self._store.save_person(identity.subject, person.name)
                return person
        return None

    async def _add_person(self, provider: Provider, identity: Identity, origin: Origin) -> Reviewer:
        parts, name = self._parts, identity.name
        if any(key.name.casefold() == name and key.kind != "reviewer" for key in await parts.api_keys.list_all()):
            raise NotAllowed(f"An agent is named {name}, and names must not be confused. Ask an admin.")
        await parts.roles.check(identity.roles)
        person = Reviewer(
            name=name, password_hash="", roles=identity.roles, created_at_ms=now_ms(), subject=identity.subject
        )
        if not await parts.part(People).add_reviewer(person):
            # Added by another sign-in at the same time, or by the company's directory.
            known = await self._find_person(identity) or await self._adopt_person(provider, identity)
            if known is None:
                raise NameTaken
            return known
        await self._store.save_person(identity.subject, name)
        if identity.time_zone:
            preferences = await parts.duty.find_preferences(name)
            zoned = preferences.model_copy(update={"time_zone": identity.time_zone})
            await parts.duty.save_preferences(name, zoned, name)
        marks: dict[str, Any] = {"provider": provider.id, "roles": identity.roles}
        await parts.activity.record("person_added", name, door="web", address=origin.address, target=name, **marks)
        return person

    async def _adopt_person(self, provider: Provider, identity: Identity) -> Reviewer | None:
        """Link an account that a directory made and nobody has a password for, if the provider has the same names."""
        person = await self._parts.reviewers.find(identity.name)
        if not provider.directory or person is None or not person.managed_by or person.password_hash or person.subject:
            return None
        await self._parts.part(People).change_reviewer(identity.name, lambda person: _link(person, identity))
        return await self._find_person(identity)

    async def _list_sessions(self, provider: Provider, claims: Mapping[str, Any]) -> list[str]:
        """Return the hashes of the sessions that a logout token names: one at the provider, or all of a subject."""
        if "sid" in claims:
            return await self._store.list_sessions(digest_subject(provider.issuer, claims["sid"]))
        name = await self._store.find_person(digest_subject(provider.issuer, claims["sub"]))
        sessions = await self._parts.reviewers.list_sessions(name) if name is not None else []
        return [session.token_hash for session in sessions if session.session.provider == provider.id]

    def _redirect_url(self, provider: Provider) -> str:
        return f"{self._parts.settings.public_url}/sign-in/{provider.id}/callback"


def _link(person: Reviewer, identity: Identity) -> Reviewer:
    if person.subject:
        raise NotAllowed("This account is linked to another person of a provider. Ask an admin.")
    return person.model_copy(update={"subject": identity.subject})


def add_fields(url: str, fields: Mapping[str, str]) -> str:
    """Return a URL with further fields in its query."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}"


async def refuse(parts: Wiring, provider: Provider, error: SaysoError, origin: Origin) -> None:
    """Note a refused sign-in in the activity log."""
    address = origin.address
    await parts.activity.refuse(SIGNED_IN, "", error.message, door="web", address=address, target=provider.id)
