"""Take in where a run of another framework stopped, refuse what no worker could go on from, and seal the rest."""

import base64
import binascii

from pydantic import BaseModel, ConfigDict, Field

from sayso.errors import Conflict, InvalidInput, TooLarge
from sayso.records.run_state import SealedState, read_state, seal_state
from sayso.records.suspensions import OURS
from sayso.runner.agents import AgentManifest
from sayso.runner.protocol import FrameworkState


class SuspendedFramework(BaseModel):
    """The run of another framework that waits for these calls: what a worker needs to take it up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    framework: str = Field(min_length=1, max_length=100, description="As the agent's manifest says.")
    framework_version: str = Field(default="", max_length=100)
    adapter: str = Field(default="", max_length=100, description="What wrote the state, with its version.")
    state_schema: str = Field(min_length=1, max_length=100, description="As the agent's manifest says.")
    manifest_digest: str = Field(pattern="^[0-9a-f]{64}$", description="Of the agent the run was begun with.")
    state: str = Field(description="The framework's own state: a JSON object in UTF-8, as base64.")
    unseen: bool = Field(
        default=False, strict=True, description="Whether the framework runs its tools where nobody sees it."
    )


def check_suspended(manifest: AgentManifest, paused: SuspendedFramework) -> None:
    """Raise `Conflict` for a state that is not of the very agent that workers have registered, or `InvalidInput`."""
    origin = manifest.origin
    if origin.framework == OURS:
        raise InvalidInput(f"The agent {manifest.name!r} is none of another framework; leave out paused.")
    written = (paused.framework, paused.state_schema)
    if written != (origin.framework, origin.state_schema):
        raise Conflict(
            f"This state is of {' / '.join(written)}; the agent {manifest.name!r} goes on from {origin.framework} / "
            f"{origin.state_schema} alone. Run the adapter that the workers run."
        )
    if paused.manifest_digest != origin.manifest_digest:
        raise Conflict(
            f"The run was begun with other tools than the workers' agent {manifest.name!r} has. Deploy both alike."
        )


def pack_state(agent: str, paused: SuspendedFramework, limit_bytes: int) -> SealedState:
    """Return the state on its way to the store; raises `TooLarge` and `InvalidInput` for what cannot be kept."""
    native = read_state(_decode(paused.state, limit_bytes))
    state = FrameworkState(
        agent=agent,
        framework=paused.framework,
        state_schema=paused.state_schema,
        native=native,
        unseen=paused.unseen,
        step=1,
    )
    return seal_state(state.model_dump_json().encode())


def _decode(state: str, limit_bytes: int) -> bytes:
    try:
        raw = base64.b64decode(state, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"The state is not base64: {error}. Encode the JSON object's UTF-8 bytes.") from error
    if len(raw) > limit_bytes:
        raise TooLarge(f"The state is {len(raw)} bytes; at most {limit_bytes} are taken. Trim its messages.")
    return raw
