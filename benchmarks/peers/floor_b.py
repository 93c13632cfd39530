"""Floor B: RQ alone, from enqueue to the start of the job. `python -m benchmarks.peers.floor_b URL` is its worker."""

import asyncio
import sys

from redis import Redis
from rq import Queue, Worker
from rq.serializers import JSONSerializer

from benchmarks.clients import Stamps, stamp
from sayso.core.clock import monotonic_ms


def tool(name: str) -> None:
    """Report the start; the job that RQ runs."""
    stamp(name)


async def enqueue_to_start_ms(url: str, stamps: Stamps, count: int) -> list[float]:
    """Enqueue jobs one at a time and return the time until each started, ms."""
    queue = Queue("floor", connection=Redis.from_url(url), serializer=JSONSerializer)
    took: list[float] = []
    for number in range(count):
        started = stamps.expect(f"b{number}")
        began = monotonic_ms()
        await asyncio.to_thread(queue.enqueue, tool, f"b{number}", result_ttl=0)
        took.append(await asyncio.wait_for(started, 30) - began)
    return took


if __name__ == "__main__":
    Worker(
        [Queue("floor", connection=(_redis := Redis.from_url(sys.argv[1])), serializer=JSONSerializer)],
        connection=_redis,
        serializer=JSONSerializer,
    ).work(logging_level="ERROR")
