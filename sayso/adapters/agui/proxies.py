"""The proxy's runs: an agent's interrupts are asked at the desk, and resumed once with what people decided.

The client resumes a run as AG-UI describes, at any time, and the desk alone says what the agent is answered. Permits
are redeemed before the agent gets its answers, so the calls run once, also if a client repeats itself.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from sayso.adapters.agui import interrupts as asked
from sayso.adapters.agui import streams
from sayso.adapters.agui.inputs import FOREIGN, check_input, copy_ids, list_entries
from sayso.adapters.agui.interrupts import CLAIM, Interrupt, Kept
from sayso.adapters.agui.streams import CallsSeen
from sayso.client import AsyncClient, holders, requests
from sayso.client.permits import Call, RedeemedPermit, build_link, find_report, may_start, report
from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy.rules import same_json
from sayso.errors import CallFailed, Conflict, Denied, InDoubt, InvalidInput, SaysoError, Unavailable
from sayso.wire.items import ItemView
from sayso.wire.suspensions import SuspensionView

_LOG = logging.getLogger("sayso")
_HELD_EVENTS = 8  # so many wait for a slow client before the agent is no longer read
_SLOWEST_S = 60.0  # a client that reads nothing for this long counts as gone
_PAGE = 200
_WENT_ON = "The agent went on with this answer."
_NEWER = "The thread has asked something else since ({run}). Only its last interrupts can be resumed."
FAILED = "The proxy failed; its log says why. Resume the run, or start it again."
_BUSY = "Another run of this thread has not ended. Try again once it has."
_CHANGED = "The call {call} is not the one that was approved: its name or its arguments differ. Nothing ran."
_IN_DOUBT = "The agent was answered at {at} and has not told the result of {tool}. It may have run. See {link}."

Put = Callable[[JsonObject], Awaitable[None]]
"""Sends the client an event, unless it has gone."""


@dataclass(frozen=True)
class AgUiOptions:
    """How runs are held: `name` prefixes each tool's name at the desk, a resume waits `wait_s` for its decisions."""

    name: str = ""
    wait_s: float = 20.0
    report_within_s: int = 3600


class Question(NamedTuple):
    """An interrupt under the id that the client knows, and the latest item that asks about it."""

    id: str
    kept: Kept
    suspension: SuspensionView
    item: ItemView


@dataclass
class Resumption:
    """The answers to an agent, and the redeemed permits by the interrupt that each answers."""

    entries: list[JsonValue] = field(default_factory=list)
    permits: dict[str, tuple[Kept, RedeemedPermit]] = field(default_factory=dict)

    def take(self, call_id: object) -> RedeemedPermit | None:
        """Return the permit of a call whose result has arrived, once."""
        ids = [id_ for id_, (kept, _) in self.permits.items() if kept.call_id == call_id is not None]
        return self.permits.pop(ids[0])[1] if ids else None


