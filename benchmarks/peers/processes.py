"""Processes of a measured system: start, readiness, memory and processor time."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx
from redis import Redis

from launch.stops import wait_until
from service.core.settings import CHECKOUT

READY_S = 60
_STOP_S = 5
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class Start(Protocol):
    """Starts a program: a module of this repository, or a command."""

    def __call__(self, *command: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Start the command; one that ends in no path is a Python module with its arguments."""
        ...


@dataclass
class Running:
    """A system's processes by kind, and its port. `url` is that of its Valkey server, empty if it has none."""

    port: int
    url: str
    processes: dict[str, "subprocess.Popen[bytes]"]
    password: str = ""
    key: str = ""

    def memory_bytes(self) -> int:
        """Return the memory that the server uses; that of all processes if there is no Valkey."""
        return int(self._info("memory")["used_memory"]) if self.url else self.resident_bytes()

    def disk_bytes(self) -> int:
        """Return the size of the server's append-only file."""
        return int(self._info("persistence")["aof_current_size"])

    def resident_bytes(self, kind: str = "") -> int:
        """Return the memory of the processes of a kind with their children, without the server."""
        return sum(_resident_bytes(pid) for pid in self._pids(kind))

    def processor_ms(self) -> dict[str, float]:
        """Return the processor time of each kind of process so far, with the driver's."""
        kinds = {name.partition("-")[0] for name in self.processes}
        pids = {kind: self._pids(kind) for kind in kinds} | {"driver": [os.getpid()]}
        if self.url:
            pids["store"] = [int(self._info("server")["process_id"])]
        return {kind: sum(map(_processor_ms, of_kind)) for kind, of_kind in pids.items()}

    def set_fsync(self, policy: str) -> None:
        """Set the server to sync `always` or `everysec`."""
        with Redis.from_url(self.url) as client:
            client.config_set("appendfsync", policy)

    def _info(self, section: str) -> dict[str, str]:
        with Redis.from_url(self.url) as client:
            info: dict[str, str] = client.info(section)
        return info

    def _pids(self, kind: str) -> list[int]:
        roots = [process.pid for name, process in self.processes.items() if name.startswith(kind)]
        return [pid for root in roots for pid in (root, *_children_of(root))]


@contextmanager
def starting(environ: dict[str, str], folder: Path = CHECKOUT) -> Iterator[Start]:
    """Let the block start programs, and end them after it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, **own: str) -> "subprocess.Popen[bytes]":
        argv = command if os.sep in command[0] else (sys.executable, "-m", *command)
        process = subprocess.Popen(argv, env={**os.environ, **environ, **own}, cwd=folder, stdout=subprocess.DEVNULL)
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_ready(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds. Raises `RuntimeError` if it never does."""
    if not wait_until(condition, READY_S):
        raise RuntimeError(f"the processes were not ready within {READY_S} s; see their output")


def answers(port: int, path: str) -> bool:
    """Return whether a service on this machine answers 200."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 200
    except httpx.TransportError:
        return False


def _resident_bytes(pid: int) -> int:
    status = _read_process(pid, "status")
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def _processor_ms(pid: int) -> float:
    """Return user and system time, to the kernel's tick of about 10 ms."""
    fields = _read_process(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_MS if fields else 0.0


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in _read_process(pid, f"task/{pid}/children").split()]


def _read_process(pid: int, file: str) -> str:
    """Return a file of the kernel about a process; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
