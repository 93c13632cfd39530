"""Advice on plans, grants and decisions, followed at a desk in memory."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.files.reading import parse_rulebook
from sayso.testing import InProcessDesk
from sayso.wire.rulebook import MandateView
from tests.sayso.test_followed_advice import Case, follow

RULES = """\
version: 1
default: request_approval
rules:
  - id: payouts
    tool: pay
    action: request_approval
    mandates: {longest: 8h, count: 5, sum: {of: args.amount, max: 500}, by: args.to}
    grants: {longest: 8h, count: 5, sum: {of: args.amount, max: 500}, by: args.to}
  - {id: mails, tool: mail, action: request_approval, grants: {longest: 8h}}
  - id: wires
    tool: wire
    action: request_approval
    grants: {longest: 8h}
    terms: {reviewers: [reviewer, ben], quorum: {approve: 2}}
  - id: logins
    tool: login
    action: request_approval
    mandates: {longest: 8h}
    grants: {longest: 8h}
    terms: {secrets: [password]}
  - {id: large, tool: move, when: args.amount > 900, action: deny}
  - {id: numbered, tool: erase, action: request_approval, terms: {match_number: true}}
  - {id: bens, tool: hire, action: request_approval, terms: {reviewers: [ben]}}
  - id: colours
    tool: paint
    action: request_user_input
    ask: {prompt: Which colour, target_arg: colour, choices: [red, blue]}
