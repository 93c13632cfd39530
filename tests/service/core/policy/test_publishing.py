"""Services and workers that hold different files of rules judge alike, and doctor says who holds which."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from redis import Redis

from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall
from sayso.errors import Unavailable
from service.assembly import assemble
from service.core.policy.publishing import RulesInForce
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.operate.diagnostics import Finding, diagnose
from tests.builders import REFUND, run_ref

OLD = "version: 1\ndefault: allow\nrules: []\n"
NEW = "version: 1\ndefault: request_approval\nrules: [{id: no-refunds, tool: refund, action: deny}]\n"
KEYS = TenantKeys(TENANT)

Start = Callable[[str, str], AbstractAsyncContextManager[Wiring]]


@pytest.fixture
def start(clean_store_url: str, tmp_path: Path) -> Start:
    """Start a process with a file of its own; one that is named again finds what it left."""

    @asynccontextmanager
    async def run(name: str, text: str = "") -> AsyncIterator[Wiring]:
        file = tmp_path / f"{name}.yaml"
        if text:
            file.write_text(text)
        async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=file)) as wiring:
            await wiring.rules.compare(name)
            yield wiring

    return run


async def verdict(wiring: Wiring) -> str | None:
    """Return the action that this process takes on a refund."""
    await wiring.rules.compare("any")
    call = ExternalCall(ToolCall(call_id="c1", index=0, name="refund", args={"order": "A-1", "amount": 5}), REFUND)
    saved = await wiring.desk.suspend(run_ref(), [call], ResumeSpec())
    outcome = saved.record.items[0].outcome
    return outcome.verdict if outcome is not None else None


async def find_held(wiring: Wiring) -> Finding:
    (found,) = [one async for one in diagnose(wiring) if one.part == "rules held"]
    return found


async def test_newest_published_rules_apply_in_every_process(start: Start) -> None:
    async with start("service", OLD) as service:
        assert await verdict(service) == "approved"
        async with start("worker", NEW) as worker:
            assert [await verdict(one) for one in (service, worker)] == ["denied", "denied"]


async def test_a_process_with_old_rules_that_starts_anew_brings_them_not_back(start: Start) -> None:
    async with start("old", OLD), start("new", NEW) as new:
        async with start("old", "") as again:
            assert await verdict(again) == "denied"
        async with start("late-copy-of-old", OLD) as copy:
            assert [await verdict(one) for one in (copy, new)] == ["denied", "denied"]


async def test_a_file_that_changes_is_in_force_everywhere(start: Start, tmp_path: Path) -> None:
    async with start("service", NEW) as service, start("worker", NEW) as worker:
        assert await verdict(worker) == "denied"
        (tmp_path / "service.yaml").write_text(OLD)
        assert [await verdict(one) for one in (service, worker)] == ["approved", "approved"]


async def test_old_rules_are_back_once_nobody_holds_the_newer(
    start: Start, clean_store_url: str, tmp_path: Path
) -> None:
    async with start("new", NEW), start("old", OLD) as old:
        with Redis.from_url(clean_store_url) as store:
            store.hdel(KEYS.rules, "p:new", "p:any")
            store.hset(KEYS.rules, "in-force", "of-nobody")
        fresh = RulesInForce(old.rules._store, old.rulebook, tmp_path / "old.yaml")
        await fresh.compare("fresh")
        assert fresh.policy().version == old.rulebook.policy.version


async def test_doctor_names_who_holds_other_rules(start: Start) -> None:
    async with start("service", OLD) as service, start("worker", OLD) as worker:
        assert (await find_held(service)).ok
        async with start("late", NEW) as late:
            await service.rules.compare("service")
            found = await find_held(service)
            assert not found.ok
            assert f"2 of 3 hold other rules than version {late.rulebook.policy.version}" in found.message
            assert f"worker holds {worker.rulebook.policy.version} of " in found.message


async def test_a_process_of_kept_rules_is_listed_until_it_ends(start: Start, tmp_path: Path) -> None:
    async with start("service", OLD) as service:
        fresh = RulesInForce(service.rules._store, service.rulebook, tmp_path / "service.yaml")
        async with fresh.kept("worker"):
            assert any(one.process.startswith("worker ") for one in (await service.rules.list_holders())[1])
        assert [one.process for one in (await service.rules.list_holders())[1]] == ["service"]


@pytest.mark.parametrize("written", ["{}", '{"default": "allow"}', "nonsense"])
async def test_rules_in_force_that_cannot_be_read_judge_nothing(
    start: Start, clean_store_url: str, written: str
) -> None:
    async with start("service", OLD) as service:
        with Redis.from_url(clean_store_url) as store:
            store.hset(KEYS.rules, "in-force", "another")
            store.set(KEYS.rulebook, written)
        with pytest.raises(Unavailable, match="cannot be read by this process"):
            await verdict(service)
