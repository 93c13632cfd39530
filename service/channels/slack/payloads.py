"""What Slack sends: signed requests, and one model for each kind of payload, pinned to one app in one workspace.

Slack adds fields at any time, so unknown ones are ignored. Signatures are HMAC-SHA256 over `v0:timestamp:body`; see
https://docs.slack.dev/authentication/verifying-requests-from-slack/
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from hmac import new as new_hmac
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sayso.core.canonical_json import parse_json
from sayso.errors import InvalidInput, InvalidSignature, NotAllowed
from service.channels.slack.api import SlackConfig
from service.edge.http.bodies import misfit

TOLERANCE_S = 300  # the largest difference, either way, between now and the time of a signature
TIMESTAMP = "x-slack-request-timestamp"
SIGNATURE = "x-slack-signature"

_TIMESTAMP = re.compile(r"[1-9][0-9]{0,11}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


def sign_request(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a request."""
    return f"v0={new_hmac(secret.encode(), f'v0:{timestamp}:'.encode() + body, sha256).hexdigest()}"


class Signed(NamedTuple):
    """The timestamp and signature of a request whose body is not read yet."""

    timestamp: str
    signature: str


def check_headers(timestamps: Sequence[str], signatures: Sequence[str], now_ms: int) -> Signed:
    """Return the signature that the body must have; raises `InvalidSignature`, also for one that is not recent."""
    timestamp = _check_header(TIMESTAMP, timestamps, _TIMESTAMP, "seconds since 1970")
    signature = _check_header(SIGNATURE, signatures, _SIGNATURE, "v0= and 64 hex digits")
    if abs(now_ms - int(timestamp) * 1000) > TOLERANCE_S * 1000:
        raise InvalidSignature(
            f"The request was signed at {timestamp}, more than {TOLERANCE_S} s from now. Set the clock.",
            tolerance_s=TOLERANCE_S,
        )
    return Signed(timestamp, signature)


def verify_body(secrets: Sequence[str], signed: Signed, body: bytes) -> None:
    """Raise `InvalidSignature` unless one of the secrets made the signature."""
    expected = [sign_request(secret, signed.timestamp, body) for secret in secrets if secret]
    if not any([compare_digest(signature, signed.signature) for signature in expected]):  # noqa: C419 - all are compared
        raise InvalidSignature("The signature does not verify. Set `signing_secrets` to those of the Slack app.")


def _check_header(name: str, values: Sequence[str], form: re.Pattern[str], meant: str) -> str:
    if len(values) != 1 or not form.fullmatch(values[0]):
        raise InvalidSignature(f"The header {name} must be sent once: {meant}.", header=name)
    return values[0]


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Team(_Payload):
    """A workspace, or an Enterprise Grid, which holds several."""

    id: str


class Presser(_Payload):
    """The person who pressed, submitted or typed."""

    id: str = Field(min_length=1, max_length=40)
    team_id: str | None = None
    username: str = ""
    name: str = ""


class Container(_Payload):
    """The message with the pressed button."""

    message_ts: str = ""
    channel_id: str = ""


class Action(_Payload):
    """A pressed button."""

    action_id: str
    action_ts: str = Field(min_length=1, max_length=64)
    value: str = ""


class _Acted(_Payload):
    user: Presser
    team: Team | None = None
    enterprise: Team | None = None
    api_app_id: str


class BlockActions(_Acted):
    """Somebody pressed a button."""

    type: Literal["block_actions"]
    trigger_id: str = ""
    container: Container = Container()
    response_url: str = ""
    actions: tuple[Action, ...] = Field(min_length=1, max_length=25)


class Submitted(_Payload):
    """A submitted modal."""

    id: str = Field(min_length=1, max_length=64)
    callback_id: str = ""
    private_metadata: str = ""
    state: dict[str, Any] = Field(default_factory=dict)


class ViewSubmission(_Acted):
    """Somebody submitted a modal."""

    type: Literal["view_submission"]
    view: Submitted


class Command(_Payload):
    """Somebody typed `/sayso …`."""

    api_app_id: str
    team_id: str = ""
    enterprise_id: str = ""
    user_id: str = Field(min_length=1, max_length=40)
    user_name: str = ""
    text: str = ""
    response_url: str = ""


class Event(_Payload):
    """What happened in the workspace."""

    type: str
    user: str = ""
    tab: str = ""


class EventCallback(_Payload):
    """An event that the app subscribed to."""

    type: Literal["event_callback"]
    api_app_id: str
    team_id: str | None = None
    enterprise_id: str | None = None
    event: Event


class Verification(_Payload):
    """Slack's test of a new address for events."""

    type: Literal["url_verification"]
    challenge: str = Field(max_length=1000)


Interaction = BlockActions | ViewSubmission
Model = TypeVar("Model", bound=_Payload)


def read_form(raw: bytes) -> dict[str, str]:
    """Return the fields of a form, each at most once; raises `InvalidInput`."""
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=40
        )
    except ValueError as error:
        raise InvalidInput("The form cannot be read. Send it as Slack does.") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidInput("The form names a field twice. Send each once.")
    return fields


def read_interaction(raw: bytes) -> JsonValue:
    """Return the JSON in the form's only field; raises `InvalidInput`."""
    fields = read_form(raw)
    if set(fields) != {"payload"}:
        raise InvalidInput("The form must have one field, `payload`. Send it as Slack does.")
    return parse_json(fields["payload"])


def read_payload(model: type[Model], payload: object) -> Model:
    """Return a payload as its model; raises `InvalidInput` with every fault."""
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), "$") from None


class Source(NamedTuple):
    """Where a payload comes from; Slack leaves the workspace out for an app of a whole Enterprise Grid."""

    app_id: str
    team_id: str
    enterprise_id: str


def source_of(sent: BlockActions | ViewSubmission | Command | EventCallback) -> Source:
    """Return where a payload comes from."""
    if isinstance(sent, Command | EventCallback):
        return Source(sent.api_app_id, sent.team_id or "", sent.enterprise_id or "")
    team, enterprise = sent.team, sent.enterprise
    return Source(sent.api_app_id, team.id if team else "", enterprise.id if enterprise else "")


def check_origin(config: SlackConfig, source: Source, user: Presser | None = None) -> None:
    """Raise `NotAllowed` for another app or workspace than the channel's own, and for people of another workspace.

    In an Enterprise Grid the home workspace of a person may be another one: Slack is asked about them before they act.
    """
    in_grid = bool(config.enterprise_id) and source.enterprise_id == config.enterprise_id
    if source.app_id != config.app_id or not (source.team_id == config.team_id or in_grid):
        raise NotAllowed(
            f"This is not the app and workspace of the channel {config.name}. Correct app_id and team_id, and set "
            "enterprise_id for an app of a whole Enterprise Grid."
        )
    if user is not None and not source.enterprise_id and user.team_id not in (None, config.team_id):
        raise NotAllowed("People of other workspaces cannot decide here. Open the item's page instead.")


def type_of(payload: object) -> str:
    """Return the payload's type; empty for none."""
    kind = payload.get("type") if isinstance(payload, dict) else None
    return kind if isinstance(kind, str) else ""