@dataclass
class AgUiProxy:
    """A gate between one AG-UI agent and its clients. It keeps nothing between two requests."""

    url: str
    desk: AsyncClient
    agent: httpx.AsyncClient
    options: AgUiOptions = AgUiOptions()
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _threads: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def run(self, run_input: JsonObject, headers: Mapping[str, str]) -> AsyncIterator[JsonObject]:
        """Yield the events of a run. It goes on if its client leaves, so that the desk gets its results and questions.

        An agent may keep one state for a thread, so one of its runs starts when the one before has ended.
        """
        queue: asyncio.Queue[JsonObject | None] = asyncio.Queue(_HELD_EVENTS)
        listening = True

        def stop_listening() -> None:
            nonlocal listening
            listening = False
            while not queue.empty():
                queue.get_nowait()

        async def put(event: JsonObject | None) -> None:
            if not listening:
                return
            try:
                async with asyncio.timeout(_SLOWEST_S):
                    await queue.put(event)
            except TimeoutError:
                stop_listening()
                queue.put_nowait(None)

        async def drive() -> None:
            try:
                async with asyncio.timeout(self.options.report_within_s):
                    await self._drive_alone(run_input, headers, put)
            except SaysoError as error:
                await put({"type": streams.RUN_ERROR, "message": error.message, "code": type(error).__name__})
            except TimeoutError:
                await put({"type": streams.RUN_ERROR, "message": "The run took too long.", "code": "TimeoutError"})
            except Exception:  # noqa: BLE001 - the client gets an end, the log the error
                _LOG.exception("A run of an AG-UI agent failed")
                await put({"type": streams.RUN_ERROR, "message": FAILED, "code": "InternalError"})
            finally:
                await put(None)

        task = asyncio.create_task(drive())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            stop_listening()

    async def _drive_alone(self, run_input: JsonObject, headers: Mapping[str, str], put: Put) -> None:
        check_input(run_input)
        lock = self._threads.setdefault(str(run_input["threadId"]), asyncio.Lock())
        try:
            async with asyncio.timeout(_SLOWEST_S):
                await lock.acquire()
        except TimeoutError as error:
            raise Conflict(_BUSY) from error
        try:
            await self._drive(run_input, headers, put)
        finally:
            lock.release()

    async def _drive(self, run_input: JsonObject, headers: Mapping[str, str], put: Put) -> None:
        sent = {name: value for name, value in run_input.items() if name != "resume"}
        resumption = Resumption()
        if run_input.get("resume"):
            questions = await self._find_questions(run_input)
            cancelled = all(entry.get("status") == "cancelled" for entry in list_entries(run_input))
            waiting = [
                question for question in questions if question.suspension.pending and question.item.outcome is None
            ]
            if waiting and not cancelled:
                await put({"type": streams.RUN_STARTED, **copy_ids(run_input)})
                await put(self._write_waiting(run_input, waiting))
                return
            await self._check_doubts(questions)
            items = [question.item for question in questions]
            if any(map(find_report, items)) and not any(map(may_start, items)):
                await _repeat_results(run_input, questions, put)
                return
            await self._check_latest(questions[0].suspension)
            _check_calls(run_input, questions, self.options.name)
            await self._probe(headers)
            resumption = await (self._cancel(questions) if cancelled else self._redeem(questions))
            sent["resume"] = resumption.entries
        await self._relay(run_input, sent, headers, resumption, put)

    async def _find_questions(self, run_input: JsonObject) -> list[Question]:
        """Return all interrupts of the run that the client resumes. Raises `InvalidInput` for others."""
        ids = {str(entry.get("interruptId")) for entry in list_entries(run_input)}
        root_id = next(iter(ids), "").partition(".")[0]
        if not root_id.startswith("sus_"):
            raise InvalidInput(FOREIGN)
        suspension = await self.desk.wait(root_id, self.options.wait_s)
        kept, thread_id = asked.read_kept(suspension)
        if ids != {f"{root_id}.{name}" for name in kept} or thread_id != run_input.get("threadId"):
            raise InvalidInput(FOREIGN)
        latest = {item.call_id: (suspension, item) for item in suspension.items}
        while suspension.following_id is not None:
            suspension = await self.desk.wait(suspension.following_id, self.options.wait_s)
            latest |= {item.call_id: (suspension, item) for item in suspension.items}
        return [Question(f"{root_id}.{id_}", of_id, *latest[id_]) for id_, of_id in kept.items()]

    async def _cancel(self, questions: Sequence[Question]) -> Resumption:
        """Withdraw everything from the desk, and return the refusals of all interrupts."""
        if questions[0].suspension.end is None:
            await self.desk.cancel(questions[0].suspension.run.id, "The AG-UI client cancelled its run.")
        return Resumption([asked.refuse(question.kept, "The user cancelled this.") for question in questions])

    async def _check_latest(self, suspension: SuspensionView) -> None:
        """Raise `Conflict` if the thread has asked anything since: some agents give any answer to the last question."""
        skip: int | None = 0
        while skip is not None:
            page = await self.desk.runs(skip=skip, limit=_PAGE)
            for run in page.runs:
                if run.id == suspension.run.id:
                    return
                if run.thread_id == suspension.run.thread_id:
                    raise Conflict(_NEWER.format(run=run.id))
            skip = page.next_skip

    async def _check_doubts(self, questions: Sequence[Question]) -> None:
        """Raise `InDoubt` if an earlier attempt answered the agent and has not reported; a person says what to do."""
        for question in questions:
            permit = question.item.permit
            if permit is None or find_report(question.item) is not None:
                continue
            if holders.is_running(permit.holder) is False and question.suspension.end is None:
                await self.desk.exchange(requests.mark_in_doubt(question.suspension.id, question.item.item_id))
            at = permit.redeemed_at.isoformat(timespec="seconds")
            link = build_link(self.desk.url, question.suspension, question.item)
            raise InDoubt(_IN_DOUBT.format(at=at, tool=question.item.tool.name, link=link))

    async def _probe(self, headers: Mapping[str, str]) -> None:
        """Raise `Unavailable` if nothing answers at the agent's address: no permit is redeemed in vain."""
        try:
            await self.agent.request("OPTIONS", self.url, headers=headers)
        except httpx.RequestError as error:
            _LOG.warning("The AG-UI agent is unreachable: %s", error)
            raise Unavailable("The agent is unreachable. Nothing ran. Resume the run later.") from error

    async def _redeem(self, questions: Sequence[Question]) -> Resumption:
        """Redeem the permits of approved calls, and return the answers to all interrupts."""
        resumption = Resumption()
        try:
            for question in questions:
                resumption.entries.append(await self._answer(question, resumption))
        except BaseException:
            for _, permit in resumption.permits.values():
                await self._report(permit, None, CallFailed("It did not run: a call beside it could not start."))
            raise
        return resumption

    async def _answer(self, question: Question, resumption: Resumption) -> JsonObject:
        """Return the answer to one interrupt. Raises `Denied` for an agent that would go on with a refusal."""
        if (earlier := find_report(question.item)) is not None:
            return asked.refuse(question.kept, earlier.error or "This call has run already.")
        if not may_start(question.item) or question.suspension.end is not None:
            return asked.write_entry(question.kept, question.item, None)
        permit = await self._redeem_one(question)
        untaken = CallFailed("The agent cannot take this answer. It did not run.")
        try:
            entry = asked.write_entry(question.kept, question.item, permit.args)
        except Denied:
            await self._report(permit, None, untaken)
            raise
        if asked.lets_run(entry):
            resumption.permits[question.id] = (question.kept, permit)
        else:
            await self._report(permit, None, untaken)
        return entry

    async def _redeem_one(self, question: Question) -> RedeemedPermit:
        holder = holders.begin()
        request = requests.redeem(question.suspension.id, question.item.item_id, holder, self.options.report_within_s)
        try:
            redeemed = await self.desk.exchange(request)
        except BaseException:
            holders.end(holder)
            raise
        return RedeemedPermit(run_id=question.suspension.run.id, holder=holder, **dict(redeemed))

    async def _relay(
        self, run_input: JsonObject, sent: JsonObject, headers: Mapping[str, str], resumption: Resumption, put: Put
    ) -> None:
        """Pass the agent's events on up to its end, report results, and ask the desk what the agent asks."""
        seen, ended = CallsSeen(), False
        sent_results, results = streams.list_results(run_input.get("messages")), dict[str, JsonValue]()
        try:
            async for event in self._stream(sent, headers):
                seen.note(event)
                kind = event["type"]
                if kind == streams.TOOL_CALL_RESULT and (permit := resumption.take(event.get("toolCallId"))):
                    await self._report(permit, event.get("content"))
                if kind == streams.MESSAGES_SNAPSHOT:  # it repeats what the client has sent, which is no result
                    listed = streams.list_results(event.get("messages")).items()
                    results = {call_id: content for call_id, content in listed if call_id not in sent_results}
                if kind == streams.RUN_FINISHED:
                    for kept, permit in resumption.permits.values():
                        await self._report(permit, results.get(kept.call_id or "", _WENT_ON))
                    resumption.permits.clear()
                    ended = True
                ended = ended or kind == streams.RUN_ERROR
                interrupts = asked.read_interrupts(event) if kind == streams.RUN_FINISHED else ()
                await put(await self._ask(run_input, interrupts, seen) if interrupts else event)
            if not ended:
                raise Unavailable("The agent's answer ended before its run did. Start the run again.")
        finally:
            await self._mark_doubts(resumption)

    async def _stream(self, sent: JsonObject, headers: Mapping[str, str]) -> AsyncIterator[JsonObject]:
        try:
            async with self.agent.stream("POST", self.url, content=to_json(sent), headers=headers) as response:
                if response.status_code != 200:
                    raise Unavailable(f"The agent answered {response.status_code}. Correct the input, or try later.")
                async for event in streams.read_events(response.aiter_bytes()):
                    yield event
        except httpx.RequestError as error:
            _LOG.warning("The answer of the AG-UI agent was cut off: %s", error)
            raise Unavailable("The agent's answer was cut off. Resume the run, or start it again.") from error

    async def _ask(self, run_input: JsonObject, interrupts: Sequence[Interrupt], seen: CallsSeen) -> JsonObject:
        """Ask the desk, and return the event that tells the client that the run waits."""
        claim: JsonValue = {
            "thread": run_input["threadId"],
            "interrupts": [interrupt.kept.model_dump(mode="json", exclude_defaults=True) for interrupt in interrupts],
        }
        body: JsonObject = {
            "mode": "poll",
            "thread_id": digest_json([self.url, run_input["threadId"]]),
            "calls": asked.write_calls(interrupts, seen, self.options.name),
            "title": asked.describe_title(interrupts),
            "context": {CLAIM: claim},
        }
        if (expires_at := asked.find_expiry(interrupts)) is not None:
            body["expires_at"] = expires_at.isoformat()
        ids = [interrupt.id for interrupt in interrupts]
        suspension = await self.desk.suspend(
            body, digest_json([self.url, run_input["threadId"], run_input["runId"], ids])
        )
        items = {item.call_id: item for item in suspension.items}
        questions = [
            Question(f"{suspension.id}.{interrupt.id}", interrupt.kept, suspension, items[interrupt.id])
            for interrupt in interrupts
        ]
        return self._write_waiting(run_input, questions)

    def _write_waiting(self, run_input: JsonObject, waiting: Sequence[Question]) -> JsonObject:
        interrupts: list[JsonValue] = []
        for question in waiting:
            link = build_link(self.desk.url, question.suspension, question.item)
            decided = question.item.outcome is not None
            state = "is decided: resume the run" if decided else f"waits for a person ({link})"
            entry: JsonObject = {
                "id": question.id,
                "reason": "sayso:decided" if decided else "sayso:waiting",
                "message": f"{question.item.tool.name} {state}.",
                "expiresAt": question.item.terms.deadline_at.isoformat(),
                "metadata": {"sayso": {"link": link, "tool": question.item.tool.name}},
            }
            interrupts.append(
                entry | ({"toolCallId": question.kept.call_id} if question.kept.call_id is not None else {})
            )
        outcome: JsonObject = {"type": "interrupt", "interrupts": interrupts}
        return {"type": streams.RUN_FINISHED, **copy_ids(run_input), "outcome": outcome}

    async def _report(self, permit: RedeemedPermit, result: JsonValue, error: SaysoError | None = None) -> None:
        try:
            await self.desk.run(report(self.desk.retry_policy, Call(permit, result), error))
        finally:  # without a report, the next resume puts the call in doubt
            holders.end(permit.holder)

    async def _mark_doubts(self, resumption: Resumption) -> None:
        """Ask people about the calls whose results the agent has not told."""
        for _, permit in resumption.permits.values():
            holders.end(permit.holder)
            try:
                await self.desk.exchange(requests.mark_in_doubt(permit.suspension_id, permit.item_id))
            except SaysoError as error:  # the desk does so itself once the time to report is over
                _LOG.warning("The doubt about %s was not noted: %s", permit.idempotency_key, error.message)


