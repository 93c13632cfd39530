"""Installations for journeys: short leases, and programs that tests kill by name."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from demo.clients import Client
from demo.stacks import Stack, running_stack
from launch.stops import wait_until
from sayso.core.records.events import EventType

PATIENCE_S = 45

QUICK = {"SAYSO_LEASE_S": "2", "SAYSO_DRAIN_WINDOW_S": "2", "SAYSO_WORKERS": "1"}
"""Short leases, and one worker: a killed worker's runs resume soon, and no second worker hides the kill."""


@contextmanager
def quick_stack(home: Path, **environ: str) -> Iterator[Stack]:
    """Run a whole Sayso for the length of the block."""
    with running_stack(home, {**QUICK, **environ}) as stack:
        yield stack


def pids_of(stack: Stack, name: str) -> set[int]:
    """Return the processes of a program: every copy of it, without what they forked."""
    return {state.pid for state in stack.programs() if state.name.startswith(name) and state.pid}


def kill(stack: Stack, name: str) -> set[int]:
    """Kill -9 every copy of a program together with what it forked; return the copies killed."""
    killed = pids_of(stack, name)
    for pid in (*killed, *(child for parent in killed for child in children_of(parent))):
        kill_process(pid)
    return killed


def kill_process(pid: int) -> None:
    """Kill -9 one process, unless it is gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """Return the processes that one forked."""
    with suppress(FileNotFoundError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def await_restart(stack: Stack, name: str, killed: set[int]) -> None:
    """Wait until as many other copies of the program run as were killed."""
    assert wait_until(lambda: len(pids_of(stack, name) - killed) == len(killed), PATIENCE_S)


class Paused(NamedTuple):
    """A run that waits for people."""

    suspension_id: str
    deadline_at_ms: int


async def await_pause(client: Client, run_id: str) -> Paused:
    """Follow a run until it waits for people for the first time."""
    async for entry in client.follow(run_id):
        if entry.type == EventType.RUN_PAUSED:
            payload = entry.data["payload"]
            return Paused(payload["suspension_id"], min(item["deadline_at_ms"] for item in payload["items"]))
    raise AssertionError(f"The run {run_id} ended without a pause.")
