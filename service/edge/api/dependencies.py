"""Dependencies of routes: the caller, its role, what it may read, the limits of its context, and this process's parts.

Foreign records and drills are answered like missing ones.
"""

import re
from functools import lru_cache
from typing import Annotated

import structlog
from fastapi import Depends, Header, Path, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import AfterValidator, ValidationError
from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject, count_values
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import InvalidHeader, InvalidInput, NotFound, Unreadable
from sayso.runner.agents import AgentManifest
from service.channels.kinds import Channels
from service.core.auth.credentials import Principal, is_monitor, require_person
from service.core.store.runs.runs import Run
from service.core.wiring import Process, Wiring

MAX_BYTES = 32_768
MAX_VALUES = 1_000


def _check_size(context: JsonObject) -> JsonObject:
    size, values = len(to_json(context)), count_values(context, MAX_VALUES)
    if size > MAX_BYTES:
        raise ValueError(f"the context has {size} bytes; the limit is {MAX_BYTES}")
    if values > MAX_VALUES:
        raise ValueError(f"the context has more than {MAX_VALUES} values")
    return context


Context = Annotated[JsonObject, AfterValidator(_check_size)]


LONGEST_WAIT_S = 60
_ANSWERED_WITHIN_S = 50
"""The longest that a request is held: many proxies give up after 60 s. A longer `wait` is answered after this time."""

LONGEST_PAGE = 200
FURTHEST_SKIP = 10_000

_KEY = re.compile(r"[!-~]{1,200}")
_NO_WAIT = "0s"
_WAIT = re.compile(r"([0-9]|[1-5][0-9]|60)s?")

_BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="Bearer",
    description="An agent's API key, or the token of a session made with `POST /api/v1/sessions`.",
)


async def wiring_of(request: Request) -> Wiring:
    """Return the parts for the caller's tenant."""
    wiring: Wiring = request.state.wiring
    return wiring


Parts = Annotated[Wiring, Depends(wiring_of)]


async def open_wiring_of(request: Request) -> Wiring:
    """Return the parts for a request without a credential."""
    process: Process = request.app.state.process
    return process.wiring


OpenParts = Annotated[Wiring, Depends(open_wiring_of)]


async def channels_of(request: Request) -> Channels:
    """Return the open channels of this process."""
    channels: Channels = request.app.state.channels
    return channels


OpenChannels = Annotated[Channels, Depends(channels_of)]


async def caller_of(
    request: Request, _bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
) -> Principal:
    """Return the caller, whom `SignedInRoute` has identified."""
    principal: Principal = request.state.principal
    return principal


Caller = Annotated[Principal, Depends(caller_of)]  # any caller with a credential


async def person_of(caller: Caller) -> Principal:
    """Return the calling person. Raises `NotAllowed` for an agent."""
    return require_person(caller)


Person = Annotated[Principal, Depends(person_of)]  # a person whose roles have the operation


async def watcher_of(caller: Caller) -> Principal:
    """Return the calling person, or the holder of a monitoring key. Raises `NotAllowed` for others."""
    return caller if is_monitor(caller) else require_person(caller)


Watcher = Annotated[Principal, Depends(watcher_of)]  # a person whose roles have the operation, or a monitoring key


async def key_of(
    request: Request,
    _key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="1 to 200 visible ASCII characters. For 24 hours, the same request with the same key has no "
            "further effect; a different request with this key is refused.",
            json_schema_extra={"pattern": "^[!-~]{1,200}$", "examples": ["order-4711-refund"]},
        ),
    ] = None,
) -> str | None:
    """Return the Idempotency-Key of the request, if any."""
    return read_key(request)


def read_key(request: Request) -> str | None:
    """Return the Idempotency-Key of the request, if any. Raises `InvalidHeader`."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
        raise InvalidHeader("The header Idempotency-Key must be sent once, with 1 to 200 visible ASCII characters.")
    return keys[0]


IdempotencyKey = Annotated[str | None, Depends(key_of)]


async def person_token_of(
    request: Request,
    _token: Annotated[
        str | None,
        Header(
            alias="Sayso-On-Behalf-Of",
            description="A signed JWT of a trusted issuer that names the person for whom the agent acts. An invalid "
            "one refuses the request.",
        ),
    ] = None,
) -> str | None:
    """Return the token for the person of the request, if any."""
    return read_person_token(request)


def read_person_token(request: Request) -> str | None:
    """Return the token for the person of the request, if any. Raises `InvalidHeader` for more than one."""
    tokens = request.headers.getlist("sayso-on-behalf-of")
    if len(tokens) > 1:
        raise InvalidHeader("The header Sayso-On-Behalf-Of must be sent once. An agent acts for one person at a time.")
    return tokens[0] if tokens else None


PersonToken = Annotated[str | None, Depends(person_token_of)]


async def wait_of(
    wait: Annotated[
        str,
        Query(
            description=f"How many seconds to wait, at most {LONGEST_WAIT_S}; answered within {_ANSWERED_WITHIN_S}.",
            json_schema_extra={"pattern": "^([0-9]|[1-5][0-9]|60)s?$", "examples": ["30s"]},
        ),
    ] = _NO_WAIT,
) -> int:
    """Return the seconds to wait. Raises `InvalidInput`."""
    return _parse_wait(wait)


def read_wait(request: Request) -> int:
    """Return the seconds to wait, of the request's query. Raises `InvalidInput`."""
    return _parse_wait(request.query_params.get("wait", _NO_WAIT)) if request.scope["query_string"] else 0


