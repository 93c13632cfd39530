"""What drafts of items get when they are asked: a draw for one more approval, a time to undo, and their confirmer."""

import secrets
from collections.abc import Sequence
from hmac import digest
from typing import Any

from pydantic import JsonValue

from sayso.core.canonical_json import canonical_json
from sayso.core.policy.strictness import raise_quorum
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.items import ItemDraft, PresetOutcome
from sayso.core.records.suspensions import RunRef
from sayso.core.records.terms import merge_stages
from service.core.store.people import People
from service.core.store.tenants import TenantStore

_SAMPLING = "sampling secret"


class Sampling:
    """The draw of one tenant, and the time to undo decisions where rules state none.

    The secret is made when it is first needed, and never changes.
    """

    def __init__(self, store: TenantStore, undo: str | None = None) -> None:
        self._redis, self._keys, self._sealer = store.redis, store.keys, store.sealer
        self._secret, self._undo, self._find_active = b"", undo, People(store).find_active

    def add_undo(self, drafts: Sequence[ItemDraft]) -> Sequence[ItemDraft]:
        """Return the drafts, with the setting's time to undo in terms that have none."""
        if self._undo is None:
            return drafts
        return [
            draft.model_copy(update={"terms": draft.terms.model_copy(update={"undo": draft.terms.undo or self._undo})})
            for draft in drafts
        ]

    async def complete(self, drafts: Sequence[ItemDraft]) -> Sequence[ItemDraft]:
        """Return the drafts with the time to undo, denied if nobody can confirm them."""
        drafts = self.add_undo(drafts)
        if any(draft.terms.confirm_by for draft in drafts):
            drafts = [await self._check_confirmer(draft) for draft in drafts]
        return drafts

    async def draw(self, drafts: Sequence[ItemDraft], run: RunRef) -> Sequence[ItemDraft]:
        """Return the complete drafts of a run, with one more approval if drawn."""
        drafts = await self.complete(drafts)
        if all(draft.terms.sample is None or draft.terms.sample.before is None for draft in drafts):
            return drafts
        return draw_samples(drafts, await self.read_secret(), (self._keys.tenant, run.owner, run.agent))

    async def _check_confirmer(self, draft: ItemDraft) -> ItemDraft:
        name = draft.terms.confirm_by
        if name is None or draft.preset is not None or await self._find_active(name) is not None:
            return draft
        why = f"{name}, for whom the agent acts, must confirm this call, and has no active account here."
        denied = PresetOutcome(verdict=Verdict.DENIED, by=Actor(id="policy", kind=ActorKind.POLICY), message=why)
        return draft.model_copy(update={"preset": denied})

    async def read_secret(self) -> bytes:
        if not self._secret:
            fresh = self._sealer.seal_bytes(_SAMPLING, secrets.token_bytes(32))
            await self._redis.set(self._keys.sampling, fresh, nx=True)
            secret: Any = await self._redis.get(self._keys.sampling)
            self._secret = self._sealer.open_bytes(_SAMPLING, bytes(secret))
        return self._secret


MOST_APPROVALS = 20


def draw_samples(drafts: Sequence[ItemDraft], key: bytes, about: Sequence[str]) -> tuple[ItemDraft, ...]:
    """Return the drafts, drawn ones with one more approval; `about` is the tenant, the owner and the agent.

    An item is drawn if the first 8 bytes of HMAC-SHA-256(key, the canonical JSON of [...about, rule, sub-agent, tool,
    arguments]), as a big-endian number, are below the share of 2^64. The same call is thus drawn again, however often
    an agent asks. Only a holder of the key can foresee this, and can check it later.
    """
    return tuple(_draw(draft, key, about) for draft in drafts)


def _draw(draft: ItemDraft, key: bytes, about: Sequence[str]) -> ItemDraft:
    sample, quorum = draft.terms.sample, merge_stages(draft.terms).quorum
    if sample is None or sample.before is None or draft.preset is not None:
        return draft
    call: list[JsonValue] = [*about, draft.rule_id, draft.subagent, draft.tool.name, draft.tool.args]
    mac = draw(key, canonical_json(call).decode(), sample.before)
    if mac is None:
        return draft
    terms = raise_quorum(draft.terms, min(quorum.approve + 1, MOST_APPROVALS))
    return draft.model_copy(update={"terms": terms, "drawn": mac})


def draw(key: bytes, name: str, share: float) -> str | None:
    """Return the HMAC-SHA-256 of a name as hex if its first 8 bytes are below the share of 2^64, else None."""
    mac = digest(key, name.encode(), "sha256")
    return mac.hex() if int.from_bytes(mac[:8]) < share * 2**64 else None
