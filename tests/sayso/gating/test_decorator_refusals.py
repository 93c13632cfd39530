"""Gates and clients refuse invalid options before they send a request."""

from typing import Any

import httpx
import pytest

from sayso import Client, gate
from sayso.errors import InvalidInput, Unreachable
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated


def test_gate_refuses_what_it_cannot_gate(desk: InProcessDesk) -> None:
    with pytest.raises(InvalidInput, match="has no type"):
        gate(untyped)
    with pytest.raises(InvalidInput, match="has 0 characters"):
        gate("", {})
    with pytest.raises(InvalidInput, match="is not async; give it a Client"):
        gated(desk, Bank(), client=desk.async_client())
    with pytest.raises(InvalidInput, match="do not fit"):
        gated(desk, Bank())("A-1", "five")
    with pytest.raises(TypeError):
        gated(desk, Bank())("A-1")


@pytest.mark.parametrize(
    "options",
    [{"wait_s": -1}, {"wait_s": "5"}, {"wait_s": float("nan")}, {"on_doubt": "aks"}]
    + [{"report_within_s": wrong} for wrong in (0, 1.5, 2_592_001)],
)
def test_gate_refuses_a_wrong_option(desk: InProcessDesk, bank: Bank, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        gated(desk, bank, **options)


def test_gate_accepts_an_infinite_wait(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves("refund")
    assert gated(desk, bank, wait_s=float("inf"))("A-1", 5.0) == "paid 5 for A-1"


def untyped(order):  # type: ignore[no-untyped-def]
    return order


def test_client_refuses_an_invalid_url() -> None:
    with pytest.raises(InvalidInput, match="Write it as http"):
        Client("localhost:8321", "key")


@pytest.mark.parametrize("key", ["secret-of-the-agent\n", "secret of the agent", "секрет"])
def test_client_refuses_an_invalid_key_without_repeating_it(key: str) -> None:
    with pytest.raises(InvalidInput, match="Copy it again") as refused:
        Client(key=key)
    assert key.strip() not in str(refused.value)


def test_client_treats_an_empty_key_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_KEY", "")
    assert Client().key is None


@pytest.mark.parametrize("key", ["Zürich", "two words", "two\nlines", "k" * 201])
def test_client_refuses_an_invalid_idempotency_key(desk: InProcessDesk, key: str) -> None:
    with pytest.raises(InvalidInput, match="visible ASCII"):
        desk.client().cancel("run_1", key=key)


def test_client_recognizes_the_error_of_another_server() -> None:
    other = httpx.MockTransport(lambda _request: httpx.Response(404, json={"detail": "Not Found"}))
    with pytest.raises(Unreachable, match="is not a Sayso desk"):
        Client(transport=other).find("sus_1")
