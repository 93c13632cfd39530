"""Offers to undo a call, for tests: as a worker saves one after a call that ran under a veto."""

from typing import Any

from sayso.core.policy.rules import Action
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.runner.agents import Agent
from sayso.runner.batches import BatchCall, VetoTerms
from sayso.runner.models import ScriptedModel
from sayso.runner.tools import tool
from service.core.wiring import Wiring
from tests.service.edge.web.stories import asked
from workers.resume.offers import make_offer, save_offer


@tool(undo=lambda arguments, result: None)
def refund(order: str, amount: float, note: str = "") -> str:
    """Refund an order."""
    return order


PAYER = Agent(name="support", instructions="x", tools=(refund,), model=ScriptedModel([]))


async def offer_undo(
    wiring: Wiring, key: str = "k1", output: str = "receipt r-5", note: str = "", **terms: Any
) -> SuspensionRecord:
    """Return the offer to undo a refund of a run that waits for another call."""
    record = await asked(wiring)
    args = {"order": "A-5", "amount": 5.0, "note": note}
    entry = BatchCall(
        call=ToolCall(call_id="c5", index=0, name="refund", args=args),
        action=Action.ALLOW,
        reason="Small refunds run at once",
        rule_id="small",
        veto=VetoTerms(terms=RuleTerms(**{"veto": "10m", **terms}), rule_version="v1"),
        result=ToolResult(call_id="c5", tool_name="refund", success=True, output=output),
    )
    at_ms = await wiring.schedule.now_ms()
    event = await save_offer(wiring.desk, make_offer(PAYER, record, entry, key, at_ms))
    return (await wiring.desk.suspensions.read(str(event.data["suspension_id"]))).record