def _check_calls(run_input: JsonObject, questions: Sequence[Question], prefix: str) -> None:
    """Raise `InvalidInput` if the messages have another call than the one asked about, under its id."""
    wanted = {question.kept.call_id: question.item.tool for question in questions if question.kept.call_id is not None}
    for id_, name, args in streams.list_calls(run_input.get("messages")):
        tool = wanted.get(id_)
        if tool is not None and not (
            tool.name == asked.name_tool(prefix, name) and same_json(streams.parse_args(name, args), tool.args)
        ):
            raise InvalidInput(_CHANGED.format(call=id_[:80]))


async def _repeat_results(run_input: JsonObject, questions: Sequence[Question], put: Put) -> None:
    """Tell a client that lost the answer what the calls returned. The agent is not asked again."""
    await put({"type": streams.RUN_STARTED, **copy_ids(run_input)})
    for question in questions:
        earlier = find_report(question.item)
        if earlier is None or question.kept.call_id is None:
            continue
        output = earlier.output if isinstance(earlier.output, str) else to_json(earlier.output).decode()
        result: JsonObject = {"messageId": f"{question.id}.result", "toolCallId": question.kept.call_id, "role": "tool"}
        await put({"type": streams.TOOL_CALL_RESULT, **result, "content": output if earlier.success else earlier.error})
    await put({"type": streams.RUN_FINISHED, **copy_ids(run_input)})
