"""Candidates in shadow: whole files of rules that judge every new call beside the rules in force, without effect."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from sayso.core.clock import new_id
from sayso.core.policy.engine import Policy
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.features.whatif.candidates import Candidate, PolicyBeside
from service.core.policy.evaluations import NO_LISTS
from service.core.policy.publishing import parse_version
from service.core.store.rules import VersionStore
from service.core.store.tenants import TenantStore
from service.core.wiring import Wiring
from service.features.rulebook.versions import VersionState, read_version, restore, save_file
from service.features.whatif.replays import ReplayRequest, RuleReplays
from service.features.whatif.store import Replay, Shadow, ShadowStore


class ShadowState(NamedTuple):
    """The candidate in shadow, if any, and the earlier ones, the latest first."""

    current: Shadow | None
    ended: Sequence[Shadow]


async def read_shadows(wiring: Wiring) -> ShadowState:
    """Return the candidate in shadow and those before it."""
    shadows = await wiring.part(ShadowStore).list_all()
    current = shadows[0] if shadows and shadows[0].ended_ms is None else None
    return ShadowState(current, shadows[1:] if current is not None else shadows)


async def begin_shadow(wiring: Wiring, version: str, by: str) -> None:
    """Put a saved version in shadow within a second; raises `Conflict`, and `InvalidInput` if it cannot be read."""
    state = await read_version(wiring, version)
    if state.in_force:
        raise Conflict(f"Version {version} is in force, so it judges all calls already. Choose another one.")
    if parse_version(state.saved).version != version:
        raise InvalidInput(f"Another version of Sayso saved version {version}. Put its file in shadow.")
    began_ms = await wiring.schedule.now_ms()
    saved = state.saved
    shadow = Shadow(id=new_id("shd"), version=version, digest=saved.digest, file=saved.file, by=by, began_ms=began_ms)
    await wiring.part(ShadowStore).begin(shadow)


async def begin_file_shadow(
    wiring: Wiring, text: str, file: str, by: str, lists: Mapping[str, str] = NO_LISTS
) -> VersionState:
    """Save a file of rules as a version and put it in shadow; raises `InvalidInput` for faulty rules, and `Conflict`.

    `lists` are the texts of the files that the rules name.
    """
    saved = await save_file(wiring, text, file, by, lists)
    await begin_shadow(wiring, saved.version, by)
    return await read_version(wiring, saved.version)


async def end_shadow(wiring: Wiring, version: str, by: str) -> None:
    """End the candidate with this version; raises `Conflict` if it is not in shadow."""
    await wiring.part(ShadowStore).end(version, by, await wiring.schedule.now_ms())


async def promote_shadow(wiring: Wiring, version: str, by: str, replaces: str) -> None:
    """Put the candidate in shadow in force in place of `replaces`, and end its shadow.

    Raises `Conflict` where it is not in shadow, where too few people attest its bytes, or where another version than
    `replaces` is in force.
    """
    current = (await read_shadows(wiring)).current
    if current is None or current.version != version:
        raise Conflict(f"Version {version} is not in shadow. Put it there first, or move its file over the one in use.")
    await restore(wiring, version, by, replaces, tried=True)
    await end_shadow(wiring, version, by)


async def report_shadow(
    wiring: Wiring, replays: RuleReplays, by: str, version: str | None = None, path: str | None = None
) -> Replay:
    """Start to count what the last shadow of a version would have done, beside what was done; return its `Replay`.

    Without a version it is that in shadow, else the last one. `path` is the argument to sum. Raises `NotFound`.
    """
    state = await read_shadows(wiring)
    listed = [*([state.current] if state.current is not None else []), *state.ended]
    shadow = next((shadow for shadow in listed if version in (None, shadow.version)), None)
    if shadow is None:
        what = f"Version {version} was never in shadow" if version is not None else "No candidate was ever in shadow"
        raise NotFound(f"{what}. `sayso policy shadow start FILE` puts a file there.")
    end_ms = shadow.ended_ms if shadow.ended_ms is not None else await wiring.schedule.now_ms() + 1
    saved = await wiring.rules.versions.read(shadow.version)
    span = (shadow.began_ms, end_ms)
    asked = ReplayRequest(saved.text, saved.file, *span, path, lists=saved.lists, shadow=shadow.version)
    return await replays.start(asked, by)


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
            policy = await asyncio.to_thread(parse_version, await self._versions.read(version))
        except (InvalidInput, NotFound) as error:
            _LOG.error("candidate_unreadable", version=version, why=error.message)
            return None
        if policy.version != version:
            _LOG.error("candidate_unreadable", version=version, why="Another version of Sayso put it in shadow.")
            return None
        return Candidate(policy)
