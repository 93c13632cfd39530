"""Edited arguments that another rule asks about are asked anew, under that rule's terms."""

from pathlib import Path

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import ResumeSpec, Status
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import PolicyForbids, StaleDigest
from service.assembly import assemble
from service.core.settings import Settings
from tests.builders import make_pending, person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - {id: refunds, tool: refund, priority: 1, action: request_approval, reason: money leaves}
  - {id: large, tool: refund, priority: 900, when: args.amount > 500, action: request_approval, reason: a lot of money,
     terms: {reviewers: [carla], timeout_s: 900}}
  - {id: codes, tool: refund, priority: 999, when: args.amount > 950, action: request_user_input,
     ask: {target_arg: code}}
"""

TRANSFERS = """
version: 1
default: request_approval
rules:
  - {id: small, tool: transfer, when: args.amount <= 100, action: request_approval}
  - {id: large, tool: transfer, when: args.amount > 100, action: request_approval, terms: {quorum: {approve: 2}}}
"""


async def test_an_edit_that_another_rule_asks_about_is_asked_anew(clean_store_url: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wiring:
        record = await make_pending(wiring)
        old = record.items[0].digest

        def word(amount: float, digest: str) -> DecisionRequest:
            return DecisionRequest(action="approve", digest=digest, args={"order": "A-1", "amount": amount})

        saved = await wiring.desk.decide(record.id, "i1", word(900, old), person("anna"))
        item = saved.record.items[0]
        assert saved.record.status is Status.PENDING
        assert (item.tool.args["amount"], item.terms.rule_id, item.terms.reviewers) == (900, "large", ("carla",))
        assert item.prompt.reason == "a lot of money"
        assert item.decisions == (), "decisions on the replaced item still count"
        with pytest.raises(StaleDigest):
            await wiring.desk.decide(record.id, "i1", word(900, old), person("anna"))
        kinds = [entry.type for entry in await wiring.runs.trail(record.run.id)]
        assert kinds == ["run_paused", "asked_again"]
        yes = DecisionRequest(action="approve", digest=item.digest)
        assert (await wiring.desk.decide(record.id, "i1", yes, person("carla"))).record.approved


async def test_an_edit_under_the_same_rule_is_the_last_word(clean_store_url: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wiring:
        record = await make_pending(wiring)
        word = DecisionRequest(action="approve", digest=record.items[0].digest, args={"order": "A-1", "amount": 20})
        assert (await wiring.desk.decide(record.id, "i1", word, person("anna"))).record.approved


async def test_an_edit_that_cannot_be_judged_waits_for_the_higher_quorum(clean_store_url: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(TRANSFERS)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wiring:
        run = run_ref(owner="bot")
        call = ToolCall(call_id="c1", index=0, name="transfer", args={"amount": 50})
        gated = ExternalCall(call, ToolDefinition(name="transfer", parameters={"type": "object"}))
        record = (await wiring.desk.suspend(run, (gated,), ResumeSpec(mode="poll", resumer="poll"))).record
        edited = DecisionRequest(action="approve", digest=record.items[0].digest, args={"amount": "5000"})
        record = (await wiring.desk.decide(record.id, "i1", edited, person("anna"))).record
        (item,) = record.items
        assert (record.status, item.terms.quorum.approve, item.decisions) == (Status.PENDING, 2, ())
        yes = DecisionRequest(action="approve", digest=item.digest)
        assert (await wiring.desk.decide(record.id, "i1", yes, person("anna"))).record.items[0].open
        assert (await wiring.desk.decide(record.id, "i1", yes, person("ben"))).record.approved


async def test_an_edit_that_a_rule_asks_for_what_the_tool_does_not_take_is_refused(
    clean_store_url: str, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wiring:
        record = await make_pending(wiring)
        word = DecisionRequest(action="approve", digest=record.items[0].digest, args={"order": "A-1", "amount": 999})
        with pytest.raises(PolicyForbids, match="'code', which refund does not take"):
            await wiring.desk.decide(record.id, "i1", word, person("anna"))
        saved = await wiring.desk.suspensions.read(record.id)
        assert saved.record == record
