"""Every idle worker has a waiting drain job, also beside foreign entries in RQ's list of workers."""

from redis import Redis
from rq import Worker
from structlog.testing import capture_logs

from service.core.jobs import DrainQueue, build_worker


def test_invalid_worker_is_logged_once_and_blocks_no_job(clean_store_url: str) -> None:
    worker = build_worker(clean_store_url, Worker, "one")
    worker.register_birth()  # type: ignore[no-untyped-call]
    worker.set_state("idle")
    queue = DrainQueue(clean_store_url, 30)
    with Redis.from_url(clean_store_url) as redis:
        redis.sadd("rq:workers", "junk", b"\xff", "rq:worker:list")
        redis.rpush("rq:worker:list", "x")
    with capture_logs() as logs:
        added = [queue.ensure(), queue.ensure()]
    queue.close()
    worker.register_death()  # type: ignore[no-untyped-call]
    assert added == [1, 0]
    assert sorted(line["key"] for line in logs) == ["junk", "rq:worker:list", "\ufffd"]
