"""Requests to the desk's API, as data, and the errors that its problem responses stand for."""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Generic
from urllib.parse import quote

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, check_json, parse_json
from sayso.core.clock import new_secret
from sayso.core.problems import RESERVED_MEMBERS, error_class_of
from sayso.errors import InvalidInput, InvalidJson, NotAuthenticated, SaysoError, TooLarge, Unavailable, Unreachable
from sayso.wire.items import AttachmentPage, ItemView
from sayso.wire.models import ViewT, read_view
from sayso.wire.people import ForecastPage
from sayso.wire.suspensions import InquiryPage, RedeemedItem, RunView, SuspensionView, TrailPage

LONGEST_POLL_S = 45
"""The longest time the desk holds a long poll."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True)
class Request(Generic[ViewT]):
    """One request, and the model of its response. With an idempotency key it has its effect once."""

    method: str
    path: str
    model: type[ViewT]
    query: Mapping[str, str] = field(default_factory=dict)
    body: JsonObject | None = None
    key: str | None = None
    poll_s: int = 0
    on_behalf_of: str | None = field(default=None, repr=False)
    """A signed token that names the person for whom the agent acts."""

    def __post_init__(self) -> None:
        if self.on_behalf_of is not None and not _TOKEN.fullmatch(self.on_behalf_of):
            raise InvalidInput("on_behalf_of is not a signed JWT of three parts. Give the token as its issuer made it.")
        if self.key is not None and not _IDEMPOTENCY_KEY.fullmatch(self.key):
            raise InvalidInput(f"The key {self.key[:80]!r} is not 1 to 200 visible ASCII characters. Choose another.")
        if self.body is not None:
            check_json(self.body)


def new_key() -> str:
    """Return a new idempotency key."""
    return new_secret()[:32]


def find_suspension(suspension_id: str, wait_s: int = 0) -> Request[SuspensionView]:
    """Read a suspension. With `wait_s` the desk responds once it is decided."""
    path = f"/api/v1/suspensions/{segment(suspension_id)}"
    return Request("GET", path, SuspensionView, query=_wait(wait_s), poll_s=wait_s)


def list_inquiries(suspension_id: str, wait_s: int = 0) -> Request[InquiryPage]:
    """List the questions that wait for the requester. With `wait_s` the desk responds once there is one."""
    path = f"/api/v1/suspensions/{segment(suspension_id)}/inquiries"
    return Request("GET", path, InquiryPage, query=_wait(wait_s), poll_s=wait_s)


def forecast(suspension_id: str) -> Request[ForecastPage]:
    """Say when each open item will probably be decided."""
    return Request("GET", f"/api/v1/suspensions/{segment(suspension_id)}/forecast", ForecastPage)


def list_attachments(suspension_id: str, item_id: str) -> Request[AttachmentPage]:
    """List the files of an item."""
    return Request("GET", f"{item_path(suspension_id, item_id)}/attachments", AttachmentPage)


def attach(suspension_id: str, item_id: str, name: str, content: bytes) -> Request[AttachmentPage]:
    """Attach a file to an open item."""
    body: JsonObject = {"name": name, "content": base64.b64encode(content).decode()}
    return Request("POST", f"{item_path(suspension_id, item_id)}/attachments", AttachmentPage, body=body)


def preview(suspension_id: str, item_id: str, args: JsonObject | None) -> Request[SuspensionView]:
    """Ask the workers what a call would do."""
    return Request("POST", f"{item_path(suspension_id, item_id)}/preview", SuspensionView, body={"args": args})


def forward(suspension_id: str, item: ItemView, to: str, note: str) -> Request[SuspensionView]:
    """Ask somebody else to decide an item."""
    body: JsonObject = {"to": to, "digest": item.digest, "note": note}
    path = f"{item_path(suspension_id, item.item_id)}/forward"
    return Request("POST", path, SuspensionView, body=body, key=new_key())


def write(path: str, model: type[ViewT], text: str, key: str | None) -> Request[ViewT]:
    """Send a text: a question, a comment or a note."""
    return Request("POST", path, model, body={"text": text}, key=key or new_key())


def redeem(suspension_id: str, item_id: str, holder: str, report_within_s: int) -> Request[RedeemedItem]:
    """Redeem the permit of a call for this holder."""
    body: JsonObject = {"report_within_s": report_within_s}
    return Request("POST", f"{item_path(suspension_id, item_id)}/redeem", RedeemedItem, body=body, key=holder)


def report_outcome(
    suspension_id: str, item_id: str, holder: str, success: bool, output: JsonValue, error: str | None
) -> Request[SuspensionView]:
    """Report the result of a call whose permit this holder redeemed."""
    body: JsonObject = {"success": success, "output": output, "error": error}
    return Request("POST", f"{item_path(suspension_id, item_id)}/outcome", SuspensionView, body=body, key=holder)


def mark_in_doubt(suspension_id: str, item_id: str) -> Request[SuspensionView]:
    """Ask a person whether a started call has run."""
    return Request("POST", f"{item_path(suspension_id, item_id)}/in-doubt", SuspensionView)


def find_run(run_id: str, wait_s: int = 0) -> Request[RunView]:
    """Read a run. With `wait_s` the desk responds once it has ended."""
    return Request("GET", f"/api/v1/runs/{segment(run_id)}", RunView, query=_wait(wait_s), poll_s=wait_s)


def list_events(run_id: str, after: int, limit: int) -> Request[TrailPage]:
    """List a run's events behind a number."""
    query = {"after": str(after), "limit": str(limit)}
    return Request("GET", f"/api/v1/runs/{segment(run_id)}/events", TrailPage, query=query)


