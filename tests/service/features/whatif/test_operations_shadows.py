"""A candidate in shadow judges new calls in every process, and its report is that of a replay."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from sayso.core.records.events import EventType
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.features.whatif.candidates import NOT_BESIDE, PolicyBeside
from sayso.wire.rulebook import Effect, Past, ReplayStatus
from service.assembly import assemble
from service.core.operations.runs import erase_run
from service.core.settings import Settings
from service.core.store.keys import TenantKeys
from service.core.store.rules import MOST_VERSIONS, RuleVersion
from service.core.wiring import Wiring
from service.features.rulebook.versions import attest, list_versions, read_version
from service.features.whatif.replays import RuleReplays
from service.features.whatif.shadows import (
    begin_file_shadow,
    begin_shadow,
    end_shadow,
    promote_shadow,
    read_shadows,
    report_shadow,
)
from service.features.whatif.store import Replay
from tests.builders import await_calls_after, person
from tests.service.features.rulebook.test_operations_versions import write
from tests.service.features.whatif.test_operations_replays import LIVE, WRONG, refund, replay, request
from tests.service.worlds import World

STRICT = LIVE.replace("default: allow", "default: deny")


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    write(tmp_path, "policy", LIVE)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")


@pytest.fixture
def replays(world: World) -> RuleReplays:
    found: RuleReplays = world.app.state.rule_replays
    return found


async def shadow(wiring: Wiring, text: str) -> str:
    """Put a file in shadow and return its version; this process follows it, and new calls are in its time."""
    state = await begin_file_shadow(wiring, text, "new.yaml", "root")
    await wiring.rules.compare("test")
    await await_calls_after(wiring, await wiring.schedule.now_ms())
    return state.saved.version


async def read_candidate(wiring: Wiring, record: SuspensionRecord) -> object:
    """Return what the audit trail says about the candidate."""
    trail = await wiring.runs.trail(record.run.id)
    (found,) = [one for one in trail if one.type == EventType.POLICY_DECISION]
    return found.data.get("candidate")


async def report(wiring: Wiring, replays: RuleReplays, version: str | None = None) -> Replay:
    """Return the report on a candidate when it has ended."""
    started = await report_shadow(wiring, replays, "root", version)
    return await replays.wait(started.id, 60)


async def test_report_of_a_shadow_equals_a_replay(world: World, replays: RuleReplays) -> None:
    wiring = world.wiring
    before = await refund(wiring, 700, "deny")
    assert await read_candidate(wiring, before) is None
    version = await shadow(wiring, WRONG)
    for amount, action in ((50, ""), (250, "approve"), (900, "deny"), (20_000, "deny"), (300, "")):
        await refund(wiring, amount, action)
    await request(wiring, "drop", table="orders")
    found = await report(wiring, replays)
    assert (found.status, found.error, found.shadow, found.version) == (ReplayStatus.DONE, "", True, version)
    again = await replay(replays, WRONG, (found.from_ms, found.to_ms))
    assert found.result.model_dump() == again.result.model_dump()
    assert [(one.past, one.now, one.count) for one in found.result.list_cells() if one.changed] == [
        (Past.APPROVED, Effect.ALLOWED, 1),
        (Past.DENIED, Effect.ALLOWED, 1),
        (Past.UNDECIDED, Effect.ALLOWED, 1),
    ]
    await end_shadow(wiring, version, "root")
    await wiring.rules.compare("test")
    await await_calls_after(wiring, await wiring.schedule.now_ms())
    assert await read_candidate(wiring, await refund(wiring, 800)) is None
    assert (await report(wiring, replays, version)).result.count == found.result.count, "it counts only its own time"


async def test_candidate_takes_no_effect_on_a_call(world: World) -> None:
    wiring = world.wiring
    before = await wiring.rules.count_hits(1)
    await shadow(wiring, STRICT)
    record = await refund(wiring, 50)
    outcome = record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict == "approved"
    found = await read_candidate(wiring, record)
    assert isinstance(found, dict)
    assert isinstance(found["judged"], dict)
    assert found["judged"]["effect"] == "denied"
    assert await wiring.rules.count_hits(1) == {**before, "-": before.get("-", 0) + 1}, "no rule of it is hit"


async def test_report_outlives_the_erasure_of_a_run(world: World, replays: RuleReplays) -> None:
    await shadow(world.wiring, WRONG)
    record = await refund(world.wiring, 900)
    await world.wiring.desk.cancel(record.run.id, person("root"))
    await erase_run(world.wiring, record.run.id, person("root"), "asked to")
    finished = await report(world.wiring, replays)
    (cell,) = finished.result.list_cells()
    assert (cell.past, cell.now, cell.count) == (Past.UNDECIDED, Effect.ALLOWED, 1)
    assert [(one.args, one.now, one.reason) for one in cell.listed] == [({}, "", "")], "decisions stay, contents do not"


async def test_calls_that_a_candidate_did_not_judge_are_counted(world: World, replays: RuleReplays) -> None:
    state = await begin_file_shadow(world.wiring, WRONG, "new.yaml", "root")
    await await_calls_after(world.wiring, await world.wiring.schedule.now_ms())
    await refund(world.wiring, 50)
    await world.wiring.rules.compare("test")
    await refund(world.wiring, 60)
    finished = await report(world.wiring, replays, state.saved.version)
    assert (finished.result.judged, finished.result.missing) == (1, {NOT_BESIDE: 1})


async def test_one_candidate_at_a_time_and_never_the_rules_in_force(world: World) -> None:
    wiring = world.wiring
    await wiring.rules.compare("test")
    in_force = (await list_versions(wiring))[0].saved.version
    with pytest.raises(Conflict, match="is in force"):
        await begin_shadow(wiring, in_force, "root")
    with pytest.raises(NotFound):
        await begin_shadow(wiring, "none", "root")
    with pytest.raises(InvalidInput, match="has faults"):
        await begin_file_shadow(wiring, "version: 1\n", "bad.yaml", "root")
    with pytest.raises(NotFound, match="No candidate was ever in shadow"):
        await report_shadow(wiring, RuleReplays(wiring), "root")
    version = await shadow(wiring, WRONG)
    with pytest.raises(Conflict, match=f"Version {version} is in shadow"):
        await begin_file_shadow(wiring, STRICT, "new.yaml", "root")
    with pytest.raises(Conflict, match="is not in shadow"):
        await end_shadow(wiring, "another", "root")
    await end_shadow(wiring, version, "ben")
    with pytest.raises(Conflict, match="is not in shadow"):
        await end_shadow(wiring, version, "ben")
    await begin_shadow(wiring, version, "root")
    state = await read_shadows(wiring)
    assert (state.current.version if state.current else "", [one.ended_by for one in state.ended]) == (version, ["ben"])


@asynccontextmanager
async def run(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wiring:
        await wiring.rules.compare("service")
        yield wiring


async def test_candidate_goes_into_force_once_people_attest_it(settings: Settings) -> None:
    async with run(settings.model_copy(update={"policy_attestations": 1})) as wiring:
        await attest(wiring, LIVE, "policy.yaml", "anna")
        await wiring.rules.compare("service")
        live = wiring.rules.policy().version
        version = await shadow(wiring, STRICT)
        with pytest.raises(Conflict, match="0 of 1 people have attested"):
            await promote_shadow(wiring, version, "root", live)
        await attest(wiring, STRICT, "new.yaml", "anna")
        with pytest.raises(Conflict, match="not in shadow"):
            await promote_shadow(wiring, live, "root", live)
        with pytest.raises(Conflict, match="came into force meanwhile"):
            await promote_shadow(wiring, version, "root", "another")
        assert isinstance(wiring.rules.policy(), PolicyBeside)
        await promote_shadow(wiring, version, "root", live)
        await wiring.rules.compare("service")
        assert wiring.rules.policy().default == "deny"
        assert not isinstance(wiring.rules.policy(), PolicyBeside)
        assert (await read_shadows(wiring)).current is None
        assert (await read_version(wiring, live)).withdrawn


async def test_candidate_that_came_into_force_by_its_file_judges_nothing(settings: Settings, tmp_path: Path) -> None:
    async with run(settings) as wiring:
        version = await shadow(wiring, STRICT)
        joined = wiring.rules.policy()
        assert wiring.rules.policy() is joined, "rules are joined once"
        assert isinstance(joined, PolicyBeside)
        write(tmp_path, "policy", STRICT)
        await wiring.rules.compare("service")
        assert wiring.rules.policy().version == version
        assert not isinstance(wiring.rules.policy(), PolicyBeside)


async def test_candidate_that_cannot_be_read_harms_no_process(settings: Settings) -> None:
    async with run(settings) as wiring:
        version = await shadow(wiring, STRICT)
        keys = TenantKeys(wiring.tenant)
        async with Redis.from_url(settings.store_url) as redis, run(settings) as other:
            assert isinstance(other.rules.policy(), PolicyBeside), "every process follows it"
            await redis.delete(keys.rule_version(version))
            with capture_logs() as logs:
                async with run(settings) as late:
                    assert not isinstance(late.rules.policy(), PolicyBeside)
            assert [one["version"] for one in logs if one["event"] == "candidate_unreadable"] == [version]
            await redis.lset(keys.shadows, 0, '{"of": "another Sayso"}')
            await other.rules.compare("service")
            assert not isinstance(other.rules.policy(), PolicyBeside)


async def test_version_in_shadow_is_kept(settings: Settings) -> None:
    async with run(settings) as wiring:
        version = await shadow(wiring, STRICT)
        versions = wiring.rules.versions
        for number in range(MOST_VERSIONS + 1):
            await versions.save(RuleVersion(version=f"v{number}", digest=str(number), file="f", text="", rules=""))
        assert (await versions.read(version)).text == STRICT
