"""API keys of one tenant: create, rotate, revoke; and a cache of those that are revoked."""

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_network

from sayso.core.clock import new_id, new_secret, now_ms
from sayso.core.records.decisions import KeyKind
from sayso.core.records.freezes import NamedKey, Revocations, find_revoked
from sayso.errors import Conflict, InvalidInput, NotFound
from service.core.auth.reviewers import NOBODY, hash_token, refuse_our_names
from service.core.cache import Cache, Refresher
from service.core.settings import SHORTEST_KEY
from service.core.store.people import NO_TERMS, ApiKey, KeyTerms, Made, People, Tokens


class RevocationCache:
    """Deactivated reviewers and revoked keys of one tenant."""

    def __init__(self, people: People, refresher: Refresher) -> None:
        self._people = people
        self.find = Cache(self._read, refresher).find

    async def _read(self) -> Revocations:
        keys = await self._people.list_keys()
        by_name: dict[str, tuple[NamedKey, ...]] = {}
        for key in keys:
            if key.kind == "agent":
                by_name[key.name] = (*by_name.get(key.name, ()), NamedKey(key.id, key.created_at_ms))
        inactive = {reviewer.name for reviewer in await self._people.list_reviewers() if not reviewer.active}
        return Revocations(find_revoked(keys), by_name, frozenset(inactive))


_NAME = re.compile(r"[!-~]{1,64}")
_SHOWN = 8  # hexadecimal digits of a secret that its key's prefix shows
LATEST_MS = 2**53  # a moment that never comes


class ApiKeys:
    """The API keys of one tenant."""

    def __init__(self, tenant: str, people: People, tokens: Tokens) -> None:
        self._tenant, self._people, self._tokens = tenant, people, tokens
        self.list_all, self.scan, self.list_uses = people.list_keys, people.scan_keys, people.list_uses

    async def create(
        self,
        name: str,
        secret: str | None = None,
        kind: KeyKind = "agent",
        predecessor_id: str | None = None,
        terms: KeyTerms = NO_TERMS,
        by: str = "",
        made: Made = NOBODY,
    ) -> tuple[ApiKey, str]:
        """Create a key; return it with its only plain copy. Raises `InvalidInput`, `Conflict` for a used `secret`."""
        if predecessor_id is None:
            if not _NAME.fullmatch(name):
                raise InvalidInput(
                    "A key's name is 1 to 64 visible ASCII characters without spaces. Choose another name."
                )
            refuse_our_names(name)
            await self._check_terms(kind, terms)
        if secret is not None and len(secret) < SHORTEST_KEY:
            raise InvalidInput(
                f"The key has {len(secret)} characters; the minimum is {SHORTEST_KEY}. Choose a longer, random one."
            )
        begin = f"sayso_{kind}_"
        plain = secret or f"{begin}{new_secret()}"
        key_hash = hash_token(plain)
        existing = await self._tokens.find_key(key_hash)
        if existing is not None:
            if not existing.holds(now_ms()):
                raise Conflict("This key was revoked or has ended, which is final. Choose another one.")
            if (existing.tenant, existing.name, existing.kind) != (self._tenant, name, kind):
                raise Conflict("This key belongs to somebody else. Choose another one.")
            return existing, plain
        key = ApiKey(
            id=new_id("key"),
            tenant=self._tenant,
            name=name,
            kind=kind,
            created_at_ms=now_ms(),
            predecessor_id=predecessor_id,
            created_by=by,
            made_by=made.by,
            made_at_ms=made.at_ms,
            prefix="" if secret else plain[: len(begin) + _SHOWN],
            **terms.model_dump(),
        )
        await self._people.save_key(key_hash, key)
        return key, plain

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key within a second everywhere; raises `NotFound`. `withdrawals` cancels its runs."""
        at_ms = now_ms()
        return await self._change(
            key_id, lambda key: key.model_copy(update={"revoked_at_ms": key.revoked_at_ms or at_ms})
        )

    async def rotate(self, key_id: str, overlap_s: int, by: str = "", made: Made = NOBODY) -> tuple[ApiKey, str]:
        """Create the successor of a key, which ends after the overlap; `by` makes it. Raises `NotFound`, `Conflict`."""
        key_hash = await self._people.find_key_hash(key_id)
        key = await self._tokens.find_key(key_hash) if key_hash else None
        if key is None:
            raise _not_found(key_id)
        if not key.holds(now_ms()):
            raise Conflict("This key was revoked or has ended. Create a new one instead.")
        at_ms, terms = now_ms(), key.terms
        if key.expires_at_ms is not None:  # the successor lasts as long as the key was to last
            terms = terms.model_copy(update={"expires_at_ms": at_ms + key.expires_at_ms - key.created_at_ms})
        successor, plain = await self.create(key.name, None, key.kind, key.id, terms, by, made)
        ends_at_ms = at_ms + overlap_s * 1000
        await self._change(
            key_id, lambda old: old.model_copy(update={"ends_at_ms": min(ends_at_ms, old.ends_at_ms or LATEST_MS)})
        )
        return successor, plain

    async def _check_terms(self, kind: KeyKind, terms: KeyTerms) -> None:
        """Raise `InvalidInput` for terms that no key of the kind can have."""
        if terms.owner is not None:
            if kind != "agent":
                raise InvalidInput("Only an agent's key has an owner. Leave out the owner.")
            if await self._people.find_active(terms.owner) is None:
                raise InvalidInput(f"There is no active person named {terms.owner!r} to own the key. Correct the name.")
        if kind != "agent" and (terms.scopes or terms.agents):
            raise InvalidInput("Only an agent's key has scopes and agents. Leave them out.")
        for network in terms.networks:
            try:
                ip_network(network)
            except ValueError:
                problem = f"{network!r} is no range of addresses"
                raise InvalidInput(f"{problem}. Write it as a range such as 2001:db8::/32.") from None
        if terms.expires_at_ms is not None and terms.expires_at_ms <= now_ms():
            raise InvalidInput("The key would have expired already. Choose a later time.")

    async def note_withdrawn(self, key_id: str) -> None:
        await self._change(key_id, lambda key: key.model_copy(update={"withdrawn": True}))

    async def _change(self, key_id: str, change: Callable[[ApiKey], ApiKey]) -> ApiKey:
        """Change a key; without an entry in the index, all records with its id."""
        key_hash = await self._people.find_key_hash(key_id)
        stored = await self.scan() if key_hash is None else []
        hashes = [key_hash] if key_hash is not None else [row.key_hash for row in stored if row.key.id == key_id]
        keys = [await self._people.change_key(key_hash, change) for key_hash in hashes]
        changed = next((key for key in keys if key is not None), None)
        if changed is None:
            raise _not_found(key_id)
        return changed


def find_by_prefix(keys: Sequence[ApiKey], given: str) -> ApiKey | None:
    """Return the key with whose prefix the text begins; None for an id, for any other text, and where several fit."""
    matching = [key for key in keys if key.prefix and given.startswith(key.prefix) and key.revoked_at_ms is None]
    return matching[0] if len(matching) == 1 else None


def _not_found(key_id: str) -> NotFound:
    return NotFound(f"There is no API key {key_id!r}.")
