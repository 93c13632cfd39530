"""The jobs in RQ. A job outside of `JOBS` is refused before any import; a lost or late job does no harm."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog
from redis import Redis
from redis.exceptions import RedisError, ResponseError
from rq import Queue, Worker, get_current_job
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.worker import WorkerStatus

from sayso.core.clock import new_id
from sayso.errors import Unavailable
from service.core.settings.limits import TENANT
from service.core.store.connection.connecting import connect_blocking, is_demotion

DRAIN = "workers.resume.driving.drain"  # leases ready runs and executes them, for some seconds
RETAIN = "workers.retention.retain"  # deletes what is older than the retention periods
JOBS = frozenset({DRAIN, RETAIN})  # all functions that a job may name; the service never imports them
_QUEUE = "sayso-resume"
AnyWorker = TypeVar("AnyWorker", bound=Worker)

_LOG = structlog.get_logger(__name__)

_DRAIN_ID = "drain"
_GRACE_S = 600
_ANSWER_S = 5  # timeout of the store; without it, a half-open connection blocks until the system gives up
_FAILURE_TTL_S = 7 * 86_400


_DEAD_TTL_S = 35
"""A worker whose key has no longer to live has missed six heartbeats: each gives it 65 s, or 80 s while it is idle."""


def queue_of(tenant: str) -> str:
    """Return the one queue of a tenant. With two, RQ pops without a backup list, and a killed worker loses jobs."""
    return _QUEUE if tenant == TENANT else f"{_QUEUE}-{tenant}"


def current_job_id() -> str | None:
    """Return the id of the job that this process is running, or None."""
    job = get_current_job()
    return job.id if job is not None else None


class UnknownJob(Exception):
    """The job is not one of `JOBS`; it was not run."""


class AllowedJob(Job):
    """A job that runs one of `JOBS`, without arguments, callbacks or webhooks, or not at all."""

    @property
    def func(self) -> Any:
        """The function to run; raises `UnknownJob` before anything is imported."""
        if self.instance or self.func_name not in JOBS or self.args or self.kwargs:
            raise UnknownJob(f"The job {self.id} asks for {str(self.func_name)[:80]!r}, which is not a job of Sayso.")
        return super().func

    success_callback = failure_callback = stopped_callback = property(lambda _self: None)

    def send_webhooks(self, *_args: Any, **_kwargs: Any) -> None:
        """Send nothing; the hash is ignored."""


class DrainQueue:
    """The queue of drain jobs, for workers and the clock. Blocking: call it from a thread."""

    def __init__(self, url: str, window_s: int, tenant: str = TENANT) -> None:
        self._redis = connect_blocking(url, socket_timeout=_ANSWER_S, socket_connect_timeout=_ANSWER_S)
        self._name = queue_of(tenant)
        self._queue = Queue(self._name, connection=self._redis, serializer=JSONSerializer, job_class=AllowedJob)
        self._unreadable: set[bytes] = set()
        self._timeout_s = 20 * window_s + _GRACE_S

    def ensure(self) -> int:
        """Add a drain job for every idle worker without one; return how many were added."""
        with self._connected():
            keys: Any = self._redis.smembers(Worker.redis_workers_keys)
            missing = max(0, sum(map(self._is_idle, keys)) - self._count_waiting())
            for _ in range(missing):
                self.put()
            return missing

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Connect anew after a refusal by a server that is a replica now."""
        try:
            yield
        except ResponseError as error:
            if is_demotion(error):
                self._redis.connection_pool.disconnect()
            raise

    def _is_idle(self, key: bytes) -> bool:
        try:
            name = key.decode()
            worker = Worker.find_by_key(name, connection=self._redis, serializer=JSONSerializer, job_class=AllowedJob)
        except (ValueError, ResponseError) as error:
            if key not in self._unreadable:
                self._unreadable.add(key)
                _LOG.warning("worker_unreadable", key=key[:200].decode(errors="replace"), exc_info=error)
            return False
        return worker is not None and self._name in worker.queue_names() and worker.get_state() == WorkerStatus.IDLE

    def put(self, job: str = DRAIN) -> None:
        name, timeout_s = (_DRAIN_ID, self._timeout_s) if job == DRAIN else ("retain", _GRACE_S)
        self._queue.enqueue(job, job_id=new_id(name), job_timeout=timeout_s, result_ttl=0, failure_ttl=_FAILURE_TTL_S)

    def put_back(self) -> None:
        """Add one drain job unless one is waiting already."""
        if self._count_waiting() == 0:
            self.put()

    def _count_waiting(self) -> int:
        return sum(job_id.startswith(f"{_DRAIN_ID}_") for job_id in self._queue.job_ids)

    def close(self) -> None:
        self._redis.close()


def count_workers(url: str, tenant: str = TENANT, host: str | None = None) -> int:
    """Return how many of the tenant's workers (of a host) beat lately; raises `Unavailable`.

    Blocking: call it from a thread.
    """
    try:
        with connect_blocking(url, socket_timeout=5) as redis:
            alive = _list_alive(redis, queue_of(tenant))
            return sum(host is None or redis.hget(key, "hostname") == host.encode() for key in alive)
    except RedisError as error:
        raise Unavailable() from error


def worker_pids(url: str) -> frozenset[int]:
    """Return the process ids of live workers, none while the store is away. A worker imports its agents first."""
    try:
        with connect_blocking(url, socket_timeout=_ANSWER_S) as redis:
            keys = _list_alive(redis)
    except RedisError:
        return frozenset()
    return frozenset(int(name[1]) for name in (re.search(rb":w-([0-9]+)_", key) for key in keys) if name is not None)


def _list_alive(redis: Redis, queue: str | None = None) -> list[bytes]:
    """Return the keys of workers (of a queue) with a recent heartbeat; each keeps its key for over a minute."""
    keys: Any = sorted(redis.smembers(Worker.redis_workers_keys))
    with redis.pipeline(transaction=False) as reads:
        for key in keys:
            reads.ttl(key)
            reads.hget(key, "queues")
        replies = reads.execute()
    return [
        key
        for key, ttl_s, queues in zip(keys, replies[::2], replies[1::2], strict=True)
        if ttl_s > _DEAD_TTL_S and (queue is None or queues == queue.encode())
    ]


def build_worker(url: str, worker_class: type[AnyWorker], name: str, tenant: str = TENANT) -> AnyWorker:
    """Return an RQ worker on the tenant's queue, with checks every few seconds, not minutes."""
    redis = connect_blocking(url, socket_timeout=30)
    queue = Queue(queue_of(tenant), connection=redis, serializer=JSONSerializer, job_class=AllowedJob)
    return worker_class(
        [queue],
        name=name,
        connection=redis,
        serializer=JSONSerializer,
        job_class=AllowedJob,
        worker_ttl=20,
        maintenance_interval=5,
        job_monitoring_interval=5,
        log_job_description=False,
    )
