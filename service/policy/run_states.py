"""States of suspended runs of other frameworks: check and seal."""

import base64
import binascii

from pydantic import Field

from sayso.core.records.base import Immutable
from sayso.core.records.run_state import SealedState, read_state, seal_state
from sayso.core.records.suspensions import OURS
from sayso.errors import Conflict, InvalidInput, TooLarge
from sayso.runner.agents import AgentManifest
from sayso.runner.protocol import FrameworkState


class SuspendedFramework(Immutable):
    """A suspended run of another framework, as a worker needs it to resume."""

    framework: str = Field(min_length=1, max_length=100, description="As the agent's manifest says.")
    framework_version: str = Field(default="", max_length=100)
    adapter: str = Field(default="", max_length=100, description="What wrote the state, with its version.")
    state_schema: str = Field(min_length=1, max_length=100, description="As the agent's manifest says.")
    manifest_digest: str = Field(pattern="^[0-9a-f]{64}$", description="Of the agent that started the run.")
    state: str = Field(description="The framework's own state: a JSON object in UTF-8, as base64.")
    unseen: bool = Field(default=False, strict=True, description="Whether Sayso cannot see the framework's tool calls.")


def check_suspended(manifest: AgentManifest, framework_run: SuspendedFramework) -> None:
    """Raise `Conflict` if the state is not of this agent, `InvalidInput` if the agent is of Sayso's own runner."""
    origin = manifest.origin
    if origin.framework == OURS:
        raise InvalidInput(f"The agent {manifest.name!r} is of Sayso's own runner; leave out framework_run.")
    written = (framework_run.framework, framework_run.state_schema)
    if written != (origin.framework, origin.state_schema):
        raise Conflict(
            f"This state is of {' / '.join(written)}; the agent {manifest.name!r} needs {origin.framework} / "
            f"{origin.state_schema}. Run the same adapter as the workers."
        )
    if framework_run.manifest_digest != origin.manifest_digest:
        raise Conflict(
            f"The run has other tools than the workers' agent {manifest.name!r}. Deploy the same version to both."
        )


def pack_state(agent: str, framework_run: SuspendedFramework, limit_bytes: int) -> SealedState:
    """Return the sealed state; raises `TooLarge` or `InvalidInput`."""
    native = read_state(_decode(framework_run.state, limit_bytes))
    state = FrameworkState(
        agent=agent,
        framework=framework_run.framework,
        state_schema=framework_run.state_schema,
        native=native,
        unseen=framework_run.unseen,
        step=1,
    )
    return seal_state(state.model_dump_json().encode())


def _decode(state: str, limit_bytes: int) -> bytes:
    try:
        raw = base64.b64decode(state, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"The state is not base64: {error}. Encode the JSON object's UTF-8 bytes.") from error
    if len(raw) > limit_bytes:
        raise TooLarge(f"The state is {len(raw)} bytes; the limit is {limit_bytes}. Trim its messages.")
    return raw
