"""Interrupts of AG-UI as calls at the desk, and decided items as the entries that resume their run.

https://docs.ag-ui.com/concepts/interrupts: one `resume` answers every open interrupt of the run, edited arguments
replace all others, and a denial is an answer (`approved: false`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import Field, JsonValue, ValidationError
from pydantic_core import to_json

from sayso.adapters.agui.streams import BadStream, CallsSeen
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import same_json
from sayso.core.records.base import Immutable
from sayso.core.records.tools import find_name_fault
from sayso.core.text.language import cut
from sayso.errors import Denied
from sayso.wire.items import ItemView
from sayso.wire.suspensions import SuspensionView

CLAIM = "ag_ui"
"""The key of the interrupts in the context that the desk keeps with an item."""

MAX_INTERRUPTS = 50
_ANSWER = "answer"
_NO_EDITS = "A reviewer changed the arguments, which this agent cannot take. It may call again with exactly {args}."
_NO_REFUSAL = (
    "{why}. The agent gets no answer, since it would take a refusal for its first outcome. Its run stays as it is."
)
_CREWAI = "crewai:"
_TITLE_CHARS, _ID_CHARS, _MESSAGE_CHARS = 200, 200, 20_000


class Kept(Immutable):
    """What the desk keeps of an interrupt: the form of its answer, and when it expires.

    `takes` are the members of an answer to an approval; those of a `form` are the properties that it requires. An agent
    that `goes_on` takes a cancelled question, or an empty answer, for its first outcome.
    """

    id: str = Field(max_length=_ID_CHARS)
    call_id: str | None = None
    form: bool = False
    plain: bool = False
    goes_on: bool = False
    takes: tuple[str, ...] = ()


class Interrupt(Immutable, extra="ignore", populate_by_name=True):
    """One interrupt of `RUN_FINISHED`; members that are not read here are allowed."""

    id: str = Field(min_length=1, max_length=_ID_CHARS)
    reason: str = Field(max_length=_ID_CHARS)
    message: str | None = None
    tool_call_id: str | None = Field(default=None, alias="toolCallId")
    metadata: JsonObject | None = None
    response_schema: JsonObject | None = Field(default=None, alias="responseSchema")
    expires_at: datetime | None = Field(default=None, alias="expiresAt")

    @property
    def call_id(self) -> str | None:
        """The call that may run. Google ADK asks about it with a call of its own, and names it in the metadata."""
        adk = (self.metadata or {}).get("adk")
        original = adk.get("originalFunctionCall") if isinstance(adk, dict) else None
        id_ = original.get("id") if isinstance(original, dict) else None
        return id_ if isinstance(id_, str) and self.tool_call_id is not None else self.tool_call_id

    @property
    def is_form(self) -> bool:
        """Whether people give a value, instead of approving."""
        is_other = "approved" not in self._properties and not self._is_yes_or_no
        return self._goes_on or (self.response_schema is not None and is_other)

    @property
    def kept(self) -> Kept:
        required = (self.response_schema or {}).get("required")
        names = required if self.is_form and isinstance(required, list) else [*self._properties]
        return Kept(
            id=self.id,
            call_id=self.call_id,
            form=self.is_form,
            goes_on=self._goes_on,
            plain=self._is_yes_or_no or (self.reason == "confirmation" and self.response_schema is None),
            takes=tuple(name for name in names if isinstance(name, str)),
        )

    @property
    def _properties(self) -> JsonObject:
        properties = (self.response_schema or {}).get("properties")
        return properties if isinstance(properties, dict) else {}

    @property
    def _goes_on(self) -> bool:
        return self.reason.startswith(_CREWAI)

    @property
    def _is_yes_or_no(self) -> bool:
        return (self.response_schema or {}).get("type") == "boolean"


def read_interrupts(event: JsonObject) -> tuple[Interrupt, ...]:
    """Return the interrupts with which a run has finished; none for any other end. Raises `BadStream`."""
    outcome = event.get("outcome")
    if not isinstance(outcome, dict) or outcome.get("type") != "interrupt":
        return ()
    listed = outcome.get("interrupts")
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_INTERRUPTS:
        raise BadStream(f"The agent asks for 1 to {MAX_INTERRUPTS} answers at once, or its run has not stopped to ask.")
    try:
        interrupts = tuple(Interrupt.model_validate(member) for member in listed)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise BadStream(f"An interrupt of the agent is invalid: {place}: {problem['msg']}.") from error
    if len({interrupt.id for interrupt in interrupts}) != len(interrupts):
        raise BadStream("Two interrupts of the agent have the same id, so an answer could be given to the wrong one.")
    return interrupts


def write_calls(interrupts: Sequence[Interrupt], seen: CallsSeen, prefix: str) -> list[JsonValue]:
    """Return the calls to ask the desk about, in order. Raises `BadStream` for a call that nobody has seen."""
    calls = [_write_call(interrupt, seen, prefix) for interrupt in interrupts]
    for call in calls:  # the desk takes one definition of a tool
        if any(other["tool"] == call["tool"] and other["definition"] != call["definition"] for other in calls):
            call["definition"] = {"parameters": {"type": "object"}}
    return [*calls]


def _write_call(interrupt: Interrupt, seen: CallsSeen, prefix: str) -> JsonObject:
    properties = (interrupt.response_schema or {}).get("properties")
    edited = properties.get("editedArgs") if isinstance(properties, dict) else None
    parameters: JsonValue = {"type": "object"}
    if interrupt.call_id is not None:
        name, args = seen.find(interrupt.call_id)
        parameters = edited if isinstance(edited, dict) else parameters
    else:
        name = interrupt.reason
        shown = {"message": interrupt.message, "details": interrupt.metadata}
        args = {key: value for key, value in shown.items() if value}
    if interrupt.is_form:
        answer: JsonValue = interrupt.response_schema or {"type": "string"}
        parameters = {"type": "object", "properties": {_ANSWER: answer}}
    name = name_tool(prefix, name)
    if (fault := find_name_fault(name)) is not None:
        raise BadStream(f"The agent asks about a tool that the desk cannot name: {fault}")
    return {"tool": name, "args": args, "call_id": interrupt.id, "definition": {"parameters": parameters}}


def name_tool(prefix: str, name: str) -> str:
    """Return a tool's name at the desk."""
    return f"{prefix}.{name}" if prefix else name


