"""Views of checkpoints, evidence, archived runs and overrides, and how heads of chains compare with the store."""

from typing import Annotated, Literal

from pydantic import Field

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Verdict
from sayso.core.records.suspensions import RunStatus
from sayso.wire.models import RequestBody, Timestamp, View

MOST_HEADS = 200


class CheckpointView(View):
    """A signed checkpoint. `statement` names the Merkle root, and the SHA-256 of the statement before."""

    number: int
    at: Timestamp = Field(validation_alias="at_ms")
    size: int = Field(description="The number of chains whose heads it holds.")
    statement: str = Field(description="The signed text, as JSON.")
    signature: str = Field(description="An Ed25519 signature in base64.")


class SinkView(View):
    """A sink of checkpoints, without its credentials."""

    name: str
    number: int = Field(description="The last checkpoint that it confirmed; 0 for none.")


class CheckpointPage(View):
    """Checkpoints, the oldest first."""

    checkpoints: list[CheckpointView]
    last: int = Field(description="The number of the last checkpoint; 0 before the first.")
    sinks: list[SinkView]
    keys: dict[str, str] = Field(description="The public keys of the key file in base64, by id.")


class ArchivedRunView(View):
    """An archived run. It is read by its id like any other."""

    id: str
    agent: str
    owner: str
    status: RunStatus
    started_at: Timestamp = Field(validation_alias="started_ms")
    ended_at: Timestamp = Field(validation_alias="ended_ms")


class ArchivedRunPage(View):
    """Archived runs that began on a day in UTC, the first first; `day` is empty where none are."""

    day: str
    runs: list[ArchivedRunView]


class EvidenceView(View):
    """A file of evidence."""

    text: str = Field(description="JSON Lines: `sayso evidence verify`, or a script without Sayso, verifies them.")


class OverrideView(View):
    """A call that people edited, returned or denied; of an unreadable record only its suspension and the reason.

    Of an unreadable part of the archive it has the reason alone.
    """

    kind: Literal["edit", "changes", "denial", "unreadable"]
    asked_at: Timestamp | None = None
    decided_at: Timestamp | None = None
    agent: str = ""
    requester: str = ""
    run_id: str = ""
    suspension_id: str = ""
    item_id: str = ""
    tool: str = ""
    args: JsonObject | None = Field(
        default=None, description="As the agent sent them; null where a reviewer's edit was asked again."
    )
    verdict: Verdict | None = None
    edited_args: JsonObject | None = Field(default=None, description="As a reviewer changed them.")
    patch: list[JsonObject] | None = Field(default=None, description="From `args` to `edited_args`, by RFC 6902.")
    change_paths: tuple[str, ...] = Field(default=(), description="The arguments that a reviewer wanted changed.")
    reason: str | None = Field(description="The message of the decision.")
    rule: str | None = None
    tags: tuple[str, ...] = ()
    by: list[str] = Field(default=[], description="Who decided.")


class OverrideLines(View):
    """The lines of overrides."""

    lines: list[OverrideView]


class HeadToCheck(RequestBody):
    """The head of a chain as a checkpoint has it."""

    chain: str = Field(max_length=120, examples=["run run_019aa4a2f0d1b3c45d6e7f8091a2b3c4"])
    seq: int = Field(ge=0, le=10**12, strict=True)
    hash: str = Field(max_length=64)
    at_ms: int = Field(ge=0, le=10**15, strict=True, description="The time of the checkpoint.")


class HeadsToCheck(RequestBody):
    """Heads that a sink's file has."""

    heads: Annotated[list[HeadToCheck], Field(max_length=MOST_HEADS)]


class ChainFault(View):
    """A chain that is not as its checkpoint has it."""

    chain: str
    fault: str


class HeadsChecked(View):
    """What differs between checkpoints and the store."""

    checked: int
    expired: int = Field(description="How many were deleted because of their age, as the settings say.")
    faults: list[ChainFault]
