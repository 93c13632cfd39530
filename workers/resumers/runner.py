"""Drive a run of our own runner: from its saved state to its next pause or its end."""

from collections.abc import Mapping

from sayso.records.suspensions import RunEnd
from sayso.runner.agents import Agent
from sayso.runner.loop import Pause, drive
from sayso.runner.revalidation import carry_over, revalidate
from sayso.runner.transcripts import RunState
from service.policy.schemas import is_answer
from service.wiring import Wiring
from workers.resume.journals import ask_in, describe_outcomes, find_agent, open_journal, seal
from workers.resume.outages import next_step, through_outages
from workers.resume.plans import Taken


async def resume(wiring: Wiring, agents: Mapping[str, Agent], taken: Taken) -> None:
    """Drive the run on and save where it comes to. Raises what the worker is to show on the run."""
    leased, fence, record = taken.leased, taken.fence, taken.leased.record
    agent = find_agent(agents, record)
    assert record.state is not None  # noqa: S101  a run of this runner is never saved without its state
    state = RunState.model_validate_json(await wiring.runs.state(record.run.id, record.state))
    policy = wiring.rules.policy()
    checked = revalidate(record, agent, policy, await wiring.revocation_cache.find())
    if checked.again and state.batch is not None and state.batch.drafts:
        drafts, told = carry_over(record, checked)
        waiting = state.model_copy(update={"batch": ask_in(state.batch, checked)})
        await wiring.desk.suspend_again(record, fence, drafts, seal(waiting), told, record.step)
        return
    outcomes = describe_outcomes(record, checked, leased.now_ms)
    journal = await open_journal(wiring, leased, fence)
    came_to = await drive(agent, state, policy=policy, journal=journal, outcomes=outcomes, fits=is_answer)
    if isinstance(came_to, Pause):
        facts = {**record.run.facts, **agent.context}  # what the rules saw: they are asked again about any edit
        paused = record.model_copy(update={"run": record.run.model_copy(update={"facts": facts})})
        drafts, told, step, fence = came_to.drafts, came_to.events, came_to.state.step, next_step(fence)
        sealed = seal(came_to.state)
        await through_outages(lambda: wiring.desk.suspend_again(paused, fence, drafts, sealed, told, step))
    else:
        end = RunEnd(status=came_to.status, result=came_to.result, error=came_to.error)
        await journal.settle(end, came_to.events)
