"""Drive a run of an agent of another framework: from where it stopped to its next pause or its end."""

from collections.abc import Mapping, Sequence

import structlog

from sayso.canonical_json import JsonObject
from sayso.errors import Conflict, InvalidInput, TooLarge, Unavailable
from sayso.records.suspensions import SuspensionRecord
from sayso.runner.agents import Agent
from sayso.runner.framework_loop import FrameworkSuspension, drive_framework
from sayso.runner.protocol import FrameworkAgent, FrameworkState
from sayso.runner.revalidation import carry_over, revalidate
from sayso.timeline.limits import fit_events
from sayso.timeline.sources import SourceFormat
from service.policy.schemas import is_answer
from service.store.runs.external_events import ExternalEvent
from service.store.suspensions.saving import Saved
from service.wiring import Wiring
from workers.resume.journals import ask_in, describe_outcomes, find_agent, open_journal, seal
from workers.resume.plans import Taken, read_asked

log = structlog.get_logger()

_MOST_TOLD = 1000
"""So many events of one stretch are kept; a stretch is as long as a run goes on without asking."""


async def resume(wiring: Wiring, agents: Mapping[str, Agent], taken: Taken) -> None:
    """Drive the run on and save where it comes to. Raises what the worker is to show on the run."""
    leased, fence, record = taken.leased, taken.fence, taken.leased.record
    agent = find_agent(agents, record)
    if not isinstance(agent, FrameworkAgent):
        raise InvalidInput(f"{agent.name!r} is no agent of {record.origin.framework} here. Register the one that was.")
    state = await _read_state(wiring, record)
    policy = wiring.rules.policy()
    checked = revalidate(record, agent, policy, await wiring.revocation_cache.find())
    if checked.again and state.batch is not None and state.batch.drafts:
        drafts, told = carry_over(record, checked)
        waiting = state.model_copy(update={"batch": ask_in(state.batch, checked)})
        await wiring.desk.suspend_again(record, fence, drafts, seal(waiting), told, record.step)
        return
    outcomes = describe_outcomes(record, checked, leased.now_ms)
    journal = await open_journal(wiring, leased, fence)
    reached = await drive_framework(agent, record.run, state, outcomes, policy=policy, journal=journal, fits=is_answer)
    await _tell(wiring, leased, reached.told)
    if isinstance(reached, FrameworkSuspension):
        facts = {**record.run.facts, **agent.context}  # what the rules saw: they are asked again about any edit
        paused = record.model_copy(update={"run": record.run.model_copy(update={"facts": facts})})
        await wiring.desk.suspend_again(
            paused, fence, reached.drafts, seal(reached.state), reached.events, reached.state.step
        )
    else:
        await journal.settle(reached.end, reached.events)


async def _tell(wiring: Wiring, leased: Saved, told: Sequence[JsonObject]) -> None:
    """Keep what the framework said on the way beside the trail, once; that it cannot be kept stops no run.

    What was said before has lower numbers: it was said by whoever began the run, or under an earlier lease.
    """
    record, framework = leased.record, leased.record.origin.framework
    if not told or framework not in set(SourceFormat):
        return
    first = leased.now_ms * _MOST_TOLD
    external_events = [
        ExternalEvent(first + place, None, event) for place, event in enumerate(fit_events(told[:_MOST_TOLD]))
    ]
    try:
        await wiring.external_events.add(record.run.id, framework, framework, external_events)
    except (Conflict, TooLarge, Unavailable) as refusal:
        log.warning("not_told", run=record.run.id, why=refusal.message)


async def _read_state(wiring: Wiring, record: SuspensionRecord) -> FrameworkState:
    """Return the run's state; raises `InvalidInput` when it is not the one that was sealed.

    A run that was asked for from outside comes without its batch: that is what its suspension asked.
    """
    assert record.state is not None  # noqa: S101  a run of a framework is never saved without its state
    raw = await wiring.runs.state(record.run.id, record.state)
    state = FrameworkState.model_validate_json(raw)
    if state.native is None or state.batch is not None:
        return state
    return state.model_copy(update={"batch": read_asked(record)})
