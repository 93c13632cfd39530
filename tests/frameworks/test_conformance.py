"""The scenarios of the support table. Each runs for every framework with its real packages."""

from typing import Any

import pytest

from demo.clients import Client, ItemSeen, RunSeen
from launch.stops import wait_until
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import RunStatus
from service.core.store.keys import TenantKeys
from tests.frameworks.bots.effects import DESCRIPTION, HOLD, HOLD_MODEL, RELEASE, THINKING
from tests.frameworks.installations import PATIENCE_S, Installation, Waiting, await_effects, write_script
from tests.journeys.stacks import kill

KEYS = TenantKeys("default")
pytestmark = pytest.mark.timeout(300)


def money(to: str, amount: int) -> dict[str, Any]:
    return {"tool": "send_money", "args": {"to": to, "amount": amount}}


def mail(to: str) -> dict[str, Any]:
    return {"tool": "send_mail", "args": {"to": to, "text": "Hello."}}


def look(what: str) -> dict[str, Any]:
    return {"tool": "look_up", "args": {"what": what}}


async def decide(reviewer: Client, suspension_id: str, *decisions: dict[str, Any]) -> tuple[ItemSeen, ...]:
    """Decide each open item in order."""
    suspension = await reviewer.find_suspension(suspension_id)
    waiting = [item for item in suspension.items if item.outcome is None]
    for item, decision in zip(waiting, decisions, strict=True):
        await reviewer.decide(suspension_id, item, decision, key=f"{suspension_id}-{item.item_id}")
    return suspension.items


async def find_suspensions(client: Client, run_id: str, count: int) -> list[str]:
    """Return the run's suspensions once there are `count`."""
    found: list[str] = []
    async for entry in client.follow(run_id):
        if entry.type == EventType.RUN_PAUSED:
            found.append(entry.data["payload"]["suspension_id"])
        if len(found) == count:
            break
    return found


async def finished(client: Client, run_id: str) -> tuple[RunSeen, str]:
    run = await client.await_end(run_id)
    assert (run.status, run.error) == (RunStatus.COMPLETED, None)
    assert isinstance(run.result, dict)
    return run, str(run.result["text"])


def check_elsewhere(installation: Installation, waiting: Waiting) -> None:
    """Check that effects have keys, and another process than the one that started the run."""
    assert waiting.pid not in {one["pid"] for one in installation.effects()}
    assert all(one["key"] for one in installation.effects()) is installation.kind.seen


async def test_approve(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)])
        assert installation.effects() == []
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        _, text = await finished(agent, waiting.run_id)
        assert [(one["tool"], one["args"]) for one in installation.effects()] == [
            ("send_money", {"to": "ann", "amount": 5})
        ]
        assert "send_money done" in text
        check_elsewhere(installation, waiting)


async def test_edit(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)])
        await decide(reviewer, waiting.suspension_id, {"action": "approve", "args": {"to": "bob", "amount": 3}})
        _, text = await finished(agent, waiting.run_id)
        assert [one["args"] for one in installation.effects()] == [{"to": "bob", "amount": 3}]
        assert "bob" in text


async def test_deny(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)])
        await decide(reviewer, waiting.suspension_id, {"action": "deny", "message": "Ann has left."})
        _, text = await finished(agent, waiting.run_id)
        assert installation.effects() == []
        assert "Ann has left." in text


async def test_changes(installation: Installation) -> None:
    """The agent gets what to change as the result, and its next call is the new version."""
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 5)], [money("ann", 4)])
        wanted = {"action": "deny", "message": "At most 4.", "changes": {"paths": ["args.amount"]}}
        await decide(reviewer, waiting.suspension_id, wanted)
        _, second = await find_suspensions(agent, waiting.run_id, 2)
        (version,) = (await installation.find_suspension(second))["items"]
        assert version["revises"]["suspension_id"] == waiting.suspension_id
        await decide(reviewer, second, {"action": "approve"})
        _, text = await finished(agent, waiting.run_id)
        assert [one["args"] for one in installation.effects()] == [{"to": "ann", "amount": 4}]
        assert "At most 4. Change args.amount, and call send_money again." in text


