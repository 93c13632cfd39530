"""Keys of gated calls."""

from typing import Any

import pytest

from sayso import gate
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("refund-{customer}", "{customer} is not an argument. refund takes order, amount."),
        ("refund-{call}", "{call} is not an argument. refund takes order, amount."),
        ("refund-{}", "{} is not an argument"),
        ("refund-{0}", "{0} is not an argument"),
        ("refund-{order.id}", "{order.id} reads an attribute, but arguments are plain JSON"),
        ("refund-{amount:{width}}", "{width} is not an argument"),
        ("refund-{order!x}", "{order!x} has an unknown conversion"),
        ("refund-{order", "expected '}' before end of string"),
        (lambda customer: customer, "it is called with every argument by name, but "),
        ("".join, "it is called with every argument by name, but "),
        (lambda order: order, "it is called with every argument by name, but "),
    ],
)
def test_gate_refuses_a_key_that_cannot_be_filled(desk: InProcessDesk, bank: Bank, key: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"^The key .* of refund cannot be filled: ") as refused:
        gated(desk, bank, key=key)
    assert message in refused.value.message
    assert desk.records == {}


def test_gate_checks_the_key_of_a_block(desk: InProcessDesk) -> None:
    with pytest.raises(InvalidInput, match=r"\{version\} is not an argument. deploy takes to, force\."):
        gate("deploy", {"to": "prod", "force": True}, key="deploy-{version}", client=desk.client())
    with pytest.raises(InvalidInput, match=r"deploy takes no arguments\."):
        gate("deploy", {}, key="deploy-{to}", client=desk.client())


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("refund-{order}-{amount:.2f}", "refund-A-1-5.00"),
        ("{order[0]}/{order!r:>8}", "A/   'A-1'"),
        ("{{refund}}", "{refund}"),
        (lambda order, **_: order, "A-1"),
        (lambda **args: f"{args['amount']:g}", "5"),
    ],
)
def test_build_call_fills_the_key(desk: InProcessDesk, bank: Bank, key: Any, label: str) -> None:
    refund = gated(desk, bank, key=key)
    assert refund.call.options.build_call(refund.call.tool.definition, {"order": "A-1", "amount": 5.0}).label == label


def test_gate_tries_a_key_function_without_a_signature(desk: InProcessDesk, bank: Bank) -> None:
    refund = gated(desk, bank, key=str)
    with pytest.raises(InvalidInput, match="cannot be filled with its arguments"):
        refund("A-1", 5.0)
    assert desk.records == {}


def test_gate_accepts_a_default_value_in_the_key(desk: InProcessDesk) -> None:
    desk.reviewer.approves()

    @gate(key="note-{kind}", client=desk.client())
    def note(text: str, kind: str = "plain") -> str:
        """Take a note."""
        return f"{kind}: {text}"

    assert note("hello") == "plain: hello"
