"""The archive and the sink of checkpoints in a bucket, of a server that speaks S3."""

import urllib.request
from collections.abc import Iterator

import pytest
from moto.server import ThreadedMotoServer

from sayso.core.clock import DAY_MS
from sayso.errors import Unavailable
from service.core.outgoing.buckets import Bucket
from service.core.outgoing.http import Posts
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.archive.keeping import describe_archive, keep_archive
from service.features.archive.places import open_place
from tests.service.core.outgoing.test_proxy import proxying
from tests.service.features.archive.runs import KEYS, archive, end_a_run, keep


@pytest.fixture
def bucket() -> Iterator[str]:
    """The setting of an empty bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/runs", method="PUT"))
    yield f"s3+http://KEY:SECRET@{host}:{port}/runs/desk"
    server.stop()


@pytest.fixture
def settings(settings: Settings, bucket: str) -> Settings:
    return settings.model_copy(update={"archive": bucket, "internal_receivers": ("127.0.0.1",)})


async def test_runs_move_into_a_bucket_and_back(wiring: Wiring) -> None:
    ended = await end_a_run(wiring)
    await keep(wiring)
    assert await wiring.store.redis.exists(KEYS.run(ended.run.id)) == 0
    (name,) = await archive(wiring).list_live()
    assert await archive(wiring).place.get(f"default/{name}.sayso")
    assert (await wiring.runs.read(ended.run.id)).id == ended.run.id
    await keep(wiring, days=367)
    assert await archive(wiring).place.get(f"default/{name}.sayso") is None


async def test_all_segments_of_a_bucket_are_listed(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    place, names = archive(wiring).place, [f"2026-10-31/seg_{number}&" for number in range(5)]
    for path in (*(archive(wiring).locate(name) for name in names), "other/2026-10-31/seg_1.sayso", "default/read.me"):
        await place.put(path, b"a segment")
    assert await archive(wiring).list_names() == names


async def test_bucket_that_refuses_keeps_runs_in_the_store(wiring: Wiring, bucket: str) -> None:
    ended = await end_a_run(wiring)
    await wiring.store.redis.delete(KEYS.unchecked)
    archive(wiring).place = Bucket(bucket.replace("/runs/", "/none/"), Posts(internal=wiring.settings.receivers))
    assert not await keep_archive(wiring, await wiring.schedule.now_ms() + 33 * DAY_MS)
    assert await wiring.store.redis.exists(KEYS.run(ended.run.id)) == 1
    with pytest.raises(Unavailable, match="has not accepted it: status 404"):
        await archive(wiring).place.put("name", b"")


async def test_bucket_that_is_away_is_named(wiring: Wiring) -> None:
    ended = await end_a_run(wiring)
    await keep(wiring)
    archive(wiring).place = Bucket("s3+http://KEY:SECRET@127.0.0.1:9/runs", Posts(internal=wiring.settings.receivers))
    with pytest.raises(Unavailable, match="the connection failed"):
        await wiring.runs.read(ended.run.id)
    is_whole, text, todo = await describe_archive(wiring.store)
    assert (is_whole, "the connection failed" in text, "SAYSO_ARCHIVE" in todo) == (False, True, True)


async def test_bucket_is_reached_through_the_egress_proxy() -> None:
    async with proxying() as proxy:
        proxy.refused = ("bucket.example",)
        place = open_place(Settings(archive="s3+https://KEY:SECRET@bucket.example/runs", egress_proxy=proxy.url))
        with pytest.raises(Unavailable, match="the egress proxy refused the connection"):
            await place.get("name")
    assert proxy.asked == ["bucket.example:443"]
