"""Views of runs, their trail events, and unreadable records."""

from collections.abc import Iterable

from pydantic import ConfigDict, Field, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor
from sayso.core.records.suspensions import RunStatus
from sayso.core.transitions.states import RunState
from service.api.views.base import Timestamp, View
from service.store.suspensions.reading import UnreadableRecord

CLAIMED_TITLE = "The title that the agent gave; it is not verified."


class ErasureView(View):
    """The erasure of a run's contents. Who decided what, when and by which rule remains."""

    by: Actor
    at: Timestamp = Field(validation_alias="at_ms")
    reason: str
    seq: int = Field(description="The number of the trail event that records it.")


class RunView(View):
    """A run."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "run_019aa4a2f0d1b3c45d6e7f8091a2b3c4",
                    "agent": "demo",
                    "owner": "demo",
                    "thread_id": "run_019aa4a2f0d1b3c45d6e7f8091a2b3c4",
                    "claimed_title": "Move savings",
                    "tags": ["bank"],
                    "status": "degraded",
                    "state": "degraded",
                    "suspension_id": "sus_019aa4a2f1e2c3d4e5f60718293a4b5c",
                    "created_at": "2026-11-21T12:03:04.120Z",
                    "updated_at": "2026-11-21T12:03:05.007Z",
                    "result": {"text": "The savings were not moved: the reviewer denied the transfer."},
                    "error": "transfer was denied: the savings account is frozen",
                }
            ]
        }
    )

    id: str
    agent: str
    owner: str = Field(description="The credential that started the run.")
    thread_id: str
    claimed_title: str = Field(validation_alias="title", description=CLAIMED_TITLE)
    tags: tuple[str, ...]
    status: RunStatus
    state: RunState = Field(
        description="The status, or `call_failed` if the run ended although an approved call failed."
    )
    suspension_id: str = Field(description="The latest suspension; it is pending while the run is suspended.")
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    updated_at: Timestamp = Field(validation_alias="updated_at_ms")
    result: JsonValue
    error: str | None
    erasure: ErasureView | None = Field(default=None, description="Who erased its contents; null if nobody did.")


class WhoView(View):
    """Who is behind a run, as Sayso verified it when the run began."""

    owner: str | None = Field(description="The person who owns the requester's key.")
    groups: tuple[str, ...] = Field(description="The groups of the owner.")
    person: str | None = Field(description="The person for whom the agent acts, proven by a signed token.")
    person_name: str = Field(description="The person's display name in the token; empty if it has none.")
    issuer: str = Field(description="The issuer of the token; empty without one.")


class RunRefView(View):
    """The run of a suspension."""

    id: str
    agent: str
    owner: str
    thread_id: str
    claimed_title: str = Field(validation_alias="title", description=CLAIMED_TITLE)
    request_id: str | None
    tags: tuple[str, ...]
    context: JsonObject = Field(
        validation_alias="facts", description="Verified context: that of the registered agent and of the key."
    )
    claimed_context: JsonObject = Field(
        validation_alias="claimed", description="The context that the agent sent; it is not verified."
    )
    started_at: Timestamp = Field(validation_alias="started_at_ms")
    key_id: str | None = Field(description="The key that started the run; null for a session.")
    key_maker: str = Field(description="The person who made the key; empty for a session, or if nobody is known.")
    environment: str = Field(description="The `SAYSO_ENVIRONMENT` of the desk; empty without one.")
    who: WhoView | None = Field(description="Null if neither the owner of the key nor the person is known.")


class EventView(View):
    """A trail event; its hash includes the hash of the previous event.

    If its contents were erased, the hash is still that of the whole event. The event `erased_by` has, as `digest`, the
    SHA-256 of what is left of all events that it erased.
    """

    seq: int
    at: Timestamp = Field(validation_alias="at_ms")
    type: str
    data: JsonObject
    hash: str
    erased_by: int | None = Field(description="The event that records the erasure of its contents; null if whole.")


class UnreadableView(View):
    """A stored record that cannot be read: it is damaged, altered, or of a later version."""

    suspension_id: str
    run_id: str | None = Field(description="Its run, if that is known.")
    reason: str

    @classmethod
    def list_of(cls, records: Iterable[object]) -> "list[UnreadableView]":
        return [cls.model_validate(record) for record in records if isinstance(record, UnreadableRecord)]
