"""Revocations withdraw runs; rotations do not."""

from dataclasses import dataclass

import pytest

from sayso.core.records.freezes import NamedKey, Revocations, find_revoked
from sayso.core.records.suspensions import RunRef


@dataclass(frozen=True)
class AKey:
    """An agent's key."""

    id: str
    created_at_ms: int
    revoked_at_ms: int | None = None
    ends_at_ms: int | None = None
    predecessor_id: str | None = None
    name: str = "bot"
    kind: str = "agent"


def asked_by(key_id: str | None, started_at_ms: int = 15) -> RunRef:
    return RunRef(id="run_1", agent="a", owner="bot", thread_id="t", started_at_ms=started_at_ms, key_id=key_id)


def test_revoked_key_with_a_reused_name() -> None:
    assert find_revoked([AKey("k1", 1, revoked_at_ms=5), AKey("k2", 6)]) == {"k1"}


def test_a_rotated_key_that_ended_is_not_revoked() -> None:
    assert find_revoked([AKey("k1", 1, ends_at_ms=9), AKey("k2", 5, predecessor_id="k1")]) == frozenset()


def test_revoking_the_last_successor_withdraws_ended_keys() -> None:
    keys = [
        AKey("k1", 1, ends_at_ms=6),
        AKey("k2", 5, ends_at_ms=8, predecessor_id="k1"),
        AKey("k3", 7, revoked_at_ms=20, predecessor_id="k2"),
    ]
    assert find_revoked(keys) == {"k1", "k2", "k3"}


def test_key_that_ends_as_its_successor_is_revoked_is_withdrawn() -> None:
    assert find_revoked([AKey("k1", 1, ends_at_ms=20), AKey("k2", 5, revoked_at_ms=20, predecessor_id="k1")]) == {
        "k1",
        "k2",
    }


def test_own_revocation_of_a_key_counts_and_not_a_later_one_of_its_successor() -> None:
    keys = [
        AKey("k1", 1, ends_at_ms=8),
        AKey("k2", 3, revoked_at_ms=5, ends_at_ms=10, predecessor_id="k1"),
        AKey("k3", 4, revoked_at_ms=20, predecessor_id="k2"),
    ]
    assert find_revoked(keys) == {"k2", "k3"}


def test_key_with_an_end_and_without_a_successor_is_not_revoked() -> None:
    assert find_revoked([AKey("k1", 1, ends_at_ms=9)]) == frozenset()


def test_a_key_outlives_the_revocation_of_its_successor() -> None:
    during = [AKey("k1", 1, ends_at_ms=30), AKey("k2", 5, revoked_at_ms=20, predecessor_id="k1")]
    assert find_revoked(during) == {"k2"}
    another = [*during[1:], AKey("k1", 1, ends_at_ms=9), AKey("k3", 6, predecessor_id="k1")]
    assert find_revoked(another) == {"k2"}


def test_revoked_rotated_key_does_not_affect_its_successor() -> None:
    keys = [AKey("k1", 1, revoked_at_ms=6, ends_at_ms=30), AKey("k2", 5, predecessor_id="k1")]
    assert find_revoked(keys) == {"k1"}


def test_a_run_is_withdrawn_by_its_keys_id_alone() -> None:
    revocations = Revocations(frozenset({"k1"}), {"bot": (NamedKey("k1", 1), NamedKey("k2", 20))})
    assert revocations.find_withdrawal(asked_by("k1")) == "Key k1 of bot, which started the run, was revoked."
    assert revocations.find_withdrawal(asked_by("k2")) is None


@pytest.mark.parametrize(("started_at_ms", "withdrawn"), [(15, True), (20, False), (0, False)])
def test_withdrawal_of_a_run_without_key_id(started_at_ms: int, withdrawn: bool) -> None:
    revocations = Revocations(frozenset({"k1"}), {"bot": (NamedKey("k1", 1), NamedKey("k2", 20))})
    found = revocations.find_withdrawal(asked_by(None, started_at_ms))
    assert (found is not None) is withdrawn
