"""`sayso approve --grant-for`, `deny --at-most` and `sayso grants`, against a running desk."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sayso import Client
from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput
from sayso.features.permissions.commands import describe_use, read_grant, read_offer
from sayso.wire.rulebook import GrantView, LearnedView
from tests.sayso.cli.test_commands import Run, sayso  # noqa: F401
from tests.sayso.features.whatif.desks import Desk, serve_rules
from tests.sayso.views import view

POLICY = """
version: 1
default: request_approval
rules: [{id: payouts, tool: payout, action: request_approval, grants: {longest: 7d, count: 9}}]
"""


@pytest.fixture
def desk(clean_store_url: str, tmp_path: Path) -> Iterator[Desk]:
    yield from serve_rules(POLICY, clean_store_url, tmp_path)


def put(desk: Desk, amount: int) -> str:
    args: JsonObject = {"customer": "C-77", "amount": amount}
    call: JsonObject = {"tool": "payout", "args": args, "definition": {}}
    with Client(desk[0], desk[1]) as agent:
        return agent.suspend({"mode": "poll", "calls": [call]}).id


def find_verdict(desk: Desk, suspension_id: str) -> str:
    with Client(desk[0], desk[1]) as agent:
        outcome = agent.find(suspension_id).items[0].outcome
    return outcome.verdict if outcome is not None else ""


def test_grant_is_made_listed_and_revoked(desk: Desk, sayso: Run) -> None:  # noqa: F811
    words = ("--grant-for", "1h", "--grant-count", "2", "--same", "args.customer", "--at-most", "args.amount=200")
    done = sayso("approve", put(desk, 100), *words, "--yes")
    assert done.returncode == 0, done.stderr
    assert "Grants: payout by bot, requested by bot, with amount at most 200" in done.stdout
    assert "sayso grants revoke gra_" in done.stdout
    assert find_verdict(desk, put(desk, 200)) == "approved"
    assert find_verdict(desk, put(desk, 201)) == ""
    (found,) = json.loads(sayso("grants", "list", "--json").stdout)
    assert (found["state"], found["calls"], found["granted_by"]) == ("in_force", 1, ["anna"])
    assert 'customer "C-77"' in found["sentence"]
    assert "revoked" in sayso("grants", "revoke", found["id"]).stdout
    assert find_verdict(desk, put(desk, 200)) == ""
    assert sayso("grants", "confirm", found["id"]).returncode == 1


def test_offer_is_sent_with_a_denial(desk: Desk, sayso: Run) -> None:  # noqa: F811
    denied = put(desk, 900)
    said = sayso("deny", denied, "--at-most", "args.amount=200", "--yes").stdout
    assert "Offers: payout by bot" in said
    assert find_verdict(desk, denied) == "denied"
    assert find_verdict(desk, put(desk, 150)) == "approved"
    assert find_verdict(desk, put(desk, 150)) == ""


@pytest.mark.parametrize(
    ("for_", "count", "says"), [(None, 5, "needs an end"), ("1y", None, "--grant-for: '1y' is not a period")]
)
def test_options_that_make_no_grant_are_refused(for_: str | None, count: int | None, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_grant(for_, count, None, None, None)


def test_options_are_read() -> None:
    assert read_grant(None, None, None, None, None) is None
    assert read_grant("2d", None, "5", ["args.to"], None) == {
        "for_s": 172_800,
        "same": ["args.to"],
        "at_most": {},
        "sum": "5",
    }
    freed = read_grant("1h", None, None, None, None, ["args.note"])
    assert freed == {"for_s": 3600, "same": [], "at_most": {}, "free": ["args.note"]}
    assert read_offer(None, ["args.to=a", "args.n=5"]) == {"at_most": {}, "equal": {"args.to": "a", "args.n": 5}}
    with pytest.raises(InvalidInput, match=r"Write it as args\.to=VALUE"):
        read_offer(None, ["args.to"])


@pytest.mark.parametrize(
    ("approved", "granted_by", "says"),
    [
        (4, (), "would have allowed 6: 4 approved, 1 edited, 0 denied, 1 unanswered; 6 to go"),
        (10, (), "would have allowed 6: 10 approved, 1 edited, 0 denied, 1 unanswered; ready"),
        (10, ("anna",), "3"),
    ],
)
def test_proposed_grant_is_listed_with_its_figures(approved: int, granted_by: tuple[str, ...], says: str) -> None:
    figures = {"probation": 10, "would_allow": 6, "approved": approved, "edited": 1, "unanswered": 1}
    learned = view(LearnedView, **figures)
    assert describe_use(view(GrantView, calls=3, granted_by=granted_by, learned=learned)) == says
