"""The desk's verdict on a call that a hook asks about: one item, one permit, one answer `allow`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sayso.adapters.hooks.calls import Decision, HookCall, Verdict
from sayso.adapters.hooks.pending import Pending, PendingFile, claim_end
from sayso.client.holders import run_as
from sayso.client.permits import Call, GatedCall, RedeemedPermit, obtain_permit, report
from sayso.client.requests import new_key
from sayso.client.retries import Flow, RetryPolicy
from sayso.core.canonical_json import digest_json
from sayso.core.records.tools import ToolDefinition
from sayso.errors import Denied, InDoubt, SaysoError, Suspended, Unavailable

OnFailure = Literal["closed", "ask", "open"]

_FAILURES: Mapping[OnFailure, tuple[Decision, str]] = {
    "closed": ("deny", "The call is denied, because this hook fails closed."),
    "ask": ("ask", "Decide yourself, because this hook lets the agent ask then."),
    "open": ("none", "Nobody has judged the call, because this hook fails open."),
}


_AGAIN = "Make exactly the same call again to continue."
_ALONE = "So does an earlier call, and the agent keeps one. Make exactly this call again, alone, to continue."


@dataclass(frozen=True)
class HookOptions:
    """How long a hook waits for a decision, and what it answers then, and while the desk cannot be reached."""

    wait_s: float = 50.0
    on_failure: OnFailure = "closed"
    defers: bool = False
    """Whether a run ends with a call that waits, to be resumed after the decision."""


def judge(call: HookCall, options: HookOptions, policy: RetryPolicy) -> Flow[Verdict]:
    """Return the desk's verdict on a call, after at most `wait_s` for a person. No `SaysoError` gets out."""
    try:
        return (yield from _ask(call, options, policy))
    except Suspended as suspended:
        waits = f"{call.tool} did not run: it waits for a person ({suspended.facts['link']})."
        return _end_run(call, waits, policy.url) if options.defers else Verdict("deny", f"{waits} {_AGAIN}")
    except Denied as denied:
        return Verdict("deny", denied.for_model)
    except InDoubt:
        started = f"{call.tool} was approved, and its hook ended before it answered, so it may have run."
        return Verdict("deny", f"{started} Check its effect before you call it again.")
    except Unavailable as failure:
        decision, effect = _FAILURES[options.on_failure]
        return Verdict(decision, f"Sayso: {failure.message} {effect}")
    except SaysoError as refused:
        return Verdict("deny", f"{call.tool} did not run: {refused.message}")


def _end_run(call: HookCall, waits: str, url: str) -> Verdict:
    """Let the run end with a call that waits, unless it cannot, or ends with another one."""
    if call.run is None:
        return Verdict("deny", f"{waits} {_AGAIN}")
    if claim_end(url, call.agent, call.session, call.run, call_id=call.call_id or ""):
        return Verdict("defer", f"{waits} Resume the session after the decision.")
    return Verdict("deny", f"{waits} {_ALONE}")


def _ask(call: HookCall, options: HookOptions, policy: RetryPolicy) -> Flow[Verdict]:
    """Ask under the key of the same call if it waits, or else under its own."""
    digest = digest_json([call.tool, call.args])
    own = f"{call.agent}:{call.session}:{call.call_id or ''}:{digest}"
    title = str(call.note.get("description") or call.tool)[:200]
    file = PendingFile.find(policy.url, call.agent, call.session, digest)
    pending = file.read() or Pending(own, title)
    while True:
        file.save(pending)
        try:
            permit = yield from obtain_permit(policy, _build_call(call, pending, options))
        except (Denied, InDoubt):
            file.forget()
            raise
        if isinstance(permit, RedeemedPermit):
            with run_as(permit.holder):
                return (yield from _let_through(call, permit, policy, file))
        if pending.key == own and call.call_id is not None:
            file.forget()
            once = f"{call.tool} was let through before, once, so it may have run."
            return Verdict("deny", f"{once} Check its effect before you make a new call, which is asked again.")
        # The item was that of an earlier call.
        pending = Pending(own if call.call_id is not None else f"{own}:{new_key()}", title)


def _let_through(call: HookCall, permit: RedeemedPermit, policy: RetryPolicy, file: PendingFile) -> Flow[Verdict]:
    """Report the permit's use before the answer, which is all that a hook knows of the call."""
    made = Call(permit, result=f"Handed to {call.agent}, which runs it. Sayso does not see its result.")
    try:
        verdict = Verdict("allow", "Allowed by the desk.", call.restore(permit.args))
    except SaysoError as refused:
        yield from report(policy, made, refused)
        raise
    finally:
        file.forget()
    yield from report(policy, made, None)
    return verdict


def _build_call(call: HookCall, pending: Pending, options: HookOptions) -> GatedCall:
    return GatedCall(
        definition=ToolDefinition(name=call.tool, description="", parameters={"type": "object"}),
        args=call.args,
        label=pending.key,
        title=pending.title,
        context={"hook": {"agent": call.agent, "session": call.session}},
        wait_s=options.wait_s,
        thread_id=digest_json([call.agent, call.session]),
        again=True,
    )
