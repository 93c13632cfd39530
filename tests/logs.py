"""The schema of log lines, and the lines of a real process."""

import json
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

Frame = Annotated[str, StringConstraints(pattern=r"^[\w.]+:\d+ [\w.<>]+$")]
CANARY = "hunter2-DE44500105175407324931"
"""What the message of an exception may hold, and no log line."""

Line = Annotated[str, StringConstraints(pattern=r"^[^\n]+$")]


class Cause(BaseModel):
    """An exception in a log line."""

    model_config = ConfigDict(extra="forbid")

    error: str
    frames: list[Frame]


class LogLine(BaseModel):
    """A log line, as `docs/operations.md` describes it; the facts of its event are further fields."""

    model_config = ConfigDict(extra="allow")

    ts: AwareDatetime
    level: Literal["debug", "info", "warning", "error", "critical"]
    event: Line
    process: Literal["service", "worker", "clock", "watch"]
    logger: Line
    request_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    error: str | None = None
    frames: list[Frame] | None = None
    causes: list[Cause] | None = None

    def fact(self, name: str) -> Any:
        """Return a fact of the event."""
        return (self.model_extra or {}).get(name)


def read_lines(output: str) -> list[LogLine]:
    """Return the lines of an output; fails for anything else in it."""
    return [LogLine.model_validate(json.loads(line)) for line in output.splitlines()]