def _parse_wait(wait: str) -> int:
    match = _WAIT.fullmatch(wait)
    if match is None:
        raise InvalidInput(f"wait must be seconds from 0 to {LONGEST_WAIT_S}, such as 30s.", parameter="wait")
    return min(int(match[1]), _ANSWERED_WITHIN_S)


Wait = Annotated[int, Depends(wait_of)]  # seconds of a long poll
Skip = Annotated[int, Query(ge=0, le=FURTHEST_SKIP, description="The number of entries to skip.")]
Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="The largest number of entries to return.")]

RunId = Annotated[str, Path(min_length=1, max_length=100, examples=["run_019aa4a2f0d1b3c45d6e7f8091a2b3c4"])]
SuspensionId = Annotated[str, Path(min_length=1, max_length=100, examples=["sus_019aa4a2f1e2c3d4e5f60718293a4b5c"])]
ItemId = Annotated[str, Path(min_length=1, max_length=100, examples=["i1"])]
ReviewerName = Annotated[str, Path(min_length=1, max_length=100, examples=["anna"])]
KeyId = Annotated[str, Path(min_length=1, max_length=100, examples=["key_019aa4a2f2f3d4e5f60718293a4b5c6d"])]


_LOG = structlog.get_logger(__name__)


async def find_run(parts: Wiring, caller: Principal, run_id: str) -> Run:
    """Return a run that the caller may see. Raises `NotFound`, and `Unreadable` if the caller could see it."""
    unknown = NotFound(f"There is no run {run_id!r} for this credential.")
    try:
        run = await parts.runs.read(run_id)
    except Unreadable:
        if caller.owner is None or await parts.runs.is_of(caller.owner, run_id=run_id):
            raise
        raise unknown from None
    if caller.owner is not None and (run.owner != caller.owner or run.is_drill):
        raise unknown
    return run


async def find_suspension(
    parts: Wiring, owner: str | None, suspension_id: str, unknown: NotFound | None = None
) -> tuple[SuspensionRecord, int]:
    """Return a suspension of `owner`, of anyone if None, and the store's time; raises `unknown`, `Unreadable`."""
    unknown = unknown or NotFound(f"There is no suspension {suspension_id!r} for this credential.")
    try:
        suspension = await parts.desk.suspensions.read(suspension_id)
    except NotFound:
        raise unknown from None
    except Unreadable:
        if owner is None or await parts.runs.is_of(owner, suspension_id=suspension_id):
            raise
        raise unknown from None
    if owner is not None and (suspension.record.run.owner != owner or suspension.record.is_drill):
        raise unknown
    return suspension.record, suspension.now_ms


async def find_agent(parts: Wiring, name: str) -> AgentManifest:
    """Return a registered agent. Raises `InvalidInput` with the registered names."""
    manifests = await parts.runs.agents(fresh=False)
    if name not in manifests:
        manifests = await parts.runs.agents()
    if name in manifests:
        manifest = read_manifest(manifests[name])
        if manifest is None:
            raise Unreadable(f"The agent {name!r} was registered by a worker of another version. Run the same version.")
        return manifest
    known = ", ".join(manifests)
    todo = f"Registered are: {known}." if known else "None is registered yet; a worker registers them when it starts."
    raise InvalidInput(
        f"There is no agent named {name!r}. {todo}", errors=[{"path": "$.agent", "message": "is not registered"}]
    )


@lru_cache(maxsize=1024)
def read_manifest(manifest: bytes) -> AgentManifest | None:
    """Return the manifest of a registered agent, or None, with a log entry, if this version cannot read it."""
    try:
        return AgentManifest.model_validate_json(manifest)
    except ValidationError as error:
        _LOG.error("agent_unreadable", error=str(error.errors(include_url=False, include_input=False)[0])[:500])
        return None
