"""Mandates: list and revoke them. The approval of a plan makes one, in its own commit."""

import asyncio
from collections.abc import Callable, Sequence

from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import Actor
from sayso.core.records.permissions import GrantState, Mandate
from sayso.errors import NotFound
from sayso.features.permissions.making import find_changed
from service.store.memory.grants import GrantStore, Use
from service.store.runs.runs import Runs


class Mandating:
    """The mandates of one tenant, as people and their agents see and end them."""

    def __init__(self, store: GrantStore[Mandate], runs: Runs, policy: Callable[[], Policy]) -> None:
        self._store, self._runs, self._policy = store, runs, policy

    async def now_ms(self) -> int:
        return await self._store.now_ms()

    async def list_uses(self) -> list[Use[Mandate]]:
        """Return the mandates with their use, the latest first; those that ended a month ago are deleted."""
        now_ms = await self._store.now_ms()
        await self._store.forget_old(now_ms)
        return await self._end_with_runs(await self._store.list_uses(), now_ms)

    async def find_use(self, mandate_id: str) -> Use[Mandate] | None:
        """Return one mandate with its use; None if no plan of this id was approved."""
        mandate = await self._store.find(mandate_id)
        if mandate is None:
            return None
        uses = await self._store.add_uses([mandate])
        return (await self._end_with_runs(uses, await self._store.now_ms()))[0]

    def find_void(self, mandate: Mandate) -> bool:
        """Return whether a rule that permitted a mandate is gone or changed, so that it silences that rule no more."""
        return find_changed(self._policy(), mandate.envelope) is not None

    async def revoke(self, mandate_id: str, by: Actor) -> Mandate:
        """End a mandate at once, also for calls that it allowed and that have not started; repeated, change nothing.

        Every person may, and the agent's own key. Raises `NotFound`, also for another agent.
        """
        now_ms = await self._store.now_ms()

        def end(known: Mandate) -> Mandate:
            if known.find_state(now_ms) is not GrantState.IN_FORCE:
                return known
            return known.model_copy(update={"revoked_by": by.id, "revoked_at_ms": now_ms})

        revoked = await self._store.change(mandate_id, end)
        if revoked is None:
            raise NotFound(f"There is no mandate {mandate_id!r} in force. List the mandates to see their ids.")
        return revoked

    async def _end_with_runs(self, uses: Sequence[Use[Mandate]], now_ms: int) -> list[Use[Mandate]]:
        """Return the mandates; one of a single run ends with it."""
        ends = await asyncio.gather(*(self._find_end(use.grant, now_ms) for use in uses))
        return [
            use if end is None else use._replace(grant=use.grant.model_copy(update={"until_ms": end}))
            for use, end in zip(uses, ends, strict=True)
        ]

    async def _find_end(self, mandate: Mandate, now_ms: int) -> int | None:
        """Return when the only run of a mandate ended, if it has."""
        if not mandate.envelope.run_id or mandate.find_state(now_ms) is not GrantState.IN_FORCE:
            return None
        try:
            run = await self._runs.read(mandate.envelope.run_id)
        except NotFound:
            return mandate.at_ms
        return run.updated_at_ms if run.status.ended else None