def number_events(events: Sequence[JsonObject], first_seq: int, at: Sequence[datetime | None] = ()) -> list[JsonValue]:
    """Return external events with their numbers and times. The numbers make the request safe to repeat."""
    if at and len(at) != len(events):
        raise InvalidInput(f"There are {len(events)} events and {len(at)} times in at. Give one for each, or none.")
    if zoneless := [time for time in at if time is not None and time.tzinfo is None]:
        raise InvalidInput(f"The time {zoneless[0].isoformat()} in at has no time zone. Give it one, such as UTC.")
    return [
        {"seq": seq, "event": event, **({"at": time.isoformat()} if time is not None else {})}
        for seq, (event, time) in enumerate(zip(events, at or [None] * len(events), strict=True), start=first_seq)
    ]


def item_path(suspension_id: str, item_id: str) -> str:
    """Return the path of an item."""
    return f"/api/v1/suspensions/{segment(suspension_id)}/items/{segment(item_id)}"


def segment(text: str) -> str:
    """Return text as one path segment. An empty one would name another path."""
    return quote(text, safe="") or "-"


def _wait(wait_s: int) -> dict[str, str]:
    return {"wait": f"{wait_s}s"} if wait_s else {}


RETRYABLE = frozenset({429, 502, 503, 504})
"""Statuses of requests that changed nothing and may be sent again."""


@dataclass(frozen=True)
class Response:
    """A response: status, headers with lowercase names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_response(request: Request[ViewT], response: Response, url: str) -> ViewT:
    """Return the parsed body; raises the error that the response describes, or `Unreachable` for a foreign one."""
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise read_problem(response, url)
    try:
        return read_view(request.model, _read_lines(response) or b"{}")
    except ValidationError as error:
        raise Unreachable(_describe_foreign(response, url), status=response.status) from error


def _read_lines(response: Response) -> bytes:
    """Return the body; of JSON lines, an object with them."""
    if response.headers.get("content-type", "").startswith("application/jsonl"):
        return b'{"lines": [%b]}' % b",".join(response.body.splitlines())
    return response.body


def read_problem(response: Response, url: str) -> SaysoError:
    """Return the error that a problem response describes."""
    try:
        problem = parse_json(response.body)
    except (InvalidJson, TooLarge):
        problem = None
    if not isinstance(problem, dict) or not {"type", "detail"} <= problem.keys():  # other servers send a detail, too
        if response.status in RETRYABLE:
            return Unavailable(f"{url} answered {response.status}: the desk is unavailable. Try again in a moment.")
        return Unreachable(_describe_foreign(response, url), status=response.status)
    facts = {name: value for name, value in problem.items() if name not in RESERVED_MEMBERS}
    kind = error_class_of(str(problem["type"]), response.status)
    if kind is NotAuthenticated:
        message = f"{problem['detail']} Agents take their key for {url} from SAYSO_KEY; people use `sayso login`."
        return NotAuthenticated(message, **facts)
    return kind(str(problem["detail"]), **facts)


def retry_after_s(response: Response) -> float | None:
    """Return the seconds in `Retry-After`; None without them."""
    value = response.headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"[0-9]{1,6}", value) else None


def _describe_foreign(response: Response, url: str) -> str:
    kind = response.headers.get("content-type", "no content").partition(";")[0]
    return (
        f"{url} answered {response.status} with {kind}, so it is not a Sayso desk. "
        "Set SAYSO_URL to the address of a desk, such as http://127.0.0.1:8321."
    )
