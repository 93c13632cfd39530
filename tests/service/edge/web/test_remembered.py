"""The page of an item shows what rules remembered, as Sayso counted it, and the trial shows it as it is now."""

from pathlib import Path

from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import REFUND, register_agent, run_ref
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import place_of

RULES = """
version: 1
default: request_approval
rules:
  - id: small-refunds
    tool: refund
    action: allow
    limit: {count: 5, per: 1h, by: [agent, args.order]}
    budget: {sum: args.amount, max: 100, per: 1d}
"""


async def ask(wiring: Wiring, amount: float) -> SuspensionRecord:
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": amount})
    return (await wiring.desk.suspend(run_ref(), [ExternalCall(call, REFUND)], ResumeSpec(mode="poll"))).record


async def test_item_page_and_trial_show_what_rules_remember(settings: Settings) -> None:
    assert isinstance(settings.policy, Path)
    settings.policy.write_text(RULES)
    async with visit(settings) as anna:
        await register_agent(anna.wiring)
        await ask(anna.wiring, 90)
        record = await ask(anna.wiring, 20)
        page = await anna.read(place_of(record))
        for words in ("What the rules remember", "90 of 100 amount in 1 d; this call adds 20", "Counted by Sayso"):
            assert words in page, words
        assert "1 of 5 calls in 1 h" in page
        assert "for the same" in page
        assert "agent and order" in page
        await ask(anna.wiring, 5)
        fields = {"tool": "refund", "agent": "demo", "args": '{"order": "A", "amount": 6}'}
        tried = await anna.send("/rules/-/try", 200, **fields)
        assert "It would wait" in tried
        assert "95 of 100 amount in 1 d; this call adds 6" in tried
