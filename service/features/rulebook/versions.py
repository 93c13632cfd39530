"""The life cycle of the rulebook: its versions, attestations of their bytes, and the return to an earlier one."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.policy.functions.lists import keep_texts, pick_file
from sayso.errors import Conflict, InvalidInput, NotFound
from service.core.operations.known_names import find_known
from service.core.policy.evaluations import NO_LISTS
from service.core.policy.publishing import UNATTESTED, HeldBack, parse_version
from service.core.store.rules import Attestation, ForceChange, RuleVersion, VersionStore, digest_files
from service.core.wiring import Wiring

_MOST_FAULTS = 5


class Span(NamedTuple):
    """A time in which a version was in force, ms; None while it still is. `how` and `by` say how it came."""

    from_ms: int
    to_ms: int | None
    how: str
    by: str


class VersionState(NamedTuple):
    """A version, when it was in force, and who attests its bytes; `withdrawn` says that an earlier one replaced it."""

    saved: RuleVersion
    spans: Sequence[Span]
    attestations: Sequence[Attestation]
    in_force: bool
    withdrawn: bool

    @property
    def attested(self) -> int:
        return len(self.attestations)


def describe_held_back(held: HeldBack) -> tuple[str, str]:
    """Return why rules in a file are not in force, and what to do."""
    page = f"the page /rules/-/versions/{held.version}"
    if held.why == UNATTESTED:
        people = f"{held.attested} of {held.needed}"
        text = f"Version {held.version} of {held.file} is not in force: {people} people have attested its bytes."
        return text, f"Read it and attest it on {page}, or with `sayso policy attest FILE`."
    text = f"Version {held.version} of {held.file} is not in force: an admin put an earlier version in its place."
    return text, f"Correct the file, or put this version back in force on {page}."


async def list_versions(wiring: Wiring) -> list[VersionState]:
    """Return the kept versions, the last saved first."""
    versions = wiring.rules.versions
    now = await _read_now(versions)
    kept = await versions.list_all()
    attested = await asyncio.gather(*(versions.list_attestations(version.digest) for version in kept))
    return [_describe(version, named, now) for version, named in zip(kept, attested, strict=True)]


async def read_version(wiring: Wiring, version: str) -> VersionState:
    """Return one version; raises `NotFound`."""
    versions = wiring.rules.versions
    saved = await versions.read(version)
    return _describe(saved, await versions.list_attestations(saved.digest), await _read_now(versions))


async def attest(wiring: Wiring, text: str, file: str, by: str, lists: Mapping[str, str] = NO_LISTS) -> VersionState:
    """Record that a person attests exactly these bytes, and save them; raises `InvalidInput` for faulty rules."""
    saved = await save_file(wiring, text, file, by, lists)
    await wiring.rules.versions.attest(saved.digest, by, await wiring.schedule.now_ms())
    return await read_version(wiring, saved.version)


async def save_file(wiring: Wiring, text: str, file: str, by: str, lists: Mapping[str, str] = NO_LISTS) -> RuleVersion:
    """Save a file of rules as a version, and return it; raises `InvalidInput` for faulty rules."""
    checked = await wiring.desk.evaluations.check_rules(text, file, await find_known(wiring), lists=lists, caller=by)
    if checked.faults or checked.version is None:
        raise InvalidInput(f"{file} has faults: {'; '.join(checked.faults[:_MOST_FAULTS])}")
    used: dict[str, str] = {}
    read = keep_texts(pick_file(lists), used)
    policy = await asyncio.to_thread(parse_rulebook, text.encode(), file=file, read_list=read)
    version = RuleVersion(
        version=policy.version,
        digest=digest_files(text.encode(), used),
        file=file,
        text=text,
        lists=used,
        rules=policy.model_dump_json(),
    )
    await wiring.rules.versions.save(version)
    return version


async def attest_version(wiring: Wiring, version: str, digest: str, by: str) -> None:
    """Record that a person attests the saved bytes of a version; raises `Conflict` if they have another digest."""
    if (await wiring.rules.versions.read(version)).digest != digest:
        raise Conflict("The file has changed meanwhile. Read it again before you attest it.")
    await wiring.rules.versions.attest(digest, by, await wiring.schedule.now_ms())


async def restore(wiring: Wiring, version: str, by: str, replaces: str, *, tried: bool = False) -> None:
    """Put a version back in force that was in force before; `replaces` is the one that the person saw in force.

    One that was `tried` in shadow needs not have been, but enough people must attest its bytes. Raises `Conflict` where
    it never was, where another one is in force by now, and `InvalidInput` where this version of Sayso cannot read it.
    """
    state = await read_version(wiring, version)
    if state.in_force:
        raise Conflict(f"Version {version} is in force already. Choose an earlier one.")
    if tried and state.attested < wiring.settings.policy_attestations:
        needed = wiring.settings.policy_attestations
        raise Conflict(f"{state.attested} of {needed} people have attested the bytes of version {version}. Attest it.")
    if not state.spans and not tried:
        raise Conflict(f"Version {version} was never in force. Move its file over the one in use.")
    policy = await asyncio.to_thread(parse_version, state.saved)
    restored = state.saved.model_copy(update={"version": policy.version, "rules": policy.model_dump_json()})
    if policy.version != version:
        await wiring.rules.versions.save(restored)
    await wiring.rules.versions.restore(restored, by, replaces, await _find_digest(wiring, replaces))


async def _find_digest(wiring: Wiring, version: str) -> str:
    try:
        return (await wiring.rules.versions.read(version)).digest
    except NotFound:
        return version  # of a store from before versions were kept


class _Now(NamedTuple):
    """What is in force, when that changed, the latest first, and what an admin replaced."""

    in_force: str
    changes: Sequence[ForceChange]
    withdrawn: frozenset[str]


async def _read_now(versions: VersionStore) -> _Now:
    return _Now(await versions.read_in_force(), await versions.list_changes(), await versions.read_withdrawn())


def _describe(version: RuleVersion, attestations: Sequence[Attestation], now: _Now) -> VersionState:
    ends: list[int | None] = [None, *(change.at_ms for change in now.changes)]
    spans = [
        Span(change.at_ms, end_ms, change.how, change.by)
        for change, end_ms in zip(now.changes, ends, strict=False)
        if change.version == version.version
    ]
    withdrawn = not now.withdrawn.isdisjoint((version.version, version.digest))
    return VersionState(version, spans, attestations, version.version == now.in_force, withdrawn)
