"""Each record says which release wrote it last, and a refusal of one of another release names that release."""

import json
from typing import Any

import pytest

from sayso.core.packages import VERSION
from sayso.core.records.base import Stored
from sayso.core.records.events import TrailHead
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Unreadable
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.reading import pack_record, unpack_body, unpack_record
from service.features.operate.diagnostics import diagnose
from tests.builders import make_pending, store_of
from tests.service.worlds import World

KEYS = TenantKeys("default")


def test_record_is_written_with_the_own_release() -> None:
    earlier = Stored.model_validate_json('{"release": "0.0.1"}')
    assert earlier.release == "0.0.1"
    assert json.loads(earlier.model_dump_json()) == {"release": VERSION}


async def test_suspension_of_another_release_is_read_and_written_with_the_own(world: World) -> None:
    record = await make_pending(world.wiring)
    sealer = store_of(world.wiring.runs._redis).sealer
    packed = pack_record(record, TrailHead(), "c", sealer)
    assert json.loads(unpack_body(packed.split(b"|", 4)[4]))["release"] == VERSION
    earlier = SuspensionRecord.model_validate_json(change(record, release="0.1.9"))
    again = unpack_body(pack_record(earlier, TrailHead(), "c", sealer).split(b"|", 4)[4])
    assert again.count(b'"release"') == 1
    assert json.loads(again)["release"] == VERSION


def change(record: SuspensionRecord, **fields: Any) -> bytes:
    return json.dumps({**json.loads(record.model_dump_json(exclude_defaults=True)), **fields}).encode()


async def test_refusal_of_a_suspension_names_the_release_that_wrote_it(world: World) -> None:
    record = await make_pending(world.wiring)
    header = f"{record.version}|0||c|".encode()
    with pytest.raises(Unreadable, match=rf"mood: .+ Sayso 9\.1\.0 wrote it, and this is Sayso {VERSION}\.$"):
        unpack_record(header + b"0" + change(record, mood="calm", release="9.1.0"))
    with pytest.raises(Unreadable, match=r"A later version of Sayso may have written it\.$"):
        unpack_record(header + b"0" + change(record, mood="calm", release="9.1.0\n<script>"))


async def test_refusal_of_a_person_names_the_release_that_wrote_it(world: World) -> None:
    redis = world.wiring.runs._redis
    stored = json.loads(await redis.hget(KEYS.reviewers, "anna") or b"{}")
    assert stored["release"] == VERSION
    newer = {**stored, "release": "9.1.0", "mood": "calm"}
    await redis.hset(KEYS.reviewers, "anna", json.dumps(newer))
    async with world.client("root") as root:
        assert (await root.get("/api/v1/reviewers")).status_code == 200
        refused = await root.post("/api/v1/reviewers/anna/deactivate")
        assert (refused.status_code, "Sayso 9.1.0 wrote it" in refused.json()["detail"]) == (409, True), refused.text
    (finding,) = [one async for one in diagnose(world.wiring) if one.part == "records"]
    assert "Sayso 9.1.0 wrote it" in finding.message
