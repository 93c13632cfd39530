"""The rules file, and the rules in force: the newest that any service or worker has published, unless held back.

Each process publishes the rules of its own file, which it reads again after a change, and reads the version in force
twice a second. If that is another version, it evaluates calls by the published rules, so that all processes decide
alike. A version is held back while too few people have attested its bytes, and after an admin has put an earlier one
in force instead.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from sayso.core.clock import monotonic_ms
from sayso.core.policy.engine import ASK_EVERYTHING, Policy
from sayso.core.policy.files.reading import (
    DEFAULT_TERMS,
    RulebookError,
    load_rulebook,
    parse_beside,
    parse_rulebook,
    read_bytes,
)
from sayso.core.policy.functions import Stamp
from sayso.core.policy.functions.lists import collect_files, pick_file, stamp
from sayso.core.records.terms import RuleTerms
from sayso.errors import Altered, InvalidInput, NotFound, Unavailable, Unreadable
from service.core.logs import Trouble
from service.core.policy.evaluations import check_value
from service.core.store.rules import Holder, Published, RuleStore, RuleVersion, digest_files
from service.core.store.tenants import Companion

_LOG = structlog.get_logger(__name__)
_CHECK = partial(check_value, formats=True)  # runs costly checks in the sandbox


class RuleSource(NamedTuple):
    """The bytes of a policy, the file that had them, and the texts of the files that its lists name."""

    file: str
    raw: bytes
    lists: Mapping[str, str] = MappingProxyType({})

    @property
    def digest(self) -> str:
        return digest_files(self.raw, self.lists)


class Rulebook:
    """The policy of a file, reloaded when it or a list's file changes; the last valid one while a file is invalid."""

    def __init__(self, path: Path | None, *, terms: RuleTerms = DEFAULT_TERMS) -> None:
        self._path = path
        self._terms = terms
        self._seen: list[tuple[Path | None, Stamp]] = [(path, stamp(path))]
        self.source = RuleSource(str(path or ""), b"")
        self.policy = self._load()
        self._seen += self.policy.stamps.items()
        self.error: RulebookError | None = None

    def refresh(self) -> Policy:
        """Return the current policy of the file, or the last valid one with the reason in `error`."""
        if self._has_changed():
            fault = self.error
            self._seen = [(self._path, stamp(self._path))]  # before the read: a change during it is seen the next time
            try:
                self.policy = self._load()
                self.error = None
            except RulebookError as error:
                self.error = error
            self._seen += (self.error or self.policy).stamps.items()
            if self.error is not None and fault is None:
                _LOG.error("rules_held", file=str(self._path), held=self.policy.version, error=self.error.message)
            elif self.error is None and fault is not None:
                _LOG.info("rules_held_no_longer", file=str(self._path), version=self.policy.version)
        return self.policy

    def is_held(self) -> bool:
        """Return whether the file is invalid now, so that its last valid policy stays."""
        self.refresh()
        return self.error is not None

    def _load(self) -> Policy:
        if self._path is None:
            return load_rulebook(None, terms=self._terms)
        raw = read_bytes(self._path)
        lists: dict[str, str] = {}
        policy = parse_beside(raw, self._path, terms=self._terms, check=_CHECK, texts=lists)
        self.source = RuleSource(str(self._path), raw, lists)
        return policy

    def read_source(self) -> tuple[Path, bytes] | None:
        """Return the file and its bytes; None without a file, or while it differs from the policy."""
        if self._path is None or self.error is not None:
            return None
        try:
            raw = self._path.read_bytes()
        except OSError:
            return None
        return None if self._has_changed() else (self._path, raw)

    def read_lists(self) -> dict[str, str]:
        """Return the texts of the files of lists by their names in the rules, without those that cannot be read."""
        return collect_files(self.source.raw, self._path.parent) if self._path is not None else {}

    def _has_changed(self) -> bool:
        return any(stamp(path) != seen for path, seen in self._seen)


