"""A gated call that ran before returns its result only while that is known."""

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Erasure
from sayso.errors import Conflict
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated


def test_call_whose_contents_were_erased_is_neither_run_again_nor_answered(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves()
    assert gated(desk, bank)("A-1", 5.0) == "paid 5 for A-1"
    ((name, record),) = desk.records.items()
    by = Actor(id="root", kind=ActorKind.HUMAN)
    erasure = Erasure(by=by, at_ms=record.updated_at_ms, reason="asked by the customer", seq=9)
    desk.records[name] = record.model_copy(update={"erasure": erasure})
    with pytest.raises(Conflict, match=r"contents of the refund call under the key .* were erased"):
        gated(desk, bank)("A-1", 5.0)
    assert len(bank.paid) == 1