def describe_title(interrupts: Sequence[Interrupt]) -> str:
    """Return what reviewers read above the calls."""
    return cut(" ".join((interrupts[0].message or interrupts[0].reason).split()), _TITLE_CHARS)


def find_expiry(interrupts: Sequence[Interrupt]) -> datetime | None:
    """Return when the first of the interrupts expires: one answer answers all."""
    times = [interrupt.expires_at for interrupt in interrupts]
    return min((at if at.tzinfo else at.replace(tzinfo=UTC) for at in times if at is not None), default=None)


def read_kept(suspension: SuspensionView) -> tuple[dict[str, Kept], JsonValue]:
    """Return what the desk keeps of the interrupts of a suspension, by id, and their thread; nothing of another's."""
    claimed = suspension.run.claimed_context.get(CLAIM)
    listed = claimed.get("interrupts") if isinstance(claimed, dict) else None
    if not isinstance(claimed, dict) or not isinstance(listed, list):
        return {}, None
    try:
        all_kept = [Kept.model_validate(member) for member in listed]
    except ValidationError:
        return {}, None
    return {kept.id: kept for kept in all_kept}, claimed.get("thread")


def write_entry(kept: Kept, item: ItemView, args: JsonObject | None) -> JsonObject:
    """Return the entry that answers an interrupt; `args` are those of a call that may run, else None.

    Raises `Denied` if that is a refusal for an agent that goes on.
    """
    message = item.outcome.message if item.outcome is not None else None
    if kept.form:
        answer = None if args is None else args.get(_ANSWER)
        lacks = kept.takes and (not isinstance(answer, dict) or any(name not in answer for name in kept.takes))
        lacks = lacks or (kept.goes_on and not (isinstance(answer, str) and answer.strip()))
        return refuse(kept, message) if answer is None or lacks else _resolve(kept, answer)
    if args is None:
        return refuse(kept, message)
    if "editedArgs" in kept.takes:  # also without an edit: the agent's state may have changed since it asked
        return _resolve(kept, {"approved": True, "editedArgs": args})
    if not same_json(args, item.tool.args):
        return refuse(kept, _NO_EDITS.format(args=to_json(args).decode()))
    return _resolve(kept, True if kept.plain else {"approved": True})


def lets_run(entry: JsonObject) -> bool:
    """Return whether the entry lets the agent go on with what it asked."""
    payload = entry.get("payload")
    denied = payload is False or (isinstance(payload, dict) and payload.get("approved") is False)
    return entry["status"] == "resolved" and not denied


def refuse(kept: Kept, message: str | None) -> JsonObject:
    """Return the entry that denies a call, or gives no value. Raises `Denied` for an agent that goes on."""
    if kept.goes_on:
        why = message.rstrip().rstrip(".") if message else "Nobody gave a value"
        raise Denied(_NO_REFUSAL.format(why=why))
    if kept.form:
        return {"interruptId": kept.id, "status": "cancelled"}
    if kept.plain:
        return _resolve(kept, False)
    reason: JsonObject = {"reason": message} if message and (not kept.takes or "reason" in kept.takes) else {}
    return _resolve(kept, {"approved": False, **reason})


def _resolve(kept: Kept, payload: JsonValue) -> JsonObject:
    return {"interruptId": kept.id, "status": "resolved", "payload": payload}