async def test_value(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ask", 0)])
        await decide(reviewer, waiting.suspension_id, {"action": "value", "value": 7})
        await finished(agent, waiting.run_id)
        assert [one["args"] for one in installation.effects()] == [{"to": "ask", "amount": 7}]


async def test_timeout(installation: Installation) -> None:
    async with installation.people() as (agent, _):
        waiting = installation.suspend([money("late", 5)])
        _, text = await finished(agent, waiting.run_id)
        assert installation.effects() == []
        assert "Nobody answered in time." in text


async def test_batch(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1), mail("bob"), money("cid", 2), look("x"), mail("nobody")])
        assert installation.effects() == []
        await decide(
            reviewer,
            waiting.suspension_id,
            {"action": "approve"},
            {"action": "deny", "message": "Not Bob."},
            {"action": "approve", "args": {"to": "cid", "amount": 9}},
        )
        _, text = await finished(agent, waiting.run_id)
        done = sorted((one["tool"], sorted(map(str, one["args"].values()))) for one in installation.effects())
        assert done == [("look_up", ["x"]), ("send_money", ["1", "ann"]), ("send_money", ["9", "cid"])]
        assert "Not Bob." in text
        assert "Nobody reads that" in text


async def test_twice(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1)], [look("x")], [mail("bob")])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        first, second = await find_suspensions(agent, waiting.run_id, 2)
        assert (await agent.find_run(waiting.run_id)).status is RunStatus.SUSPENDED
        await decide(reviewer, second, {"action": "approve"})
        await finished(agent, waiting.run_id)
        assert first == waiting.suspension_id
        assert [one["tool"] for one in installation.effects()] == ["send_money", "look_up", "send_mail"]


async def test_crash(installation: Installation) -> None:
    """A call that must not run twice is in doubt."""
    async with installation.people() as (agent, reviewer):
        (installation.home / HOLD).touch()
        waiting = installation.suspend([money("ann", 1)])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        await_effects(installation, 1)
        kill(installation.stack, "worker")
        _, doubt = await find_suspensions(agent, waiting.run_id, 2)
        await decide(reviewer, doubt, {"action": "value", "value": {"choice": "skip", "result": "it had run"}})
        _, text = await finished(agent, waiting.run_id)
        assert len(installation.effects()) == 1
        assert "it had run" in text


async def test_again(installation: Installation) -> None:
    """An idempotent call runs again with the same key."""
    async with installation.people() as (agent, reviewer):
        (installation.home / HOLD).touch()
        waiting = installation.suspend([look("secret")])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        await_effects(installation, 1)
        kill(installation.stack, "worker")
        started, repeated = await_effects(installation, 2)
        (installation.home / RELEASE).touch()
        await finished(agent, waiting.run_id)
        assert (started["key"], started["attempt"], repeated["attempt"]) == (repeated["key"], 1, 2)
        assert started["pid"] != repeated["pid"]


async def test_late(installation: Installation) -> None:
    """Results are saved before the model gets them, so that no call runs twice."""
    async with installation.people() as (agent, reviewer):
        (installation.home / HOLD_MODEL).touch()
        waiting = installation.suspend([money("ann", 1)], [mail("bob")])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        assert wait_until((installation.home / THINKING).exists, PATIENCE_S)
        kill(installation.stack, "worker")
        (installation.home / HOLD_MODEL).unlink()
        _, second = await find_suspensions(agent, waiting.run_id, 2)
        await decide(reviewer, second, {"action": "approve"})
        await finished(agent, waiting.run_id)
        assert [one["tool"] for one in installation.effects()] == ["send_money", "send_mail"]


async def test_race(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1)])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        with installation.store as store:
            store.rpush(KEYS.ready, *[waiting.suspension_id] * 20)
        await finished(agent, waiting.run_id)
        assert wait_until(lambda: installation.store.llen(KEYS.ready) == 0, PATIENCE_S)
        assert len(installation.effects()) == 1