"""
MAILS = "action: request_approval, grants: {longest: 8h}}"
ARGS: dict[str, Any] = {"to": "ann", "amount": 100}
CALLS: dict[str, Any] = {"paint": {}, "login": {"user": "ann", "password": "x"}}
PAY: dict[str, Any] = {"tool": "pay", "equal": {"args.to": "ann"}, "sum": {"of": "args.amount", "max": 500}}
LIMIT = {"at_most": {"args.amount": 50}}
HOUR = 3600


def at_desk(tool: str, rules: str = RULES, args: dict[str, Any] = ARGS) -> InProcessDesk:
    """Return a desk at which a call waits."""
    desk = InProcessDesk(policy=rules)
    desk.client("bot").suspend({"mode": "poll", "calls": [{"tool": tool, "args": args, "definition": {}}]})
    return desk


def decide(tool: str, action: str = "approve", *, by: str = "reviewer", rules: str = RULES, **given: Any) -> None:
    desk = at_desk(tool, rules, CALLS.get(tool, ARGS))
    desk.reviewer.name = by
    desk.reviewer.decide(action, **given)
    assert tool == "wire" or desk.waiting == []


def grant(tool: str, *, rules: str = RULES, **limits: Any) -> None:
    decide(tool, rules=rules, grant={"for_s": HOUR, **limits})


def decide_as(name: str) -> None:
    """Decide with the credential of an agent or of the reviewer."""
    desk = at_desk("mail")
    (suspension,) = desk.records
    (item,) = desk.client("bot").find(suspension).items
    assert desk.client(name).decide(suspension, item, "approve").outcome is not None


def number(*, right: bool) -> None:
    """Approve with the number that the requester sees, or with another one."""
    desk = at_desk("erase")
    (suspension,) = desk.records
    (item,) = desk.client("bot").find(suspension).items
    shown = item.number or ""
    desk.reviewer.decide(number=shown if right else f"{(int(shown) + 1) % 100:02}")


def plan(*tools: dict[str, Any], rules: str = RULES, **fields: Any) -> None:
    desk = InProcessDesk(policy=rules)
    assert propose(desk, "k1", *tools, **fields).in_force


def propose(desk: InProcessDesk, key: str, *tools: dict[str, Any], **fields: Any) -> MandateView:
    defined: list[Any] = [{"definition": {}, **one} for one in tools]
    body: JsonObject = {"thread_id": "t1", "for_s": HOUR, "count": 5, "tools": defined, **fields}
    proposed = desk.client("bot").propose_mandate(body, key=key)
    for name in ("reviewer", "ben", "eve"):
        desk.reviewer.name = name
        for record, item in desk.waiting:
            if not item.terms.reviewers or name in item.terms.reviewers:
                desk.decide(record, item, "approve", {}, desk.reviewer.actor)
    return desk.client("bot").find_mandate(proposed.id)


def changed_plan(action: str) -> None:
    """Decide a plan whose rule changed, and propose it again."""
    desk = InProcessDesk(policy=RULES)
    body: JsonObject = {"thread_id": "t1", "for_s": HOUR, "count": 5, "tools": [{"definition": {}, **PAY}]}
    first = desk.client("bot").propose_mandate(body, key="k1")
    desk.policy = parse_rulebook(RULES.replace("longest: 8h", "longest: 9h").encode(), file="f")
    desk.reviewer.decide(action)
    assert desk.client("bot").find_mandate(first.id).state == "denied"
    assert propose(desk, "k2", PAY).in_force


def pair(pay: str, mail: str) -> str:
    """Return rules for two tools that permit plans under these terms."""
    permit = "action: request_approval, mandates: {longest: 8h}, terms:"
    rules = (f"  - {{id: {tool}s, tool: {tool}, {permit} {terms}}}" for tool, terms in (("pay", pay), ("mail", mail)))
    return "\n".join(["version: 1\ndefault: deny\nrules:", *rules, ""])


ANY_PAY, ANY_MAIL = {"tool": "pay", "free": ["args"]}, {"tool": "mail", "free": ["args"]}
ESCALATED = "{reviewers: [reviewer], escalate: [{after_s: 60, reviewers: [ben]}], quorum: {approve: 2}}"
APART = pair(ESCALATED, "{reviewers: [eve]}")
FEW, ENOUGH = (pair(f"{{reviewers: [{names}]}}", "{}").replace("8h", "8h, people: 2") for names in ("eve", "ben, eve"))


def plan_apart() -> None:
    plan(ANY_MAIL, rules=APART)
    desk = InProcessDesk(policy=APART)
    assert not propose(desk, "k1", ANY_PAY).in_force
    desk.clock.advance(60)
    desk.client("bot").waiting()
    ((record, item),) = desk.waiting
    desk.reviewer.name = "ben"
    desk.decide(record, item, "approve", {}, desk.reviewer.actor)
    assert desk.waiting == []


def decide_edited(amount: object) -> None:
    decide("move", args={**ARGS, "amount": amount})


GRANTS, MANDATES = "sayso/features/permissions/making.py", "sayso/features/permissions/plans.py"
EXTERNAL, CHECKS = "sayso/core/policy/external.py", "sayso/core/transitions/decision_checks.py"
SUMS = "Leave it out, or add `sum:` to the rule's `grants:`"
PERMITS = "Leave it out of the plan, or add `mandates:` to the rule that asks about it"
NONE = "version: 1\ndefault: allow\nrules: []\n"
SUMMED = RULES.replace(MAILS, "action: request_approval, grants: {longest: 8h, sum: {of: args.amount, max: 9}}}")
PERMITTED = RULES.replace(MAILS, "action: request_approval, mandates: {longest: 8h}}")

CASES = [
    Case(GRANTS, "Choose a shorter time", lambda: grant("pay", for_s=9 * HOUR), lambda: grant("pay", for_s=8 * HOUR)),
    Case(GRANTS, "Choose fewer", lambda: grant("pay", count=6), lambda: grant("pay", count=5)),
    Case(GRANTS, "Choose less", lambda: grant("pay", sum=501), lambda: grant("pay", sum=500)),
    Case(
        GRANTS,
        "Limit one of its own arguments",
        lambda: grant("mail", at_most={"args.price": 5}),
        lambda: grant("mail", at_most={"args.amount": 5}),
    ),
    Case(
        GRANTS,
        "Limit it to a value instead",
        lambda: grant("mail", at_most={"args.to": 5}),
        lambda: grant("mail", equal={"args.to": "ann"}),
    ),
    Case(
        GRANTS,
        "Limit another argument",
        lambda: grant("login", equal={"args.password": "x"}),
        lambda: grant("login", equal={"args.user": "ann"}),
    ),
    Case(GRANTS, "Decide without a grant or an offer", lambda: grant("hire2"), lambda: decide("hire2")),
    Case(GRANTS, "Deny without an offer", lambda: decide("wire", "deny", offer=LIMIT), lambda: decide("wire", "deny")),
    Case(GRANTS, "Leave it out of `free`", lambda: grant("pay", free=["args.to"]), lambda: grant("pay")),
    Case(GRANTS, SUMS, lambda: grant("mail", sum=5), lambda: grant("mail")),
    Case(GRANTS, SUMS, lambda: grant("mail", sum=5), lambda: grant("mail", rules=SUMMED, sum=5)),
    Case(
        "sayso/features/permissions/making.py", "Deny it", lambda: changed_plan("approve"), lambda: changed_plan("deny")
    ),
    Case(
        MANDATES,
        "Add `mandates:` to the rules whose calls they may cover",
        lambda: plan(PAY, rules=NONE),
        lambda: plan(PAY),
    ),
    Case(MANDATES, "Add `sum` of", lambda: plan({**PAY, "sum": None}), lambda: plan(PAY)),
    Case(MANDATES, "Add it to equal or one_of", lambda: plan({**PAY, "equal": {}}), lambda: plan(PAY)),
    Case(
        MANDATES,
        "Add it to equal or one_of",
        lambda: plan({**PAY, "equal": {}}),
        lambda: plan({**PAY, "equal": {}, "one_of": {"args.to": ["ann", "ben"]}}),
    ),
    Case(MANDATES, "Choose a shorter time", lambda: plan(PAY, for_s=9 * HOUR), lambda: plan(PAY, for_s=8 * HOUR)),
    Case(MANDATES, "Plan fewer", lambda: plan(PAY, count=6), lambda: plan(PAY, count=5)),
    Case(MANDATES, "Plan less", lambda: plan({**PAY, "sum": {"of": "args.amount", "max": 501}}), lambda: plan(PAY)),
    Case(MANDATES, PERMITS, lambda: plan(PAY, ANY_MAIL), lambda: plan(PAY)),
    Case(MANDATES, PERMITS, lambda: plan(PAY, ANY_MAIL), lambda: plan(PAY, ANY_MAIL, rules=PERMITTED)),
    Case(
        MANDATES,
        "Make it free",
        lambda: plan({"tool": "login", "equal": {"args.password": "x"}}),
        lambda: plan({"tool": "login", "free": ["args.password"]}),
    ),
    Case(MANDATES, "Split it", lambda: plan(ANY_PAY, ANY_MAIL, rules=APART), plan_apart),
    Case(
        MANDATES,
        "Correct `people` of its `mandates:`, or its reviewers",
        lambda: plan(ANY_PAY, rules=FEW),
        lambda: plan(ANY_PAY, rules=ENOUGH),
    ),
    Case(EXTERNAL, "Change them, or deny the item", lambda: decide_edited(901), lambda: decide_edited(900)),
    Case(EXTERNAL, "Change them, or deny the item", lambda: decide_edited(901), lambda: decide("move", "deny")),
    Case(
        EXTERNAL,
        "Use the types that the rules compare, or deny the item",
        lambda: decide_edited({"much": 1}),
        lambda: decide_edited(900),
    ),
    Case(CHECKS, "Ask one of them", lambda: decide("hire"), lambda: decide("hire", by="ben")),
    Case(CHECKS, "Sign in as a reviewer", lambda: decide_as("bot"), lambda: decide_as("reviewer")),
    Case(CHECKS, "Ask", lambda: number(right=False), lambda: number(right=True)),
    Case(CHECKS, "Choose", lambda: decide("pay", "value", value=1), lambda: decide("pay", "deny")),
    Case(
        CHECKS,
        "Choose one of them",
        lambda: decide("paint", "value", value="pink"),
        lambda: decide("paint", "value", value="red"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.module}: {case.advice}")
def test_followed_advice_at_a_desk_leads_to_success(case: Case) -> None:
    follow(case)
