"""Run one worker: `python -m workers`. It imports and publishes its agents, and takes drain jobs from one queue."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

import structlog
from redis.client import Pipeline
from redis.exceptions import ResponseError
from rq import Queue, Worker
from rq.job import Job
from rq.worker_registration import REDIS_WORKER_KEYS, register

from sayso.core.clock import new_id
from sayso.errors import SaysoError, Unavailable
from sayso.runner.agents import Agent
from service.assembly import assemble
from service.core.jobs import DrainQueue, build_worker
from service.core.logs import start
from service.core.policy.publishing import rulebook_of
from service.core.settings import Settings
from service.core.store.connection.connecting import LOST, WAIT_S, await_store, describe_fault, is_refusal
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from workers import hold_settings
from workers.resume.driving import import_agents

log = structlog.get_logger()


class DrainWorker(Worker):
    """An RQ worker that passes a warm stop on to its job, refreshes the rules, and registers again if forgotten."""

    settings: Settings
    stop_requested = False

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        rulebook_of(self.settings.policy).refresh()
        super().fork_work_horse(job, queue)

    def maintain_heartbeats(self, job: Job) -> None:
        rulebook_of(self.settings.policy).refresh()
        super().maintain_heartbeats(job)
        self._register_again()

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Register again if the store lost the worker; with a pipeline the caller may be the job."""
        super().heartbeat(timeout, pipeline)
        if pipeline is None and not self.is_horse:
            self._register_again()

    def _register_again(self) -> None:
        if self.connection.sismember(REDIS_WORKER_KEYS, self.key):
            return
        try:
            asyncio.run(publish_agents(self.settings, import_agents(self.settings)))
        except Unavailable:
            return  # the next heartbeat tries again
        self.connection.hset(self.key, mapping=self.serialize())
        register(self)
        log.warning(
            "store_forgot_worker",
            reason="It was restarted empty or from an older copy. Worker and agents are registered again.",
        )

    def handle_exception(self, job: Job, *exc_info: Any) -> None:
        """Log the failure of a job; RQ's own line is a traceback."""
        log.error("job_failed", job=job.id, exc_info=exc_info)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        self.stop_requested = True
        if self.horse_pid:
            with suppress(ProcessLookupError):
                os.kill(self.horse_pid, signal.SIGTERM)
        super().request_stop(signum, frame)  # type: ignore[no-untyped-call]  # RQ gives it no types


async def publish_agents(settings: Settings, agents: Mapping[str, Agent]) -> None:
    """Save the agents' names and tools for the service."""
    async with assemble(settings) as wiring:
        await wiring.store.counts.require()  # nothing is saved in a copy that has moved
        for agent in agents.values():
            manifest = agent.manifest()
            await wiring.runs.save_definitions(list(manifest.tools))
            await wiring.runs.save_agent(manifest.name, manifest.model_dump_json())


async def _await_stores(settings: Settings, wait_s: float | None) -> None:
    await await_store(settings.store_url, wait_s)
    if settings.queue_url is not None:
        await await_store(settings.queue_url, wait_s, setting="SAYSO_QUEUE_URL")


def main(settings: Settings) -> int:
    """Work until stopped, through outages; return 1 if an agent cannot be imported or the store is too new."""
    hold_settings(settings)
    try:
        asyncio.run(_await_stores(settings, WAIT_S))
        asyncio.run(check_format(settings.store_url, Macs(settings.key_file)))
        agents = import_agents(settings)
        asyncio.run(publish_agents(settings, agents))
    except SaysoError as error:
        log.error("not_started", error=error.message)
        return 1
    DrainWorker.settings = settings
    logging.getLogger("rq.worker").addFilter(_WithoutTraceback())
    log.info("worker_started", agents=sorted(agents))
    try:
        while not _work(settings):
            asyncio.run(_await_stores(settings, None))
    except Unavailable as error:  # it refuses the password now
        log.error("ended", error=error.message)
        return 1
    return 0


def _work(settings: Settings) -> bool:
    """Work until stopped and return True; return False if the store is lost or refuses writes: RQ survives neither."""
    jobs = DrainQueue(settings.jobs_url, settings.drain_window_s, settings.tenant)
    worker = build_worker(settings.jobs_url, DrainWorker, new_id(f"w-{os.getpid()}"), settings.tenant)
    try:
        jobs.put_back()
        jobs.close()
        worker.work(logging_level="WARNING")
    except (*LOST, ResponseError) as error:
        if not isinstance(error, LOST) and not is_refusal(error):
            raise
        log.warning("store_away", reason=describe_fault(settings.jobs_url, error))
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
    return worker.stop_requested


class _WithoutTraceback(logging.Filter):
    """Replace RQ's traceback about a lost or refusing store by one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and (isinstance(error, LOST) or is_refusal(error)):
            record.msg, record.args = "The store is away: %s", (error,)
            record.exc_info = record.exc_text = None
        return True


if __name__ == "__main__":
    sys.exit(start(main, process="worker"))