async def test_changed(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1), money("changed", 1)])
        (installation.home / DESCRIPTION).write_text("Send money, without a limit.")
        before = kill(installation.stack, "worker")
        assert wait_until(lambda: len(installation.worker_pids() - before) == len(before), PATIENCE_S)
        assert wait_until(lambda: "without a limit" in str(installation.store.hget(KEYS.agents, "bot")), PATIENCE_S)
        await decide(reviewer, waiting.suspension_id, *[{"action": "approve"}] * 2)
        _, again = await find_suspensions(agent, waiting.run_id, 2)
        assert installation.effects() == []
        await decide(reviewer, again, {"action": "approve"}, {"action": "deny"})
        await finished(agent, waiting.run_id)
        assert [one["args"]["to"] for one in installation.effects()] == ["ann"]
        (installation.home / DESCRIPTION).unlink()
        kill(installation.stack, "worker")
        assert wait_until(lambda: "without a limit" not in str(installation.store.hget(KEYS.agents, "bot")), PATIENCE_S)


async def test_large(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1)], padding="x" * 1024 * 1024)
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        await finished(agent, waiting.run_id)
        assert len(installation.effects()) == 1


async def test_tampered(installation: Installation) -> None:
    """A state that is altered, or of another run, is refused. With its own state the run resumes."""
    async with installation.people() as (agent, reviewer):
        waiting, other = installation.suspend([money("ann", 1)]), installation.suspend([money("eve", 1000)])
        key = KEYS.state(waiting.run_id)
        own: Any = installation.store.get(key)
        foreign: Any = installation.store.get(KEYS.state(other.run_id))
        installation.store.set(key, foreign)
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        postponed = [e async for e in read_errors(agent, waiting.run_id, EventType.RUN_POSTPONED)]
        assert "saved state" in postponed[0]
        assert installation.effects() == []
        installation.store.set(key, own)
        await finished(agent, waiting.run_id)
        assert [one["args"]["to"] for one in installation.effects()] == ["ann"]


async def test_stale(installation: Installation) -> None:
    """A decision never answers another interrupt of the thread."""
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1)], [money("eve", 1000)])
        installation.run("tests.frameworks.resume_elsewhere", installation.kind.module)
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        postponed = [e async for e in read_errors(agent, waiting.run_id, EventType.RUN_POSTPONED)]
        assert "no longer waits for these decisions" in postponed[0]
        assert installation.effects() == []


async def read_errors(client: Client, run_id: str, kind: str) -> Any:
    async for entry in client.follow(run_id):
        if entry.type == kind:
            yield str(entry.data["error"])
            return


async def test_timeline(installation: Installation) -> None:
    """The framework's messages in each process are on the timeline once."""
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([money("ann", 1)])
        await decide(reviewer, waiting.suspension_id, {"action": "approve"})
        await finished(agent, waiting.run_id)
        results = [one["external"] for one in await agent.read_timeline(waiting.run_id) if one["external"]]
        (call,) = [one for one in results if one["name"] == "send_money" and one["kind"] == "call"]
        assert (call["ended"], "send_money done" in str(call["output"])) == (True, True)
        assert {one["source"] for one in results} == {installation.kind.environment or installation.kind.name}


async def test_worker(installation: Installation) -> None:
    """A worker starts a run from the API, and any free worker resumes it."""
    async with installation.people() as (agent, reviewer):
        run = await agent.start_run(
            "bot",
            write_script([look("x")], [money("ann", 1)]),
            "By a worker",
            key=installation.home.name + installation.kind.name,
        )
        (suspension,) = await find_suspensions(agent, run.id, 1)
        assert [one["tool"] for one in installation.effects()] == ["look_up"]
        await decide(reviewer, suspension, {"action": "approve"})
        await finished(agent, run.id)
        assert [one["tool"] for one in installation.effects()] == ["look_up", "send_money"]
