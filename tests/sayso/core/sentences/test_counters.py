"""What rules count, and what they remembered about a call, in words."""

from typing import Any

import pytest

from sayso.core.policy.counters.readings import Reading
from sayso.core.records.items import Item, Prompt, freeze_item
from sayso.core.records.judgements import Remembered
from sayso.core.sentences.rules import describe_remembered, describe_repetition, describe_rule, list_remembered
from sayso.core.text.redaction import MASK
from sayso.features.whatif.explaining import explain
from sayso.features.whatif.text import describe_trial
from tests.sayso.core.sentences.samples import make_item
from tests.sayso.rule_builders import event, policy, rule
from tests.sayso.samples import T0, ask, pending

HOUR = {"per": 3600}


@pytest.mark.parametrize(
    ("action", "keys", "words"),
    [
        ("allow", {"limit": {"count": 1, **HOUR}}, "Calls of refund, while within 1 call in 1 h run without"),
        (
            "allow",
            {
                "limit": {"count": 5, **HOUR, "by": ["agent", "args.customer"]},
                "budget": {"sum": "args.amount", "max": "1000", "per": 86_400},
            },
            "while within 5 calls in 1 h for each agent and customer and 1,000 amount in 1 d run",
        ),
        (
            "deny",
            {"over": {"limit": {"count": 20, **HOUR}, "budget": {"sum": "args.a", "max": "9.5", **HOUR}}},
            "Calls of refund, once over 20 calls in 1 h or 9.50 a in 1 h are denied.",
        ),
        ("deny", {"unseen": {"value": "args.to", "within": 60}}, "with a to that no call had in 1 min are denied."),
        ("deny", {"above": {"of": "args.a", "within": 60}}, "with a above 95 % of the calls in 1 min are denied."),
        ("deny", {"repeats": {"within": 60}}, "if the same call ran once in 1 min are denied."),
        ("deny", {"repeats": {"within": 60, "more_than": 3}}, "if the same call ran 3 times in 1 min are denied."),
    ],
)
def test_describe_rule_that_remembers(action: str, keys: dict[str, Any], words: str) -> None:
    assert words in describe_rule(rule("r", action, tool_name="refund", **keys))


def remembered(key: Any, **fields: Any) -> Remembered:
    given = {"rule_id": "r", "key": key, "counter": "c", "per_s": 3600, "total": 18, "amount": 1, **fields}
    return Remembered.model_validate(given)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (remembered("over.limit", most=20), "18 of 20 calls in 1 h"),
        (
            remembered("budget", most=10**9, total=940_500_000, amount=90_000_000, of="args.amount"),
            "940.50 of 1,000 amount in 1 h; this call adds 90",
        ),
        (remembered("budget", most=10**9, total=0, amount=None, of="args.amount"), "0 of 1,000 amount in 1 h"),
        (remembered("unseen", total=0, of="args.to"), "New to: no call in 1 h had it"),
        (remembered("unseen", total=2, of="args.to"), "Earlier calls in 1 h with the same to: 2"),
        (
            remembered("above", total=50_000_000, samples=40, of="args.amount"),
            "Of 40 calls in 1 h, nearly all had at most 50 as amount",
        ),
        (remembered("repeats", total=2, most=1), "The same call ran 2 times in 1 h"),
        (remembered("repeats", total=1, most=0), "The same call ran once in 1 h"),
        (remembered("repeats", total=0, most=0), "The same call did not run in 1 h"),
    ],
)
def test_describe_remembered(one: Remembered, words: str) -> None:
    assert describe_remembered(one) == words


def test_list_remembered_hides_secret_amounts() -> None:
    one = remembered("budget", most=10**9, amount=5_000_000, of="args.amount", by=("agent", "args.to"))
    record = pending()
    draft = ask().model_copy(update={"remembered": (one,)})
    item: Item = freeze_item(draft, "i1", record.binding, T0)
    assert list_remembered(item) == [("r", "0.000018 of 1,000 amount in 1 h; this call adds 5", "agent and to")]
    masked = item.model_copy(update={"tool": item.tool.model_copy(update={"args": {"amount": MASK}})})
    assert list_remembered(masked) == [("r", "0.000018 of 1,000 amount in 1 h", "agent and to")]


def test_describe_trial_says_what_the_rule_remembers() -> None:
    rules = policy(rule("cap", over={"limit": {"count": 5, **HOUR}}))
    about = event()
    readings = {one.counter: Reading(total=4) for one in rules.list_wanted(about)}
    (trial,) = explain(rules, about.model_copy(update={"readings": readings})).trials
    assert describe_trial(trial) == "What it remembers does not make it apply. 4 of 5 calls in 1 h."


def test_repeated_call_is_one_sentence_with_the_text_of_its_rule() -> None:
    counters = (remembered("repeats", total=2, most=1, rule_id="twice"),)

    def describe(rule: str, reason: str) -> str:
        item = make_item({"remembered": counters, "rule_id": rule, "prompt": Prompt(reason=reason)})
        return describe_repetition(item)

    assert describe("twice", "Paid already?") == "The same call ran 2 times in 1 h: Paid already?"
    assert describe("twice", "Rule twice says request_approval.") == "The same call ran 2 times in 1 h."
    assert describe("other", "Over 100") == "The same call ran 2 times in 1 h."
