"""Starts all programs of a home in order, and stops them.

The order is: lock the home, end leftovers, start the store, run the set-up, start the other programs, wait for
`/healthz`. To stop, the supervisor ends its programs. Processes that still have the home's mark are killed.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from launch import CannotStart, NotReady
from launch.checks import check_port, find_store_fault, is_healthy
from launch.homes import end_leftovers, locked, logs_folder, mark, prepare_home
from launch.programs import CHECK_EVERY_S, SERVER, WORKER, Program, Watch, watches_for
from launch.stops import StopSignals, catch_stop_signals, wait_until
from launch.supervision import STOP_GRACE_S, ProgramState, Supervisor, startup_log
from sayso.errors import Unavailable
from service.core.jobs import worker_pids
from service.core.settings import CHECKOUT, Settings, variable_of
from service.core.settings.secrets import SECRETS
from service.core.settings.stores import hide_password
from service.core.settings.tenants import list_desks
from service.core.store.connection.connecting import await_store

READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = STOP_GRACE_S + 2
LEFTOVER_GRACE_S = 0.5
FAILED_STARTS = 3
"""A program that has ended this often during the start will not become ready."""

TAIL_LINES = 20
SETUP_SECRETS = (variable_of("admin_password"), variable_of("key"))
"""Only the set-up gets these, not the programs that keep running."""


def run(
    settings: Settings, programs: Iterable[Program], setup: Program | None, watch_every_s: float = CHECK_EVERY_S
) -> int:
    """Run the programs until Ctrl-C or SIGTERM. Return the exit code: 0, or 1 after an error."""
    try:
        with catch_stop_signals() as stops:
            prepare_home(settings.home)
            with locked(settings.home, settings.public_url):
                _run_locked(settings, tuple(programs), setup, stops, watch_every_s)
    except KeyboardInterrupt:
        return 0
    except CannotStart as error:
        print(error.message, file=sys.stderr)
        return 1


def _run_locked(
    settings: Settings, programs: tuple[Program, ...], setup: Program | None, stops: StopSignals, watch_every_s: float
) -> NoReturn:
    end_leftovers(settings.home, STOP_GRACE_S)
    check_port(settings.host, settings.port)
    if settings.runs_demo_model:
        check_port(settings.host, settings.demo_model_port)
    environ = {**_in_capitals(os.environ), **mark(settings.home)}
    environ["PYTHONPATH"] = find_python_path(environ)
    environ.setdefault("SAYSO_STOP_DELAY_S", "0")  # no other service takes connections when all programs stop
    kept = {name: value for name, value in environ.items() if name not in SETUP_SECRETS}
    supervisor = Supervisor.start(programs, settings.home, kept)
    try:
        _bring_up_store(supervisor, settings, embedded=SERVER in programs)
        if setup is not None:
            _set_up(setup, {name: value for name, value in environ.items() if name not in setup.hidden})
        supervisor.start_others()
        _wait_for_programs(supervisor, settings, programs)
        watches = watches_for(settings, programs)
        for watch in watches.values():
            watch.check()
        print(f"Sayso is ready: {settings.public_url} (logs: {logs_folder(settings.home)}; stop: Ctrl-C)", flush=True)
        _watch(supervisor, watches, watch_every_s)
        raise NotReady("The supervisor ended, so Sayso was stopped. See supervisor.log, then start again.")
    finally:
        _take_down(supervisor, stops)


def find_python_path(environ: Mapping[str, str]) -> str:
    """Return the user's PYTHONPATH with the current directory appended.

    Relative folders become absolute, because programs run in another directory.
    """
    folders = [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return os.pathsep.join(dict.fromkeys(os.path.abspath(folder) for folder in [*folders, os.curdir]))


def _in_capitals(environ: Mapping[str, str]) -> dict[str, str]:
    """Write the names of secrets in capitals. Settings accept small letters too."""
    secret = {variable_of(name) for name in SECRETS}
    return {name.upper() if name.upper() in secret else name: value for name, value in environ.items()}


def _bring_up_store(supervisor: Supervisor, settings: Settings, *, embedded: bool) -> None:
    _wait(supervisor, supervisor.is_listening, "The supervisor")
    if embedded:
        supervisor.start_server()
        shown = hide_password(settings.store_url)
        _wait(supervisor, lambda: find_store_fault(settings.store_url) is None, f"The store at {shown}")
    urls = {"SAYSO_REDIS_URL": None if embedded else settings.store_url, "SAYSO_QUEUE_URL": settings.queue_url}
    try:
        for name, url in urls.items():
            if url is not None:
                asyncio.run(await_store(url, note=_say_waiting, setting=name))
    except Unavailable as error:
        raise NotReady(error.message) from None


def _say_waiting(fault: str) -> None:
    print(f"{fault} Waiting for it.", flush=True)


def _set_up(setup: Program, environ: Mapping[str, str]) -> None:
    """Run the set-up program. It shares our output."""
    command = [sys.executable, "-m", setup.module]
    # In a group of its own, Ctrl-C reaches us alone, and we end it.
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, check=False, process_group=0)
    if done.returncode != 0:
        raise NotReady(
            f"The set-up failed: python -m {setup.module} ended with {done.returncode}. See its output above."
        )


def _wait_for_programs(supervisor: Supervisor, settings: Settings, programs: tuple[Program, ...]) -> None:
    """Wait until the service is healthy and every worker has imported its agents."""
    starts: set[tuple[str, int]] = set()

    def keeps_failing() -> bool:
        states = supervisor.states()
        starts.update((state.name, state.started_at_s) for state in states if state.started_at_s)
        names = [name for name, _ in starts]
        return any(names.count(state.name) - (not state.is_down) >= FAILED_STARTS for state in states)

    def are_ready() -> bool:
        return is_healthy(settings.host, settings.port) and _workers_ready(supervisor, settings, programs)

    _wait(supervisor, lambda: keeps_failing() or are_ready(), "Sayso")
    if not are_ready():
        raise _not_ready(supervisor, "A program keeps ending")


def _workers_ready(supervisor: Supervisor, settings: Settings, programs: tuple[Program, ...]) -> bool:
    if WORKER.module not in {program.module for program in programs}:
        return True
    pids = {state.pid for state in _states(supervisor) if state.name.startswith(WORKER.name)}
    return pids <= frozenset().union(*(worker_pids(desk.jobs_url) for desk in list_desks(settings).values()))


def _watch(supervisor: Supervisor, watches: Mapping[str, Watch], every_s: float) -> None:
    """Restart programs that hang, until the supervisor ends."""
    pids = {state.name: state.pid for state in _states(supervisor)}
    while not _ends_within(supervisor.child, every_s):
        before, pids = pids, {state.name: state.pid for state in _states(supervisor)}
        for name, watch in watches.items():
            if pids.get(name) != before.get(name):
                watch.begin()
            elif not watch.check():
                print(f"The {name} no longer responds. Restarting it.", file=sys.stderr)
                with suppress(NotReady):  # it has ended, and the supervisor restarts it
                    supervisor.kill(name)


def _ends_within(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _wait(supervisor: Supervisor, condition: Callable[[], bool], what: str) -> None:
    """Wait for the condition. Raises `NotReady` with the last log lines if it fails or the supervisor ends."""
    is_met = wait_until(lambda: not supervisor.is_alive() or condition(), READY_TIMEOUT_S)
    if not supervisor.is_alive():
        raise NotReady(f"The supervisor ended at once.\n{_tail(startup_log(supervisor.home))}")
    if not is_met:
        raise _not_ready(supervisor, f"{what} was not ready within {READY_TIMEOUT_S} s")


def _not_ready(supervisor: Supervisor, fact: str) -> NotReady:
    states = _states(supervisor)
    failed: tuple[ProgramState, ...] = tuple(state for state in states if state.is_down) or states
    tails = [f"--- {state.name} ({state.state.lower()}) ---\n{_tail(state.logfile)}" for state in failed]
    return NotReady("\n".join([f"{fact}. Sayso was stopped. Last log lines:", *tails]))


def _states(supervisor: Supervisor) -> tuple[ProgramState, ...]:
    with suppress(NotReady):
        return supervisor.states()
    return ()


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return "(no log yet)"
    return "\n".join(lines[-TAIL_LINES:])


def _take_down(supervisor: Supervisor, stops: StopSignals) -> None:
    """Stop everything, immediately on a second Ctrl-C or after the timeout.

    The supervisor leaves behind work horses of killed workers, or everything if it was killed itself.
    """
    stops.start_stopping()
    supervisor.stop()
    wait_until(lambda: stops.is_immediate or not supervisor.is_alive(), STOP_TIMEOUT_S)
    supervisor.child.kill()
    supervisor.child.wait()
    end_leftovers(supervisor.home, 0 if stops.is_immediate else LEFTOVER_GRACE_S)