def parse_version(version: RuleVersion) -> Policy:
    """Return the rules of a version as saved, or parsed anew from its bytes; raises `InvalidInput`."""
    try:
        policy = Policy.model_validate_json(version.rules)
        if policy.version == version.version:
            return policy
    except ValidationError:
        pass  # parsed from its bytes
    try:
        return parse_rulebook(version.text.encode(), file=version.file, read_list=pick_file(version.lists))
    except RulebookError as error:
        raise InvalidInput(f"This version of Sayso cannot read these rules: {error.message}") from error


@cache
def rulebook_of(path: Path) -> Rulebook:
    """Return this process's rulebook of a file; forks inherit its last valid policy."""
    return Rulebook(path)


EVERY_S = 0.5
UNATTESTED = "unattested"
WITHDRAWN = "withdrawn"
_REPORTED_EVERY_MS = 5_000


class HeldBack(NamedTuple):
    """Rules of this file that take no force, as `unattested` (`attested` of `needed` people did) or `withdrawn`."""

    version: str
    digest: str
    file: str
    why: str
    attested: int
    needed: int


class RulesInForce:
    """The rules that one process evaluates; outside of `kept`, those of its own file.

    Where `needed` people must attest rules, those of its own file never apply before they are in force, and everything
    is asked about while no rules are.
    """

    def __init__(
        self, store: RuleStore, rulebook: Rulebook, file: Path, needed: int = 0, companions: Sequence[Companion] = ()
    ) -> None:
        self._store, self._rulebook, self._needed, self._companions = store, rulebook, needed, companions
        self.versions, self.list_asked = store.versions, store.list_asked
        self.count_hits, self.count_shadow_hits = store.count_hits, store.count_shadow_hits
        self._file = f"{os.uname().nodename}:{file}"
        self._reported: str | None = None
        self._reported_at_ms, self._reported_digest = 0.0, ""
        self._newest: Policy | None = None
        self._adopted = self._fault = ""
        self._withdrawn: frozenset[str] = frozenset()
        self.held_back: HeldBack | None = None

    def policy(self) -> Policy:
        """Return the rules in force, with what judges beside them; raises `Unavailable` when they cannot be read."""
        own = self._rulebook.refresh()
        if own.version != self._reported and not self._needed and not self._is_withdrawn(own):
            policy = own  # the file has just changed: its rules are the newest
        elif self._fault:
            raise Unavailable(self._fault)
        else:
            policy = self._newest or (ASK_EVERYTHING if self._needed else own)
        for companion in self._companions:
            policy = companion.join(policy)
        return policy

    @asynccontextmanager
    async def kept(self, process: str) -> AsyncIterator[None]:
        """Publish and follow the rules during the block."""
        named, trouble = f"{process} {os.uname().nodename}:{os.getpid()}", Trouble("rules_not_compared")
        await self._try(named, trouble)
        ending = asyncio.Event()  # a cancellation may get lost during a command

        async def follow() -> None:
            while not ending.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_S):
                        await ending.wait()
                        return
                await self._try(named, trouble)

        following = asyncio.create_task(follow())
        try:
            yield
        finally:
            ending.set()
            await asyncio.wait([following])
            with suppress(Unavailable):
                await self._store.remove(named)

    async def compare(self, process: str) -> None:
        """Publish the rules of this process if due, and adopt newer ones."""
        own = self._rulebook.refresh()
        version = await self._publish(Holder(process, self._file, own.version), own)
        if version == own.version:
            self._newest, self._adopted, self._fault, self.held_back = own, version, "", None
        elif not version:
            self._newest = None
        elif self._newest is None or self._adopted != version:
            await self._adopt()
            if self.held_back is None:  # it may have been withdrawn
                await self._hold_back(own, "", in_force=version)
        self._reported, self._reported_digest = own.version, self._rulebook.source.digest
        for companion in self._companions:
            await companion.follow()

    async def list_holders(self) -> tuple[str | None, list[Holder]]:
        """Return the version in force, and the version of each live process."""
        return await self.versions.read_in_force() or None, await self._store.list_holders()

    def read_source(self) -> tuple[Path, bytes] | None:
        """Return this process's file and its bytes; None where the rules in force are of another file."""
        source = self._rulebook.read_source()
        return source if self.policy().version == self._rulebook.policy.version else None

    async def _publish(self, holder: Holder, own: Policy) -> str:
        """Report this process, publish its rules if they are new or were held back, and return the version in force."""
        held = self.held_back if self.held_back is not None and self.held_back.version == own.version else None
        new = (own.version, self._rulebook.source.digest) != (self._reported, self._reported_digest)
        if not new and not await self._is_due(held) and (version := await self.versions.read_in_force()):
            return version
        how = "start" if self._reported is None else "changed" if new or held is not None else "held"
        if new:
            source = self._rulebook.source
            saved = RuleVersion(
                version=own.version,
                digest=source.digest,
                file=source.file,
                text=source.raw.decode(errors="replace"),
                lists=dict(source.lists),
                rules=own.model_dump_json(),
            )
            await self.versions.save(saved)
        version, alive, why = await self._send(holder, own, how)
        if not version or (version != holder.version and not alive):
            version, _, why = await self._send(holder, own, "start")
        await self._hold_back(own, why, in_force=version)
        self._reported_at_ms = monotonic_ms()
        return version

    async def _send(self, holder: Holder, own: Policy, how: str) -> Published:
        rules = own.model_dump_json() if how != "held" else ""
        return await self._store.publish(holder, how, rules, digest=self._rulebook.source.digest, needed=self._needed)

    async def _is_due(self, held: HeldBack | None) -> bool:
        """Return whether to report again: every few seconds, and once enough people attest rules held back."""
        if monotonic_ms() - self._reported_at_ms >= _REPORTED_EVERY_MS:
            return True
        if held is None or held.why != UNATTESTED:
            return False
        attested = await self.versions.count_attestations(held.digest)
        self.held_back = held._replace(attested=attested)
        return attested >= self._needed

    async def _hold_back(self, own: Policy, why: str, *, in_force: str) -> None:
        """Note and log whether the rules of this process take no force."""
        versions, source = self.versions, self._rulebook.source
        self._withdrawn = await versions.read_withdrawn()
        before, self.held_back = self.held_back, None
        if own.version != in_force and self._is_withdrawn(own):
            why = WITHDRAWN
        if why:
            attested = await versions.count_attestations(source.digest)
            self.held_back = HeldBack(own.version, source.digest, self._file, why, attested, self._needed)
            if before is None or before[:4] != self.held_back[:4]:
                _LOG.warning("rules_held_back", **self.held_back._asdict())

    def _is_withdrawn(self, own: Policy) -> bool:
        return not self._withdrawn.isdisjoint((own.version, self._rulebook.source.digest))

    async def _adopt(self) -> None:
        """Take the version in force; the rules of another Sayso are parsed anew from their bytes."""
        version, rules = await self._store.read_rules()
        newest: Policy | None = None
        with suppress(ValidationError):
            newest = Policy.model_validate_json(rules)
        if newest is None or newest.version != version:
            newest = None
            with suppress(NotFound, InvalidInput, Unreadable):
                newest = parse_version(await self.versions.read(version))
        if newest is None:
            self._fault = (
                f"The rules in force, version {version}, cannot be read by this process, so it evaluates no calls. "
                "Run the same version of Sayso everywhere."
            )
            _LOG.error("rules_unreadable", version=version)
            return
        self._newest, self._adopted, self._fault = newest, version, ""
        _LOG.warning("rules_of_another_file", in_force=version, file=self._file)

    async def _try(self, process: str, trouble: Trouble) -> None:
        try:
            await self.compare(process)
            trouble.over()
        except (Unavailable, Altered) as error:
            trouble.note(error)
