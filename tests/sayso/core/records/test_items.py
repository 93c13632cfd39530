"""Items are drawn for a second look by an HMAC of their call, which a holder of the key can check."""

from hashlib import sha256
from hmac import new
from typing import Any

import pytest

from sayso.core.canonical_json import canonical_json
from sayso.core.records.decisions import TIMEOUT, Verdict
from sayso.core.records.items import ItemDraft, PresetOutcome
from service.core.store.suspensions.sampling import MOST_APPROVALS, draw_samples
from tests.sayso.samples import ask

KEY = b"k" * 32
CALLS = 4_000


def draw(one: ItemDraft, owner: str = "bot", key: bytes = KEY) -> ItemDraft:
    return draw_samples((one,), key, ("default", owner, "support"))[0]


def sampled(before: float, **terms: Any) -> ItemDraft:
    return ask(sample={"before": before}, **terms)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_share_of_items_is_drawn_as_the_key_says(share: float) -> None:
    drawn = 0
    for at in range(CALLS):
        one = sampled(share)
        about: list[Any] = ["default", f"bot-{at}", "support", one.rule_id, one.subagent, one.tool.name, one.tool.args]
        found, mac = draw(one, f"bot-{at}"), new(KEY, canonical_json(about), sha256).digest()
        expected = int.from_bytes(mac[:8]) < share * 2**64
        assert (found.drawn, found.terms.quorum.approve) == ((mac.hex(), 2) if expected else ("", 1))
        drawn += expected
    assert abs(drawn / CALLS - share) < 0.03


def test_same_call_draws_the_same_and_another_call_anew() -> None:
    found = {draw(sampled(0.5)).drawn for _ in range(20)}
    assert len(found) == 1
    tool = sampled(0.5).tool
    others = [
        sampled(0.5).model_copy(update={"tool": tool.model_copy(update={"args": {"order": str(at)}})})
        for at in range(40)
    ]
    assert {bool(draw(one).drawn) for one in others} == {True, False}


def test_draw_depends_on_the_key() -> None:
    keys = [bytes([at]) * 32 for at in range(64)]
    assert 10 < sum(bool(draw(sampled(0.5), key=key).drawn) for key in keys) < 54


def test_share_of_one_draws_every_item_and_keeps_the_highest_quorum() -> None:
    assert draw(sampled(1)).terms.quorum.approve == 2
    assert draw(sampled(1, quorum={"approve": 3, "deny": 2})).terms.quorum.approve == 4
    assert draw(sampled(1, quorum={"approve": MOST_APPROVALS})).terms.quorum.approve == MOST_APPROVALS


def test_items_without_a_sample_or_a_reviewer_are_not_drawn() -> None:
    assert draw(ask()) == ask()
    preset = sampled(1).model_copy(update={"preset": PresetOutcome(verdict=Verdict.DENIED, by=TIMEOUT)})
    assert draw(preset) == preset
