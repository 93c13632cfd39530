"""A record comes back as it was packed; only what lies for long is made small."""

import pytest

from sayso.core.records.events import TrailHead
from sayso.core.records.suspensions import ResumeSpec, Status
from sayso.errors import Unreadable
from service.core.store.suspensions.reading import pack_record, unpack_record
from tests.builders import CLEAR
from tests.sayso.samples import pending

HEAD = TrailHead(7, "0f" * 16)
RECORD = pending()


@pytest.mark.parametrize("status", Status)
def test_a_record_comes_back_as_it_was_packed(status: Status) -> None:
    record = RECORD.model_copy(update={"status": status, "version": 4})
    unpacked = unpack_record(pack_record(record, HEAD, "c0ffee", CLEAR))
    assert unpacked[:3] == (record, HEAD, "c0ffee")
    assert unpacked.size == len(record.model_dump_json(exclude_defaults=True).encode())


def test_what_lies_for_long_is_small_and_what_a_worker_takes_at_once_is_not_worth_it() -> None:
    decided = RECORD.model_copy(update={"status": Status.DECIDED})
    kept = decided.model_copy(update={"resume": ResumeSpec(mode="poll")})
    assert b'"amount":250.5' in pack_record(decided, HEAD, "c0ffee", CLEAR)
    assert len(pack_record(kept, HEAD, "c0ffee", CLEAR)) < len(pack_record(decided, HEAD, "c0ffee", CLEAR)) / 2


@pytest.mark.parametrize("body", [b"9what", b"1what", b"0{}", b""])
def test_what_nobody_packed_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable, match=r"dictionary|unpacked|not a record as this version"):
        unpack_record(b"1|0||c0ffee|" + body)
