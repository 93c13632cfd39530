"""The life cycle of rules: unattested ones are held back, and an earlier version returns until a newer one comes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from redis import Redis
from structlog.testing import capture_logs

from sayso.core.policy.engine import ASK_EVERYTHING
from sayso.errors import Conflict, InvalidInput, NotFound
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.rules import MOST_VERSIONS, RuleVersion
from service.core.wiring import Wiring
from service.features.operate.diagnostics import diagnose
from service.features.rulebook.versions import (
    VersionState,
    attest,
    attest_version,
    list_versions,
    read_version,
    restore,
)

OLD = "version: 1\ndefault: allow\nrules: []\n"
NEW = "version: 1\ndefault: request_approval\nrules: [{id: no-refunds, tool: refund, action: deny}]\n"
THIRD = "version: 1\ndefault: deny\nrules: []\n"
KEYS = TenantKeys(TENANT)

Start = Callable[..., AbstractAsyncContextManager[Wiring]]


@pytest.fixture
def start(clean_store_url: str, tmp_path: Path) -> Start:
    """Start a process with a file of its own, where so many people must attest rules."""

    @asynccontextmanager
    async def run(name: str, text: str = "", needed: int = 0) -> AsyncIterator[Wiring]:
        if text:
            write(tmp_path, name, text)
        settings = Settings(
            home=tmp_path, redis_url=clean_store_url, policy=tmp_path / f"{name}.yaml", policy_attestations=needed
        )
        async with assemble(settings) as wiring:
            await wiring.rules.compare(name)
            yield wiring

    return run


def write(folder: Path, name: str, text: str) -> None:
    """Move a new file over the old one."""
    fresh = folder / f"{name}.new"
    fresh.write_text(text)
    fresh.replace(folder / f"{name}.yaml")


async def default_of(wiring: Wiring, name: str) -> str:
    """Return the default of the rules by which a process judges."""
    await wiring.rules.compare(name)
    return wiring.rules.policy().default


async def find(wiring: Wiring, text: str) -> VersionState:
    """Return the version with this text."""
    return next(state for state in await list_versions(wiring) if state.saved.text == text)


async def roll_back(wiring: Wiring, text: str) -> None:
    """Put the version with this text back in force."""
    await restore(wiring, (await find(wiring, text)).saved.version, "root", wiring.rules.policy().version)


async def test_versions_are_kept_with_their_bytes_and_times(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service:
        write(tmp_path, "service", NEW)
        assert await default_of(service, "service") == "request_approval"
        new, old = await list_versions(service)
        assert (new.saved.text, old.saved.text) == (NEW, OLD)
        assert new.saved.digest == sha256(NEW.encode()).hexdigest()
        assert (new.in_force, old.in_force) == (True, False)
        assert (new.spans[0].how, new.spans[0].to_ms, old.spans[0].how) == ("changed", None, "start")
        assert old.spans[0].to_ms == new.spans[0].from_ms
        assert await read_version(service, new.saved.version) == new
        with pytest.raises(NotFound, match="There is no version 'x'"):
            await read_version(service, "x")


async def test_unattested_rules_take_no_force_until_two_people_attest_them(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service:
        assert await default_of(service, "service") == "allow"
    async with start("service", needed=2) as service, start("worker", OLD, needed=2) as worker:
        write(tmp_path, "service", NEW)
        with capture_logs() as logs:
            assert await default_of(service, "service") == "allow"
            assert await default_of(service, "service") == "allow"
        assert [one["why"] for one in logs if one["event"] == "rules_held_back"] == ["unattested"], "logged once"
        assert service.rules.policy().version == (await find(service, OLD)).saved.version
        (finding,) = [one async for one in diagnose(service) if one.part == "rules held back"]
        assert "0 of 2 people have attested its bytes" in finding.message
        assert "sayso policy attest" in finding.todo
        state = await find(service, NEW)
        await attest_version(service, state.saved.version, state.saved.digest, "anna")
        await attest(service, NEW, "new.yaml", "anna")
        assert await default_of(service, "service") == "allow", "one person counts once"
        assert (await attest(service, NEW, "new.yaml", "ben")).attested == 2
        assert await default_of(service, "service") == "request_approval"
        assert await default_of(worker, "worker") == "request_approval"
        assert service.rules.held_back is None
        assert (await find(service, NEW)).in_force


async def test_attestation_is_of_exact_bytes(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD, needed=1) as service:
        await attest(service, OLD, "service.yaml", "anna")
        assert await default_of(service, "service") == "allow"
        await attest(service, NEW, "service.yaml", "anna")
        write(tmp_path, "service", f"{NEW}# a comment\n")
        assert await default_of(service, "service") == "allow"
        state = await find(service, f"{NEW}# a comment\n")
        assert state.attested == 0
        with pytest.raises(Conflict, match="changed meanwhile"):
            await attest_version(service, state.saved.version, sha256(NEW.encode()).hexdigest(), "ben")
        write(tmp_path, "service", NEW)
        assert await default_of(service, "service") == "request_approval"
        with pytest.raises(InvalidInput, match=r"faulty\.yaml has faults: faulty\.yaml:1:1"):
            await attest(service, "version: 1\nrules: []\n", "faulty.yaml", "anna")


async def test_attestation_covers_the_files_of_lists(start: Start, tmp_path: Path) -> None:
    text = OLD.replace("rules:", "lists: {vip: {file: vip.txt}}\nrules:")
    (tmp_path / "vip.txt").write_text("anna\n")
    async with start("service", text, needed=1) as service:
        await attest(service, text, "service.yaml", "anna", {"vip.txt": "anna\n", "other.txt": "unused"})
        assert await default_of(service, "service") == "allow"
        in_force = service.rules.policy().version
        (tmp_path / "vip.txt").write_text("anna\nmallory\n")
        await service.rules.compare("service")
        assert service.rules.policy().version == in_force, "the changed list is not attested"
        held = service.rules.held_back
        assert held is not None
        assert (await read_version(service, held.version)).saved.lists == {"vip.txt": "anna\nmallory\n"}
        await attest_version(service, held.version, held.digest, "anna")
        await service.rules.compare("service")
        assert service.rules.policy().version == held.version
        await restore(service, in_force, "root", held.version)


async def test_everything_is_asked_while_no_rules_were_ever_attested(start: Start) -> None:
    async with start("service", OLD, needed=1) as service:
        assert service.rules.policy() is ASK_EVERYTHING
        await service.rules.compare("service")
        assert service.rules.policy() is ASK_EVERYTHING
        await attest(service, OLD, "service.yaml", "anna")
        assert await default_of(service, "service") == "allow"


async def test_earlier_version_returns_in_one_step_and_stays(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service, start("worker", OLD) as worker:
        write(tmp_path, "service", NEW)
        assert await default_of(service, "service") == "request_approval"
        await roll_back(service, OLD)
        assert [await default_of(*one) for one in ((service, "service"), (worker, "worker"))] == ["allow", "allow"]
        new, old = await find(service, NEW), await find(service, OLD)
        assert (new.withdrawn, new.in_force, old.in_force) == (True, False, True)
        assert (old.spans[0].how, old.spans[0].by) == ("restored", "root")
    async with start("service") as service, start("worker", NEW) as worker:
        assert await default_of(service, "service") == "allow", "a start brings no withdrawn version back"
        assert await default_of(worker, "worker") == "allow", "neither does a file that changes to it"
        assert worker.rules.held_back is not None
        (finding,) = [one async for one in diagnose(worker) if one.part == "rules held back"]
        assert "an admin put an earlier version in its place" in finding.message
        write(tmp_path, "service", THIRD)
        assert await default_of(service, "service") == "deny", "a newer version takes force as usual"
        assert await default_of(worker, "worker") == "deny"


async def test_restored_version_stays_although_no_process_holds_it(
    start: Start, tmp_path: Path, clean_store_url: str
) -> None:
    async with start("service", OLD) as service:
        write(tmp_path, "service", NEW)
        await default_of(service, "service")
        write(tmp_path, "service", THIRD)
        await default_of(service, "service")
        await roll_back(service, NEW)
        with Redis.from_url(clean_store_url) as store:
            store.hdel(KEYS.rules, "p:service")
    async with start("elsewhere", OLD) as other:
        assert await default_of(other, "elsewhere") == "request_approval"


async def test_withdrawn_version_returns_when_a_person_puts_it_back(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service:
        write(tmp_path, "service", NEW)
        await default_of(service, "service")
        await roll_back(service, OLD)
        await default_of(service, "service")
        await roll_back(service, NEW)
        assert await default_of(service, "service") == "request_approval"
        assert not (await find(service, NEW)).withdrawn
        assert service.rules.held_back is None


async def test_restoring_refuses_what_the_person_did_not_see(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service:
        old = (await find(service, OLD)).saved.version
        with pytest.raises(Conflict, match="in force already"):
            await restore(service, old, "root", old)
        write(tmp_path, "service", NEW)
        await default_of(service, "service")
        with pytest.raises(Conflict, match=f"Version {service.rules.policy().version} came into force meanwhile"):
            await restore(service, old, "root", "another")
        draft = await attest(service, THIRD, "third.yaml", "root")
        with pytest.raises(Conflict, match="was never in force"):
            await restore(service, draft.saved.version, "root", service.rules.policy().version)


async def test_version_written_by_another_sayso_is_parsed_anew(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service:
        write(tmp_path, "service", NEW)
        await default_of(service, "service")
        old = (await find(service, OLD)).saved
        changed = old.model_copy(update={"rules": '{"default": "allow", "unknown": 1}', "digest": "another"})
        await service.rules.versions.save(changed)
        await roll_back(service, OLD)
        assert await default_of(service, "service") == "allow"
        await service.rules.versions.save(changed.model_copy(update={"text": "rules: nonsense", "digest": "a third"}))
        await roll_back(service, NEW)
        with pytest.raises(InvalidInput, match="cannot read these rules"):
            await restore(service, old.version, "root", service.rules.policy().version)


async def test_rules_in_force_of_another_sayso_are_parsed_anew(
    start: Start, tmp_path: Path, clean_store_url: str
) -> None:
    """After an update of Sayso the same bytes may have another version, and the stored rules another form."""
    async with start("service", OLD) as service:
        old = service.rules.policy().version
        write(tmp_path, "service", NEW)
        await default_of(service, "service")
        await roll_back(service, OLD)
        with Redis.from_url(clean_store_url) as store:
            store.set(KEYS.rulebook, '{"default": "allow", "unknown": 1}')
            withdrawn = [one for one in store.hget(KEYS.rules, "withdrawn").decode().split() if len(one) == 64]
            store.hset(KEYS.rules, "withdrawn", " ".join(withdrawn))
    async with start("service") as service:
        assert await default_of(service, "service") == "allow"
        assert service.rules.policy().version == old
        assert service.rules.held_back is not None, "the withdrawn bytes are known without their version"


async def test_oldest_versions_beyond_the_limit_are_deleted(start: Start) -> None:
    async with start("service", OLD) as service:
        in_force = service.rules.policy().version
        for number in range(MOST_VERSIONS + 1):
            await service.rules.versions.save(
                RuleVersion(version=f"v{number}", digest="d", file="f", text="", rules="{}")
            )
        names = {saved.version for saved in await service.rules.versions.list_all()}
        assert in_force in names
        assert "v0" not in names
        assert f"v{MOST_VERSIONS}" in names
