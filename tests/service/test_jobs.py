"""Every idle worker has a drain job waiting, whatever else stands in RQ's own list of workers."""

from redis import Redis
from rq import Worker
from structlog.testing import capture_logs

from service.jobs import DrainQueue, build_worker


def test_what_is_no_worker_is_told_once_and_keeps_no_job_from_the_others(clean_store_url: str) -> None:
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
