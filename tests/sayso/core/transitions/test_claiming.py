"""A claim tells other reviewers who handles an item, for a while, and keeps nobody from deciding."""

import pytest

from sayso.core.records.items import CLAIM_MS, find_claim
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.inquiring import claim, release_claim
from sayso.errors import AlreadyDecided, Conflict, DeadlinePassed, NotAllowed, SelfApproval
from tests.sayso.samples import T0, ask, pending, person, types_of, word


def claimed(by: str = "ada", at_ms: int = T0) -> SuspensionRecord:
    return claim(pending(ask(timeout_s=3_600)), "i1", person(by), at_ms).record


def holder(record: SuspensionRecord, now_ms: int) -> str | None:
    held = find_claim(record.items[0].claim, now_ms)
    return held.by.id if held is not None else None


def test_claim_expires_after_fifteen_minutes() -> None:
    record = claimed()
    assert [holder(record, T0 + ms) for ms in (0, CLAIM_MS - 1, CLAIM_MS)] == ["ada", "ada", None]
    assert record.items[0].digest == pending(ask(timeout_s=3_600)).items[0].digest


def test_claim_again_renews_ones_own() -> None:
    change = claim(claimed(), "i1", person("ada"), T0 + 60_000)
    assert types_of(change) == ["item_claimed"]
    assert holder(change.record, T0 + CLAIM_MS) == "ada"


def test_claim_of_another_is_refused_until_it_expires() -> None:
    with pytest.raises(Conflict, match="ada claimed this item"):
        claim(claimed(), "i1", person("ben"), T0 + 1)
    assert holder(claim(claimed(), "i1", person("ben"), T0 + CLAIM_MS).record, T0 + CLAIM_MS) == "ben"


def test_claim_keeps_nobody_from_deciding() -> None:
    record = claimed()
    assert decide(record, word(record, by="ben"), T0).record.status is Status.DECIDED


def test_claim_needs_a_reviewer_of_an_open_item_in_time() -> None:
    record = pending(ask(reviewers=("ada",)), ask(1))
    with pytest.raises(NotAllowed):
        claim(record, "i1", person("ben"), T0)
    with pytest.raises(SelfApproval):
        claim(record, "i1", person("bot"), T0)
    with pytest.raises(DeadlinePassed):
        claim(record, "i1", person("ada"), T0 + 300_000)
    assert claim(record, "i1", person("ada"), T0 + 300_000, 1).events
    with pytest.raises(AlreadyDecided):
        claim(decide(record, word(record), T0).record, "i1", person("ada"), T0)


def test_release_claim_ends_only_ones_own() -> None:
    record = claimed()
    with pytest.raises(Conflict, match="not you"):
        release_claim(record, "i1", person("ben"), T0)
    change = release_claim(record, "i1", person("ada"), T0)
    assert (types_of(change), holder(change.record, T0)) == (["claim_released"], None)
    assert release_claim(change.record, "i1", person("ada"), T0).record is change.record
    expired = claimed()
    assert release_claim(expired, "i1", person("ben"), T0 + CLAIM_MS).record is expired
    with pytest.raises(AlreadyDecided):
        release_claim(decide(record, word(record), T0).record, "i1", person("ada"), T0)
