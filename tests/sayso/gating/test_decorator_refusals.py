"""What cannot work is refused before anybody is asked, with what to do about it."""

from typing import Any

import httpx
import pytest

from sayso import Client, gate
from sayso.errors import InvalidInput, Unreachable
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated


def test_what_cannot_be_gated_is_refused_where_it_is_written(desk: InProcessDesk) -> None:
    with pytest.raises(InvalidInput, match="has no type"):
        gate(untyped)
    with pytest.raises(InvalidInput, match="has 0 characters"):
        gate("", {})
    with pytest.raises(InvalidInput, match="is not async; give it a Client"):
        gated(desk, Bank(), client=desk.async_client())
    with pytest.raises(InvalidInput, match="do not fit"):
        gated(desk, Bank())("A-1", "five")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gated(desk, Bank())("A-1")


@pytest.mark.parametrize(
    "manner",
    [{"wait_s": -1}, {"wait_s": "5"}, {"wait_s": float("nan")}, {"on_doubt": "aks"}]
    + [{"report_within_s": wrong} for wrong in (0, 1.5, 2_592_001)],
)
def test_a_wrong_option_is_refused_before_anybody_is_asked(
    desk: InProcessDesk, bank: Bank, manner: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match=next(iter(manner))):
        gated(desk, bank, **manner)


def test_who_waits_without_end_may_say_so(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves("refund")
    assert gated(desk, bank, wait_s=float("inf"))("A-1", 5.0) == "paid 5 for A-1"


def untyped(order):  # type: ignore[no-untyped-def]
    return order


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="Write it as http"):
        Client("localhost:8321", "key")


@pytest.mark.parametrize("key", ["secret-of-the-agent\n", "secret of the agent", "секрет"])
def test_a_credential_that_no_header_can_carry_is_refused_at_once_and_not_repeated(key: str) -> None:
    with pytest.raises(InvalidInput, match="Copy it again") as refused:
        Client(key=key)
    assert key.strip() not in str(refused.value)


def test_an_empty_credential_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_KEY", "")
    assert Client().key is None


@pytest.mark.parametrize("key", ["Zürich", "two words", "two\nlines", "k" * 201])
def test_an_idempotency_key_that_no_header_can_carry_is_refused_at_once(desk: InProcessDesk, key: str) -> None:
    with pytest.raises(InvalidInput, match="visible ASCII"):
        desk.client().cancel("run_1", key=key)


def test_another_programs_refusal_is_not_taken_for_a_desks() -> None:
    other = httpx.MockTransport(lambda _request: httpx.Response(404, json={"detail": "Not Found"}))
    with pytest.raises(Unreachable, match="is not a Sayso desk"):
        Client(transport=other).find("sus_1")
