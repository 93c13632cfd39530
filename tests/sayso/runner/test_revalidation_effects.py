"""An approved call is asked again, with the difference, if its tool now says that it would do something else."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.freezes import Revocations
from sayso.core.records.previews import Preview
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from sayso.runner.previews import renew_previews
from sayso.runner.revalidation import Revalidation, carry_over, list_starting, revalidate
from sayso.runner.tools import tool
from tests.sayso.rule_builders import policy, rule
from tests.sayso.samples import T0, ask, pending, word

RULES = policy(rule("refunds", "request_approval", tool_name="refund"))
EDIT: JsonObject = {"order": "B-1", "amount": 1.5}
previewed: list[JsonObject] = []


def say(args: JsonObject) -> str:
    previewed.append(args)
    return f"pays {args['amount']}"


@tool(name="refund", preview=say)
def refund(order: str, amount: float) -> str:
    """Refund an order."""
    return order


AGENT = Agent(name="support", instructions="x", tools=(refund,), model=ScriptedModel([]))


def made(content: str, digest: str, **fields: Any) -> Preview:
    return Preview(content=content, digest=digest * 64, at_ms=T0, **fields)


SEEN = made("pays 250.5", "a")


def approved(*previews: Preview, **decision: Any) -> SuspensionRecord:
    plain = ask()
    update = {"definition": refund.definition.digest, "previews": True}
    drafted = plain.model_copy(update={"tool": plain.tool.model_copy(update=update), "previews": previews})
    record = pending(drafted)
    return decide(record, word(record, **decision), T0).record


def check(record: SuspensionRecord, now: Preview) -> Revalidation:
    return revalidate(record, AGENT, RULES, Revocations(), T0, effects={0: now})


def test_same_effect_keeps_the_approval() -> None:
    assert check(approved(SEEN), SEEN.model_copy(update={"at_ms": T0 + 9})).again == {}


def test_other_effect_is_asked_again_beside_the_approved_one() -> None:
    record, now = approved(SEEN), made("pays 900", "b")
    checked = check(record, now)
    assert checked.reasons == {0: "What it would do has changed since."}
    assert checked.again[0].previews == (now.model_copy(update={"before": "pays 250.5"}),)
    drafts, events = carry_over(record, checked)
    assert (drafts[0].preset, [event.data["reason"] for event in events]) == (None, [checked.reasons[0]])


def test_edit_is_compared_with_its_own_preview() -> None:
    own = made("pays 1.5", "c", args=EDIT)
    assert check(approved(SEEN, own, args=EDIT), made("pays 1.5", "c")).again == {}
    checked = check(approved(SEEN, args=EDIT), made("pays 1.5", "c"))
    assert checked.reasons == {0: "Nobody saw what it would do."}
    assert (checked.again[0].previews[0].before, checked.again[0].tool.args) == (None, EDIT)


def test_call_that_is_asked_again_for_another_reason_has_a_preview() -> None:
    now = SEEN.model_copy(update={"at_ms": T0 + 9})
    checked = revalidate(approved(SEEN), AGENT, RULES, Revocations(inactive=frozenset({"ada"})), T0, effects={0: now})
    assert checked.again[0].previews == (now,)


def test_preview_stays_with_a_call_whose_outcome_is_carried_over() -> None:
    drafts, _ = carry_over(approved(SEEN), Revalidation({}, {}, {}))
    assert drafts[0].previews == (SEEN,)


@pytest.mark.parametrize("decision", [{}, {"args": EDIT}], ids=["as asked", "edited"])
async def test_previews_are_renewed_with_the_approved_arguments(decision: dict[str, Any]) -> None:
    previewed.clear()
    record = approved(SEEN, **decision)
    now = await renew_previews(AGENT, list_starting(record), T0 + 5)
    args = decision.get("args", record.items[0].tool.args)
    assert previewed == [args]
    assert (now[0].content, now[0].at_ms, now[0].args) == (f"pays {args['amount']}", T0 + 5, None)


async def test_calls_that_no_person_decided_are_not_previewed() -> None:
    plain = decide(record := pending(ask()), word(record), T0).record
    assert await renew_previews(AGENT, list_starting(plain), T0) == {}
