"""The candidate in shadow, as one process follows it."""

import asyncio

import structlog
from pydantic import ValidationError

from sayso.core.policy.engine import Policy
from sayso.errors import InvalidInput, NotFound
from sayso.features.whatif.candidates import Candidate, PolicyBeside
from service.core.policy.loading import parse_version
from service.core.store.rules import VersionStore
from service.core.store.tenants import TenantStore
from service.features.whatif.store import ShadowStore

_LOG = structlog.get_logger(__name__)


class CandidateInShadow:
    """The candidate by which this process judges calls beside the rules in force."""

    def __init__(self, store: TenantStore) -> None:
        self._shadows, self._versions = ShadowStore(store), VersionStore(store)
        self._followed = ""
        self._candidate: Candidate | None = None
        self._joined: tuple[Policy, Policy] | None = None

    async def follow(self) -> None:
        """Load the candidate that is in shadow, or drop one that no longer is; one that cannot be read is logged."""
        try:
            shadow = await self._shadows.read()
        except ValidationError:  # of another version of Sayso
            shadow = None
        shadow_id = shadow.id if shadow is not None else ""
        if shadow_id == self._followed:
            return
        candidate = await self._load(shadow.version) if shadow is not None else None
        self._followed, self._candidate, self._joined = shadow_id, candidate, None

    def join(self, policy: Policy) -> Policy:
        """Return the rules in force with the candidate beside them; as they are without one, and while it is in force.

        The same rules are joined once.
        """
        candidate = self._candidate
        if candidate is None or candidate.policy.version == policy.version:
            return policy
        if self._joined is None or self._joined[0] is not policy:
            self._joined = (policy, PolicyBeside.join(policy, candidate))
        return self._joined[1]

    async def _load(self, version: str) -> Candidate | None:
        try:
            saved = await self._versions.read(version)
            policy = await asyncio.to_thread(parse_version, saved)
        except (InvalidInput, NotFound) as error:
            _LOG.error("candidate_unreadable", version=version, why=error.message)
            return None
        if policy.version != version:
            _LOG.error("candidate_unreadable", version=version, why="Another version of Sayso put it in shadow.")
            return None
        return Candidate(policy)
