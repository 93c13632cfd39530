"""Suspensions and idempotency keys before they are saved."""

from pydantic import JsonValue

from sayso.core.canonical_json import digest_json
from sayso.core.clock import new_id
from sayso.core.records.run_state import SealedState
from sayso.core.records.suspensions import Origin, ResumeSpec, RunRef, Status, SuspensionRecord
from service.store.suspensions.commits import Idempotency


def draft_suspension(
    tenant: str, run: RunRef, *, state: SealedState | None, on_deny: str = "continue", step: int = 0
) -> SuspensionRecord:
    """Return an unsaved suspension; the transition sets its status and times."""
    return SuspensionRecord.model_validate(
        {
            "id": new_id("sus"),
            "tenant": tenant,
            "status": Status.PENDING,
            "created_at_ms": 0,
            "updated_at_ms": 0,
            "run": run,
            "step": step,
            "origin": Origin(),
            "resume": ResumeSpec(),
            "on_deny": on_deny,
            "state": state.ref if state else None,
        }
    )


def draft_following(record: SuspensionRecord, state: SealedState | None, step: int) -> SuspensionRecord:
    """Return the unsaved suspension that follows `record` in its run."""
    draft = draft_suspension(record.tenant, record.run, state=state, on_deny=record.on_deny, step=step)
    return draft.model_copy(update={"origin": record.origin, "resume": record.resume, "progress": record.progress})


def build_idempotency(actor: str, key: str | None, request: list[JsonValue], ref: str) -> Idempotency | None:
    """Return the caller's key with the fingerprint of the request; None without a key."""
    if key is None:
        return None
    return Idempotency(actor=actor, key=key, fingerprint=digest_json(request)[:32], ref=ref)
