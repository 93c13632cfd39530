"""Sinks of checkpoints: a file, an HTTP receiver, a collector of OpenTelemetry logs, or a bucket."""

import asyncio
import base64
import os
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from sayso.core.canonical_json import canonical_json
from sayso.errors import SaysoError, Unavailable
from sayso.features.evidence.checkpoints import Checkpoint
from service.core.outgoing.buckets import Bucket
from service.core.outgoing.http import Posts


class Sink(NamedTuple):
    """A sink by its setting, and a name for logs without the credentials in it."""

    url: str

    @property
    def id(self) -> str:
        return sha256(self.url.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def deliver(sink: Sink, made: Checkpoint, posts: Posts) -> None:
    """Send a checkpoint to a sink. Raises `Unavailable` where the sink has not confirmed it."""
    parts = urlsplit(sink.url)
    kind, _, scheme = parts.scheme.rpartition("+")
    if scheme == "file":
        try:
            await asyncio.to_thread(_append, Path(unquote(parts.path)), made.line)
        except OSError as error:
            raise Unavailable(f"The file of {sink.name} cannot be written: {error}.") from error
        return
    url, body = f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", made.line.encode()
    headers = {"Content-Type": "application/json"}
    if kind == "s3":
        await Bucket(sink.url, posts).put(f"{made.number:012}.json", body, headers)
        return
    if parts.username:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
    if kind == "otlp":
        body = write_log_record(made)
    if parts.query:
        url = f"{url}?{parts.query}"
    try:
        answer = await posts.send(url, headers, body)
    except SaysoError as error:
        raise Unavailable(f"{sink.name} was not reached: {error.message}") from error
    if not answer.accepted:
        raise Unavailable(f"{sink.name} has not accepted it: {answer.error or f'status {answer.status}'}.")


def _append(path: Path, line: str) -> None:
    """Append a line and wait until the disk has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640), "a", encoding="ascii") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def write_log_record(made: Checkpoint) -> bytes:
    """Return the body of an OTLP/HTTP request with the checkpoint as one log record."""
    record = {
        "timeUnixNano": f"{made.at_ms}000000",
        "severityNumber": 9,
        "severityText": "INFO",
        "eventName": "sayso.checkpoint",
        "body": {"stringValue": made.line},
        "attributes": [{"key": "sayso.checkpoint.number", "value": {"intValue": str(made.number)}}],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "sayso"}}]}
    logs = {"resource": resource, "scopeLogs": [{"scope": {"name": "sayso"}, "logRecords": [record]}]}
    return canonical_json({"resourceLogs": [logs]}, limited=False)
