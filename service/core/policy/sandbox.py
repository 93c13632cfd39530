"""Evaluate input from outside in processes with limits of time and memory, without settings, by lines of JSON."""

import json
import os
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any

from pydantic_core import to_jsonable_python

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms
from sayso.errors import InvalidInput, InvalidJson, TooLarge, Unavailable

MEMORY_MB = 512  # memory limit of one process, beyond what it uses at its start
START_S = 60.0  # time limit for the start of a process
JOBS_EACH = 1_000  # jobs after which a process is replaced
READY = b"ready\n"
_SERVICE = "service.sandbox"
_CHUNK_BYTES = 65_536


class Overrun(InvalidInput):
    """The evaluation exceeded its limit of time or memory and was ended; simplify the input."""


class Sandbox:
    """A pool of at most `places` processes, each with one job at a time. Thread-safe."""

    def __init__(self, places: int, limit_s: float, *, jobs_each: int = JOBS_EACH, memory_mb: int = MEMORY_MB) -> None:
        self.limit_s = limit_s
        self._places, self._jobs_each, self._memory_mb = places, jobs_each, memory_mb
        self._open()

    @property
    def threads(self) -> ThreadPoolExecutor:
        """One thread for each process, to wait for it."""
        self._follow_fork()
        return self._threads

    def run(self, job: JsonObject, limit_s: float | None = None) -> Any:
        """Return a job's answer; blocking. Raises `Overrun`, `Unavailable` if no process starts, the job's error."""
        self._follow_fork()
        limit_s = self.limit_s if limit_s is None else limit_s
        answer = json.loads(self._answer(json.dumps({**job, "limit_s": limit_s}).encode() + b"\n", limit_s))
        if "refused" in answer:
            raise _ERRORS[answer["refused"]](answer["message"], **answer["facts"])
        return answer

    def _answer(self, line: bytes, limit_s: float) -> bytes:
        evaluator = self._take()
        try:
            answer = evaluator.ask(line, limit_s)
            if answer is None and evaluator.jobs > 1:  # the memory may have gone to earlier jobs
                evaluator.kill()
                evaluator = _Evaluator(self._memory_mb)
                answer = evaluator.ask(line, limit_s)
        except BaseException:
            evaluator.kill()
            raise
        if answer is not None and evaluator.jobs < self._jobs_each:
            self._idle.put(evaluator)
        else:
            evaluator.kill()
        if answer is None:
            memory = f"{self._memory_mb} MB of memory"
            raise Overrun(f"The evaluation took more than {memory} and was ended. Simplify the input.")
        return answer

    def close(self) -> None:
        """End the idle processes; the next job starts a new one."""
        while True:
            try:
                self._idle.get_nowait().kill()
            except Empty:
                return

    def _take(self) -> "_Evaluator":
        while True:
            try:
                evaluator = self._idle.get_nowait()
            except Empty:
                return _Evaluator(self._memory_mb)
            if evaluator.lives:
                return evaluator
            evaluator.kill()

    def _follow_fork(self) -> None:
        if self._pid != os.getpid():
            self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._idle: SimpleQueue[_Evaluator] = SimpleQueue()
        self._threads = ThreadPoolExecutor(self._places, thread_name_prefix="sandbox")


def describe_refusal(error: InvalidInput) -> JsonObject:
    """Return the answer of a job that raised; `Sandbox.run` raises the error again."""
    kind = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _ERRORS)
    return {"refused": kind, "message": error.message, "facts": to_jsonable_python(error.facts)}


_ERRORS: dict[str, type[InvalidInput]] = {kind.__name__: kind for kind in (InvalidInput, InvalidJson, TooLarge)}


class _Evaluator:
    def __init__(self, memory_mb: int) -> None:
        self.jobs = 0
        self._left = b""
        environment = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path), "PYTHONUTF8": "1"}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _SERVICE, str(memory_mb)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C goes to the service, which ends this process
            )
        except OSError as error:
            raise Unavailable(f"No process can be started to evaluate schemas: {error.strerror}.") from error
        try:
            ready = self._read_line(START_S) == READY
        except Overrun:
            ready = False
        if not ready:
            self.kill()
            raise Unavailable("The process that evaluates schemas does not start. Try again in a moment.")

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, line: bytes, limit_s: float) -> bytes | None:
        """Return the process's answer; None where it ended itself. Raises `Overrun` at the limit."""
        self.jobs += 1
        assert self._process.stdin is not None  # noqa: S101  it was started with pipes
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._read_line(limit_s)

    def kill(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # unsent input is no longer needed
        self._process.wait()

    def _read_line(self, limit_s: float) -> bytes | None:
        assert self._process.stdout is not None  # noqa: S101  it was started with pipes
        until_ms = monotonic_ms() + limit_s * 1000
        answers = select.poll()  # select() does not support file descriptors above 1023
        answers.register(self._process.stdout, select.POLLIN)
        parts = [self._left]
        while b"\n" not in parts[-1]:
            left_ms = until_ms - monotonic_ms()
            if left_ms <= 0 or not answers.poll(left_ms):
                raise Overrun(f"The evaluation took longer than {limit_s:g} s and was ended. Simplify the input.")
            part = os.read(self._process.stdout.fileno(), _CHUNK_BYTES)
            if not part:
                return None
            parts.append(part)
        line, end, self._left = b"".join(parts).partition(b"\n")
        return line + end
