"""Runs under a mandate: calls inside run, others wait, and its end stops calls that waited beside them."""

from typing import Any

from sayso.core.clock import now_ms
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.permissions import Envelope, Mandate, MandatedTool
from sayso.core.records.suspensions import Change, RunRef
from sayso.features.permissions.grants import digest_rule
from sayso.runner.agents import Agent
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import Ledger as Journal
from tests.sayso.runners import Ran, approve, make_agent, reload, turn
from tests.sayso.samples import pending
from tests.sayso.walks import START

REFUNDS = rule("refunds", "request_approval", tool_name="refund", mandates={"longest": "1d"})
RULES = policy(REFUNDS, default=Action.ALLOW)
RUN = RunRef(id="run_1", agent="support", owner="bot", thread_id="thread_1")
INSIDE, OUTSIDE = ("refund", {"order": "A", "amount": 5}), ("look", {"order": "A"})


def hold_mandate(journal: Journal, agent: Agent, **fields: Any) -> None:
    """Put a mandate for two refunds of order A in force."""
    begun_ms = now_ms()
    tool = MandatedTool(
        tool="refund", definition=agent.tools_by_name["refund"].definition.digest, free=("args.order", "args.amount")
    )
    envelope = Envelope(for_s=3600, count=2, tools=(tool,), rules={"refunds": digest_rule(REFUNDS)})
    found: dict[str, Any] = {
        "id": "man_1",
        "agent": "support",
        "owner": "bot",
        "thread_id": "thread_1",
        "envelope": envelope,
        "at_ms": begun_ms,
        "until_ms": begun_ms + 3_600_000,
        "granters": (Actor(id="anna", kind=ActorKind.HUMAN),),
        "suspension_id": "sus_9",
        "item_id": "i1",
    }
    journal._counters.apply(None, Change(pending(), mandate=Mandate(**found | fields)))


async def test_calls_inside_run_until_the_mandate_is_used_up() -> None:
    ran: Ran = []
    agent, journal = make_agent(ran, turn(INSIDE, INSIDE), turn(INSIDE)), Journal("run_1")
    hold_mandate(journal, agent)
    reached = await drive(ModelRun(agent, START, RUN), policy=RULES, journal=journal)
    assert isinstance(reached, RunSuspended)
    assert [name for name, _, _ in ran] == ["refund", "refund"]
    assert str(reached.drafts[0].prompt.reason).endswith("It is outside mandate man_1.")


async def test_calls_outside_wait_even_if_the_rules_allow_them() -> None:
    ran: Ran = []
    agent, journal = make_agent(ran, turn(OUTSIDE)), Journal("run_1")
    free = await drive(ModelRun(make_agent(ran, turn(OUTSIDE)), START, RUN), policy=RULES, journal=Journal("run_1"))
    assert isinstance(free, RunEnded)
    hold_mandate(journal, agent)
    reached = await drive(ModelRun(agent, START, RUN), policy=RULES, journal=journal)
    assert isinstance(reached, RunSuspended)
    assert len(ran) == 1


async def test_call_that_waited_is_judged_again_without_its_mandate() -> None:
    ran: Ran = []
    agent, journal = make_agent(ran, turn(INSIDE, OUTSIDE)), Journal("run_1")
    hold_mandate(journal, agent)
    waits = await drive(ModelRun(agent, START, RUN), policy=RULES, journal=journal)
    assert isinstance(waits, RunSuspended)
    assert [one.index for one in waits.drafts] == [1]
    hold_mandate(journal, agent, revoked_at_ms=now_ms(), revoked_by="ben")
    run = ModelRun(agent, reload(waits.state), RUN)
    reached = await drive(run, policy=RULES, journal=journal, outcomes={1: approve(waits.drafts[0])})
    assert isinstance(reached, RunSuspended)
    assert [one.tool.name for one in reached.drafts] == ["refund"]
    assert "refund" not in [name for name, _, _ in ran]
